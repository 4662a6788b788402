"""Strict local Google services, for demos and tests: Cloud SQL Admin (v1beta4) and Cloud Storage (JSON v1) by hand,
and every service of the catalogue by its rows.

It keeps real rules (defaults, versions, preconditions, long-running operations) and refuses what it does not know,
but it is not Google: there is no database and no stored byte behind it. Start reading at `cloud`; `server` serves it
over HTTP. Imported by the demo, by tests and benchmarks; it may import `catalogue`, `core` and `errors`.
"""
