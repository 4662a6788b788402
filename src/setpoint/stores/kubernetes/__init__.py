"""Resources as custom resources of a Kubernetes cluster."""
