"""What the provider `setpoint` only reads: the data sources `setpoint_object` and `setpoint_objects`, the ephemeral
resource `setpoint_secret`, and the resource `setpoint_wait`.

Imports `resources`, `framework` and `cty`; reaches clusters through `objects` alone, and loads that on use.
"""
