"""Installing setpoint: the manifests of an installation in a cluster and of its tenants; the Terraform plugin folder.

The only source of what `deploy/` and the chart hold. The front ends import it.
Imports engine, core and errors. Start with `manifests.controller_manifests`.
"""
