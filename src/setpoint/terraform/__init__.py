"""The Terraform provider: a front end, started by Terraform as a process of its own.

Modules: `entry` (START HERE), `setpoint_provider`; packages `rpc` (plugin protocol 6), `framework`, `cty`, `resources`.
Imports `objects`, `core` and `errors`; nothing of setpoint imports it.
"""
