"""KubernetesObject: any object in any cluster, reconciled by server-side apply.

Start at `kind.py`: it validates manifests without a client; `remote.py`, loaded on first use, sends the requests.
Imported by `app` and `objects`.
"""
