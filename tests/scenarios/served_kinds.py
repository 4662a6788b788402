"""A cluster that serves our kinds."""

from http import HTTPStatus
from typing import Any, Final

from setpoint.app import definitions
from tests.cluster.access import Access
from tests.cluster.polling import until

_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def paths() -> list[str]:
    """Where the resources of each kind are."""
    specs: list[Any] = [definition["spec"] for definition in definitions().values()]
    return [f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}" for spec in specs]


def serve_kinds(cluster: Access) -> None:
    """Returns when the cluster serves them."""
    for definition in definitions().values():
        made = cluster.call("POST", _CRDS, definition)
        assert made.status in (HTTPStatus.CREATED, HTTPStatus.CONFLICT), made
    until(lambda: all(cluster.call("GET", path).status == HTTPStatus.OK for path in paths()))


def empty(cluster: Access, namespace: str) -> None:
    """Nothing of ours is left in the namespace, and no clean-up was requested."""
    for path in (*paths(), "/api/v1/secrets"):
        group, _, plural = path.rpartition("/")
        where = f"{group}/namespaces/{namespace}/{plural}"
        for one in cluster.call("GET", where).body["items"]:
            name = one["metadata"]["name"]
            if one["metadata"].get("finalizers"):
                cluster.call("PATCH", f"{where}/{name}", {"metadata": {"finalizers": None}})
            cluster.call("DELETE", f"{where}/{name}")
