"""Leases of processes that tests kill."""

from collections.abc import Callable

from tests.cluster.access import Access


def shorten_leases(access: Access, namespace: str, is_dead: Callable[[str], bool]) -> None:
    """Lets the leases of dead holders expire after one second instead of 15: other processes still wait for that."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    for lease in access.call("GET", path).body["items"]:
        if is_dead(lease["spec"].get("holderIdentity") or ""):
            patched = access.call("PATCH", f"{path}/{lease['metadata']['name']}", {"spec": {"leaseDurationSeconds": 1}})
            assert patched.status == 200, patched
