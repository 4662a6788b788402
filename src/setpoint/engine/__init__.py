"""The reconciliation engine: one step for one resource, through protocols only.

Authors of kinds start with `kind`, `owner`, `capabilities` and `ports`; readers with `step.reconcile`. Imports
`core` and `errors`. Imported by kinds, stores, runtime, replay, objects, app and the front ends.
"""
