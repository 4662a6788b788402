"""Client of Kubernetes API servers: kubeconfig, credentials, requests, errors, discovery, watches.

The Kubernetes store, KubernetesObject, owners and install import it, lazily where no cluster may be needed.
Imports clients.http, clients.ratelimit, core and errors. Start with `client.KubernetesClient`.
"""
