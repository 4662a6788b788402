"""Plugin protocol 6: the process, its TLS socket, and a handler for each RPC that Terraform calls.

Knows `framework` and `cty`, and no resource of setpoint's: it serves any `Provider`. Imported by `entry`.
"""
