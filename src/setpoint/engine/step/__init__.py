"""One reconcile step of a resource: resolve, observe, decide, plan, execute, finish. `reconcile` is the entry.

Only `execute` and `delete` change live objects; status, conditions and events are written through the step context.
Imported by the drivers, the runtime's controller and the front ends; imports no other package than `engine` and
`core`.
"""
