"""What the provider `setpoint` only reads: the data sources `setpoint_object` and `setpoint_objects`, and the ephemeral
resource `setpoint_secret`.

Imports `resources`, `framework` and `cty`; reaches clusters through `objects` alone, and loads that on use.
"""
