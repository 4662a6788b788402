"""The resource `setpoint_patch`: fields of an object that another tool made.

It stands beside `terraform.resources`, takes its parts from there, and is imported by the provider alone.
"""
