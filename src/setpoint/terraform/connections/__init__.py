"""The attribute `cluster`, and the clusters that this process is connected to.

Imported by everything in the provider that reaches a cluster; imports the framework, and below `terraform` the clients.
"""
