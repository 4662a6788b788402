"""The scope of a store in a cluster: namespaces of leases, and the kinds that are listed and watched."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Representation
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.owner import ObjectKind
from setpoint.engine.ports import EVERYTHING, ResourceList, ResourceQuery, Store
from setpoint.engine.tenancy.reference_grants import REFERENCE_GRANT, ReferenceGrantType
from setpoint.errors import ManifestInvalid, StoreError
from setpoint.stores.kubernetes.factory import ClusterAddress, cluster_address_in, open_kubernetes, served_kinds
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from tests.engine.clock import FakeClock
from tests.engine.gadgets import GadgetKind, Service


class EmptyCluster(HttpClient):
    """A cluster without objects; it records the requested paths."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.paths.append(request.url.removeprefix("https://a.test").partition("?")[0])
        return HttpResponse(
            200, {"Content-Type": "application/json"}, b'{"metadata": {"resourceVersion": "1"}, "items": []}'
        )


def _lease_namespaces(url: str, environment: Mapping[str, str], *, long_running: bool) -> list[str]:
    """The namespaces whose leases are read."""
    http = EmptyCluster()
    client = KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=http)
    store = open_kubernetes(cluster_address_in(url, environment), client, (), FakeClock(), long_running=long_running)
    asyncio.run(_leases(store))
    return [path.split("/")[5] for path in http.paths]


async def _leases(store: Store) -> None:
    await store.leases("setpoint-")
    await store.close()


@pytest.mark.parametrize(
    ("url", "environment", "namespace"),
    [
        ("kubernetes", {}, "setpoint-system"),
        ("kubernetes", {"POD_NAMESPACE": "controllers"}, "controllers"),
        ("kubernetes?namespace=team-a", {}, "team-a"),
        ("kubernetes?namespace=team-a", {"POD_NAMESPACE": "controllers"}, "controllers"),
    ],
)
def test_a_controller_has_its_leases_in_the_namespace_of_its_pod_or_of_its_scope(
    url: str, environment: dict[str, str], namespace: str
) -> None:
    assert _lease_namespaces(url, environment, long_running=True) == [namespace]


def test_a_command_reads_the_leases_of_its_namespace_and_of_the_whole_cluster() -> None:
    assert _lease_namespaces("kubernetes", {}, long_running=False) == ["setpoint-system"]
    assert _lease_namespaces("kubernetes?namespace=team-a", {}, long_running=False) == ["team-a", "setpoint-system"]


# --- Grants -----------------------------------------------------------------------------------------------------------


def _grant_requests(url: str, *, long_running: bool) -> list[str]:
    """The paths that are requested for the grants of the namespace team-b."""
    http = EmptyCluster()
    client = KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=http)
    address = cluster_address_in(url, {})
    store = open_kubernetes(address, client, (ReferenceGrantType(),), FakeClock(), long_running=long_running)

    async def grants() -> None:
        assert await store.all_in("team-b", REFERENCE_GRANT) == ()
        await store.close()

    asyncio.run(grants())
    return http.paths


def test_the_grants_of_a_namespace_are_listed_there_until_they_are_watched() -> None:
    path = "/apis/setpoint.dev/v1alpha1/namespaces/team-b/referencegrants"

    assert _grant_requests("kubernetes", long_running=False) == [path]
    assert _grant_requests("kubernetes", long_running=True) == [path]


def test_a_store_of_another_namespace_reads_no_grants() -> None:
    assert _grant_requests("kubernetes?namespace=team-a", long_running=True) == []


def test_a_controller_watches_grants_and_a_command_does_not_list_them() -> None:
    kinds = served_kinds((ReferenceGrantType(),), long_running=True)
    of_command = served_kinds((ReferenceGrantType(),), long_running=False)

    assert (kinds[REFERENCE_GRANT].listed, kinds[REFERENCE_GRANT].form) == (True, Representation.WHOLE)
    assert not of_command[REFERENCE_GRANT].listed


SECRET = ObjectKind("", "v1", "Secret", "secrets")
CONFIG_MAP = ObjectKind("", "v1", "ConfigMap", "configmaps")
VOLUME = ObjectKind("", "v1", "PersistentVolume", "persistentvolumes", is_namespaced=False)
GADGET = ObjectKind("test.setpoint.dev", "v1", "Gadget", "gadgets")
KINDS = (GadgetKind(Service()), SECRET, CONFIG_MAP, VOLUME, GADGET)


def _scope(namespace: str | None = None, *, long_running: bool) -> ClusterScope:
    return ClusterScope(served_kinds(KINDS, namespace, long_running=long_running), "leases", namespace)


def _listed(cluster_scope: ClusterScope, query: ResourceQuery = EVERYTHING) -> list[str]:
    """The paths at which kinds are listed."""
    return [kind.all_in(cluster_scope.place(query)).path for kind in cluster_scope.kinds_for(query)]


def test_a_controller_watches_only_the_metadata_of_generated_objects() -> None:
    cluster_scope = _scope(long_running=True)

    assert _listed(cluster_scope) == [
        "/api/v1/configmaps",
        "/api/v1/namespaces",
        "/api/v1/persistentvolumes",
        "/api/v1/secrets",
        "/apis/test.setpoint.dev/v1/gadgets",
    ]
    # Of a Namespace, metadata is all that a step looks at.
    assert cluster_scope.cached == {("test.setpoint.dev", "Gadget"), ("", "Namespace")}
    assert [kind.form for kind in cluster_scope.kinds.values()].count(Representation.METADATA) == 4


def test_a_controller_of_one_namespace_watches_no_cluster_scoped_kind() -> None:
    assert _listed(_scope("team-a", long_running=True)) == [
        "/api/v1/namespaces/team-a/configmaps",
        "/api/v1/namespaces/team-a/secrets",
        "/apis/test.setpoint.dev/v1/namespaces/team-a/gadgets",
    ]


@pytest.mark.parametrize("namespace", [None, "team-a"])
def test_a_command_lists_only_kinds_with_a_controller(namespace: str | None) -> None:
    cluster_scope = _scope(namespace, long_running=False)

    assert [kind.kind for kind in cluster_scope.kinds_for(EVERYTHING)] == ["Gadget"]
    assert _listed(cluster_scope, ResourceQuery(kind="PersistentVolume")) == ["/api/v1/persistentvolumes"]
    assert cluster_scope.cached == {("test.setpoint.dev", "Gadget")}
    assert {kind.form for kind in cluster_scope.kinds.values()} == {Representation.WHOLE}


def test_a_query_for_one_namespace_lists_no_cluster_scoped_kind() -> None:
    cluster_scope = _scope(long_running=True)

    assert _listed(cluster_scope, ResourceQuery(namespace="team-a")) == [
        "/api/v1/namespaces/team-a/configmaps",
        "/api/v1/namespaces/team-a/secrets",
        "/apis/test.setpoint.dev/v1/namespaces/team-a/gadgets",
    ]


def test_a_controller_watches_secrets_only_where_they_are_named() -> None:
    without = served_kinds([GadgetKind(Service())], long_running=True)

    assert [kind.kind for kind in without.values()] == ["Namespace", "Gadget"]


# --- Kinds without a CRD ----------------------------------------------------------------------------------------------


class PartlyServed(EmptyCluster):
    """A cluster that serves these plurals, and none else."""

    def __init__(self, *plurals: str) -> None:
        super().__init__()
        self.plurals = plurals

    async def send(self, request: HttpRequest) -> HttpResponse:
        found = await super().send(request)
        if self.paths[-1].rpartition("/")[2] in self.plurals:
            return found
        return HttpResponse(404, {"Content-Type": "text/plain"}, b"404 page not found\n")


@dataclass(slots=True)
class WidgetKind(GadgetKind):
    """Another kind."""

    name: str = "Widget"


async def _list(http: EmptyCluster, *, long_running: bool) -> ResourceList:
    client = KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=http)
    kinds = GadgetKind(Service()), WidgetKind(Service())
    store = open_kubernetes(ClusterAddress(), client, kinds, FakeClock(), long_running=long_running)
    try:
        return await store.list()
    finally:
        await store.close()


@pytest.mark.parametrize("long_running", [False, True])
def test_a_kind_without_a_crd_is_empty(long_running: bool) -> None:
    listing = asyncio.run(_list(PartlyServed("gadgets", "namespaces"), long_running=long_running))

    assert listing.resources == ()
    # A watch from there shows everything, once there is a CRD.
    expected = "Gadget.test.setpoint.dev=1,Widget.test.setpoint.dev=0"
    assert listing.revision == (f"Namespace.=1,{expected}" if long_running else expected)


def test_a_command_without_any_crd_says_how_to_install_them() -> None:
    with pytest.raises(StoreError) as raised:
        asyncio.run(_list(PartlyServed(), long_running=False))

    assert str(raised.value) == (
        "the cluster does not serve Gadget, Widget, for want of a CustomResourceDefinition: "
        "`setpoint crds Gadget Widget | kubectl apply --server-side -f -` installs it"
    )


# --- Manifests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"apiVersion": "setpoint.dev/v9"},
            "ReferenceGrant g: apiVersion: there is no ReferenceGrant of setpoint.dev/v9; "
            "did you mean setpoint.dev/v1alpha1?",
        ),
        ({"sepc": {}}, "ReferenceGrant g: there is no field sepc; did you mean spec?"),
        ({"from": []}, "ReferenceGrant g: there is no field from; did you mean spec.from?"),
        ({"spec": []}, "ReferenceGrant g: spec is no map: write its fields below it, each with its name"),
    ],
)
def test_a_manifest_that_the_cluster_would_prune_or_not_find_is_refused_before_any_request(
    change: JsonObject, message: str
) -> None:
    http = EmptyCluster()
    client = KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=http)
    store = open_kubernetes(ClusterAddress(), client, (ReferenceGrantType(),), FakeClock(), long_running=False)
    grant: JsonObject = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "ReferenceGrant", "metadata": {"name": "g"}}

    async def refusal() -> str:
        with pytest.raises(ManifestInvalid) as refused:
            await store.apply({**grant, **change})
        await store.close()
        return str(refused.value)

    assert (asyncio.run(refusal()), http.paths) == (message, [])
