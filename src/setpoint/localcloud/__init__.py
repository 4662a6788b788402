"""A strict local Cloud SQL Admin (v1beta4) and Cloud Storage (JSON v1) server, for demos and tests.

It keeps real rules (defaults, versions, preconditions, long-running operations) and refuses what it does not know,
but it is not Google: there is no database and no stored byte behind it. Start reading at `cloud`; `server` serves it
over HTTP. Imported by the demo, by tests and benchmarks; it may import `core` and `errors`.
"""
