"""What `setpoint doctor` finds: checks of the store, of services, of the cluster and of processes.

Imported by the command line.
"""
