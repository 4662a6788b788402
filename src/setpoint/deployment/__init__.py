"""What it takes to run setpoint elsewhere: in a cluster, the one source of what `deploy/` holds; and from Terraform."""
