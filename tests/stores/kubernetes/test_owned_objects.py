"""The Kubernetes store and objects that an owner generates."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.owner import ObjectKind
from setpoint.engine.ports import ResourceQuery, Store
from setpoint.engine.resource import Resource, ResourceRef, Revision
from setpoint.errors import ManifestInvalid, StoreError, WriteConflict
from setpoint.stores.kubernetes.cache import ObjectCache
from setpoint.stores.kubernetes.factory import served_kinds
from setpoint.stores.kubernetes.served_kinds import ClusterScope
from setpoint.stores.kubernetes.store import KubernetesStore
from tests.cluster.access import Access
from tests.engine.clock import FakeClock
from tests.stores.kubernetes.crds import KINDS, wipe
from tests.stores.objects import CONFIG_MAP, DEPLOYMENT, OPAQUE, VOLUME, ref_of
from tests.stores.samples import REF, brief, instance, metadata_of, take

OTHERS = (
    ObjectKind("", "v1", "Secret", "secrets"),
    ObjectKind("", "v1", "ConfigMap", "configmaps"),
    ObjectKind("apps", "v1", "Deployment", "deployments"),
    ObjectKind("", "v1", "PersistentVolume", "persistentvolumes", is_namespaced=False),
)
SETTINGS = "/api/v1/namespaces/default/configmaps/settings"


class RecordingHttpClient(HttpClient):
    """Records the requests that are sent, without watches."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.sent.append(request.method)
        return await super().send(request)


@pytest.fixture
def http() -> RecordingHttpClient:
    return RecordingHttpClient()


def long_running(
    access: Access, clock: FakeClock, http: RecordingHttpClient, namespace: str | None = None
) -> KubernetesStore:
    """The store of a long-running process, for the contract's kinds and those that owners generate."""
    kinds = {**served_kinds(OTHERS, namespace, long_running=True), KINDS[0].name: KINDS[0]}
    client = KubernetesClient(connection_from_files([access.kubeconfig]), http=http)
    return KubernetesStore(client, clock, ClusterScope(kinds, "default", namespace), ObjectCache())


@pytest.fixture
def watching(prepared: Access, loop: asyncio.Runner, clock: FakeClock, http: RecordingHttpClient) -> Iterator[Store]:
    wipe(prepared)
    opened = long_running(prepared, clock, http)
    yield opened
    loop.run(opened.close())


def fields_of(access: Access, path: str) -> dict[str, Any]:
    """The field managers, with their fields."""
    managed = access.call("GET", path).body["metadata"]["managedFields"]
    return {one["manager"]: one["fieldsV1"] for one in managed}


class TestManagers:
    def test_fields_of_other_managers_stay_theirs(self, prepared: Access, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.create(CONFIG_MAP))
        prepared.call("PATCH", f"{SETTINGS}?fieldManager=other", {"data": {"b": "2"}})
        seen = loop.run(store.get(ref_of(CONFIG_MAP)))
        assert seen is not None

        loop.run(store.replace(seen, {**seen.document, "data": {"a": "3", "b": "2"}}))

        fields = fields_of(prepared, SETTINGS)
        assert set(fields) == {"setpoint-controller", "other"}
        assert fields["other"] == {"f:data": {"f:b": {}}}
        assert fields["setpoint-controller"]["f:data"] == {".": {}, "f:a": {}}

    def test_a_changed_field_becomes_ours(self, prepared: Access, store: Store, loop: asyncio.Runner) -> None:
        loop.run(store.create(CONFIG_MAP))
        prepared.call("PATCH", f"{SETTINGS}?fieldManager=other", {"data": {"a": "2"}})
        seen = loop.run(store.get(ref_of(CONFIG_MAP)))
        assert seen is not None

        loop.run(store.replace(seen, {**seen.document, "data": {"a": "3"}}))

        assert fields_of(prepared, SETTINGS)["setpoint-controller"]["f:data"] == {".": {}, "f:a": {}}
        assert "other" not in fields_of(prepared, SETTINGS)

    def test_the_last_applied_annotation_of_a_secret_stays(
        self, prepared: Access, store: Store, loop: asyncio.Runner
    ) -> None:
        copy = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
        secret = {**OPAQUE, "metadata": {"name": "login", "annotations": copy}}
        prepared.call("POST", "/api/v1/namespaces/default/secrets", secret)
        seen = loop.run(store.get(ref_of(OPAQUE)))
        assert seen is not None

        assert loop.run(store.replace(seen, seen.document)) == seen
        assert loop.run(store.replace(seen, {**seen.document, "data": {"a": "Mg=="}})).annotations == copy

    def test_server_side_defaults_are_kept(self, store: Store, loop: asyncio.Runner) -> None:
        made = loop.run(store.create(DEPLOYMENT))

        after = loop.run(store.replace(made, {**made.document, "spec": {**made.spec, "replicas": 2}}))

        assert after.spec == {**made.spec, "replicas": 2}
        assert (made.generation, after.generation) == (1, 2)

    def test_a_cluster_collects_garbage(self, store: Store) -> None:
        assert store.collects is True


class TestRefusals:
    @pytest.mark.parametrize(
        ("document", "message"),
        [
            (
                {**DEPLOYMENT, "spec": {**Resource(DEPLOYMENT).spec, "replicas": -1}},
                "Deployment default/web: the cluster does not take it: spec.replicas: Invalid value: -1",
            ),
            (
                {**DEPLOYMENT, "spec": {**Resource(DEPLOYMENT).spec, "replica": 1}},
                'unknown field "spec.replica"',
            ),
            (
                {**CONFIG_MAP, "metadata": {"name": "settings", "namespace": "nowhere"}},
                "ConfigMap nowhere/settings: the cluster does not take it: POST /api/v1/namespaces/nowhere/configmaps: "
                '404: NotFound: namespaces "nowhere" not found. Make the namespace first',
            ),
        ],
        ids=["invalid", "unknown field", "no namespace"],
    )
    def test_a_rejected_object_is_named_with_the_message_of_the_api_server(
        self, store: Store, loop: asyncio.Runner, document: JsonObject, message: str
    ) -> None:
        with pytest.raises(ManifestInvalid) as caught:
            loop.run(store.create(document))

        assert message in str(caught.value)
        assert loop.run(store.get(ref_of(DEPLOYMENT))) is None

    def test_a_rejected_replacement_is_named(self, store: Store, loop: asyncio.Runner) -> None:
        made = loop.run(store.create(DEPLOYMENT))
        selector = {"matchLabels": {"app": "another"}}

        with pytest.raises(ManifestInvalid, match=r"^Deployment default/web: .*field is immutable"):
            loop.run(store.replace(made, {**made.document, "spec": {**made.spec, "selector": selector}}))

        assert loop.run(store.get(ref_of(DEPLOYMENT))) == made

    def test_a_forbidden_write_names_the_missing_permission(
        self, prepared: Access, loop: asyncio.Runner, clock: FakeClock, cluster_scope: ClusterScope
    ) -> None:
        client = KubernetesClient(connection_from_files([prepared.kubeconfig_of("alice")]))
        store = KubernetesStore(client, clock, cluster_scope)

        with pytest.raises(ManifestInvalid, match=r"^ConfigMap default/settings: .*the verb create on configmaps in"):
            loop.run(store.create(CONFIG_MAP))

        loop.run(store.close())

    def test_a_kind_that_is_not_served_is_a_store_error(self, store: Store, loop: asyncio.Runner) -> None:
        with pytest.raises(StoreError, match=r"^the cluster serves no Nothing in none.dev/v1"):
            loop.run(store.create({**CONFIG_MAP, "apiVersion": "none.dev/v1", "kind": "Nothing"}))

    def test_a_namespace_outside_of_the_scope_is_refused(
        self, prepared: Access, loop: asyncio.Runner, clock: FakeClock, http: RecordingHttpClient
    ) -> None:
        store = long_running(prepared, clock, http, "one")

        with pytest.raises(ManifestInvalid, match="this store is the namespace one alone"):
            loop.run(store.create(CONFIG_MAP))

        loop.run(store.close())

    def test_a_conflicting_object_is_named_by_its_uid(
        self, prepared: Access, store: Store, loop: asyncio.Runner
    ) -> None:
        there = prepared.call("POST", "/api/v1/persistentvolumes", VOLUME).body["metadata"]["uid"]

        with pytest.raises(WriteConflict, match=rf"disk is there already \(uid {there}\)"):
            loop.run(store.create(VOLUME))


class TestRequests:
    def test_an_unchanged_document_is_not_sent(
        self, watching: Store, loop: asyncio.Runner, http: RecordingHttpClient
    ) -> None:
        made = [loop.run(watching.create(one)) for one in (CONFIG_MAP, OPAQUE, DEPLOYMENT, VOLUME)]
        http.sent.clear()

        again = [loop.run(watching.replace(one, one.document)) for one in made]

        assert (again, http.sent) == (made, [])

    def test_one_write_is_one_request(self, watching: Store, loop: asyncio.Runner, http: RecordingHttpClient) -> None:
        made = loop.run(watching.create(CONFIG_MAP))
        loop.run(watching.replace(made, {**made.document, "data": {}}))

        assert http.sent == ["POST", "PUT"]

    def test_a_written_object_is_in_the_cache_at_once(
        self, watching: Store, loop: asyncio.Runner, http: RecordingHttpClient
    ) -> None:
        is_delivered, is_read = asyncio.Event(), asyncio.Event()

        async def consume(since: Revision) -> None:
            events = watching.watch(since)
            for _ in range(3):
                await take(events, 1)
                is_delivered.set()
            # Without a watch, reads go to the API server, too.
            await is_read.wait()

        async def scenario() -> tuple[list[Resource | None], list[Resource], Resource | None]:
            consuming = asyncio.create_task(consume((await watching.list()).revision))
            made = await watching.create(instance())
            found = [await watching.get(REF)]
            after = await watching.replace(made, {**made.document, "spec": {"tier": "large"}})
            found.append(await watching.get(REF))
            # Until then, reads go to the API server.
            await is_delivered.wait()
            http.sent.clear()
            await watching.delete(REF)
            gone = await watching.get(REF)
            is_read.set()
            await consuming
            return found, [made, after], gone

        found, written, gone = loop.run(scenario())

        assert (found, gone) == (written, None)
        assert http.sent == ["DELETE"]


class TestWatching:
    def test_only_the_metadata_of_generated_objects_is_watched(self, watching: Store, loop: asyncio.Runner) -> None:
        since = loop.run(watching.list()).revision
        for document in (CONFIG_MAP, DEPLOYMENT, VOLUME, OPAQUE):
            loop.run(watching.create(document))

        events = loop.run(take(watching.watch(since), 4))

        assert sorted(brief(events)) == [("added", name) for name in ("disk", "login", "settings", "web")]
        assert [one.resource.document for one in events if "data" in one.resource.document] == []

    def test_cluster_scoped_objects_are_listed_only_without_a_namespace(
        self, watching: Store, loop: asyncio.Runner
    ) -> None:
        for document in (CONFIG_MAP, VOLUME):
            loop.run(watching.create(document))

        everything = loop.run(watching.list()).resources
        here = loop.run(watching.list(ResourceQuery(namespace="default"))).resources

        assert [ref_of(VOLUME) in [one.ref for one in found] for found in (everything, here)] == [True, False]
        assert metadata_of(next(one for one in here if one.ref == ref_of(CONFIG_MAP)))["labels"] == {"team": "a"}

    def test_a_store_for_one_namespace_reads_cluster_scoped_objects_and_does_not_list_them(
        self, prepared: Access, loop: asyncio.Runner, clock: FakeClock, http: RecordingHttpClient
    ) -> None:
        wipe(prepared)
        store = long_running(prepared, clock, http, "default")
        made = loop.run(store.create(VOLUME))

        assert ref_of(VOLUME) not in [one.ref for one in loop.run(store.list()).resources]
        assert loop.run(store.get(ResourceRef("", "PersistentVolume", "", "disk"))) == made
        loop.run(store.close())
