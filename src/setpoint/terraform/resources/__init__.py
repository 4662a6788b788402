"""The resources and data sources of the provider `setpoint`: `setpoint_object` and `setpoint_wait`.

Imports `framework` and `cty`; reaches clusters through `objects` alone, and loads that only when a cluster is needed.
"""
