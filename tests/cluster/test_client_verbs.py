"""The client on a real API server: every verb."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import (
    ApiWriteOptions,
    DeleteOptions,
    Endpoint,
    ObjectSelector,
    PatchType,
    Representation,
)
from setpoint.errors import (
    AlreadyExists,
    HeldByOthers,
    KindNotServed,
    RemoteConflict,
    RemoteInvalid,
    RemoteRefused,
    SetpointError,
)
from tests.clients.api_server_client import config_map, config_maps, names, tree, with_client
from tests.cluster.access import Access

Use = Callable[[KubernetesClient], Awaitable[Any]]


def refused(access: Access, kind: type[SetpointError], use: Use) -> SetpointError:
    with pytest.raises(kind) as caught:
        with_client(access.kubeconfig, use)
    assert type(caught.value) is kind
    return caught.value


# --- Whole objects ----------------------------------------------------------------------------------------------------


def test_creates_reads_changes_and_deletes(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def lifecycle(client: KubernetesClient) -> list[Any]:
        one = maps.named("one")
        before = await client.get(one)
        made = tree(await client.create(maps, config_map("one", a="1")))
        replaced = tree(await client.replace(one, made | {"data": {"a": "2"}}))
        merged = tree(await client.patch(one, {"data": {"b": "3"}}, PatchType.MERGE))
        patched = tree(await client.patch(one, [{"op": "remove", "path": "/data/a"}], PatchType.JSON))
        cached = tree(await client.get(one, cached=True))
        gone = await client.delete(one), await client.get(one), await client.delete(one)
        data = [one["data"] for one in (made, replaced, merged, patched)]
        return [before, *data, cached["metadata"]["name"], gone[0] is not None, *gone[1:]]

    assert with_client(api_server.kubeconfig, lifecycle) == [
        None,
        {"a": "1"},
        {"a": "2"},
        {"a": "2", "b": "3"},
        {"b": "3"},
        "one",
        True,
        None,
        None,
    ]


def test_a_name_that_is_taken_is_an_error(api_server: Access, namespace: str) -> None:
    async def twice(client: KubernetesClient) -> None:
        for _ in range(2):
            await client.create(config_maps(namespace), config_map("one"))

    refused(api_server, AlreadyExists, twice)


def test_a_concurrent_write_is_reported(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def race(client: KubernetesClient) -> None:
        made = tree(await client.create(maps, config_map("one")))
        await client.patch(maps.named("one"), {"data": {"a": "1"}}, PatchType.MERGE)
        await client.replace(maps.named("one"), made)

    refused(api_server, RemoteConflict, race)


@pytest.mark.parametrize("verb", ["replace", "patch"])
def test_a_write_to_a_deleted_object_is_a_conflict(verb: str, api_server: Access, namespace: str) -> None:
    one = config_maps(namespace).named("one")

    async def change(client: KubernetesClient) -> None:
        if verb == "replace":
            await client.replace(one, config_map("one") | {"metadata": {"name": "one", "resourceVersion": "1"}})
        else:
            await client.patch(one, {"data": {}}, PatchType.MERGE)

    refused(api_server, RemoteConflict, change)


def test_a_delete_with_preconditions_deletes_only_that_object(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def delete(client: KubernetesClient) -> list[Any]:
        metadata = tree(await client.create(maps, config_map("one")))["metadata"]
        await client.patch(maps.named("one"), {"data": {"a": "1"}}, PatchType.MERGE)
        for wrong in (DeleteOptions(uid="another"), DeleteOptions(resource_version=metadata["resourceVersion"])):
            with pytest.raises(RemoteConflict):
                await client.delete(maps.named("one"), wrong)
        deleted = await client.delete(maps.named("one"), DeleteOptions(uid=metadata["uid"]))
        return [deleted is not None, await client.get(maps.named("one"))]

    assert with_client(api_server.kubeconfig, delete) == [True, None]


def test_every_invalid_field_is_named(api_server: Access, namespace: str) -> None:
    services = Endpoint("", "v1", "services", namespace)
    wrong: Any = {"metadata": {"name": "one"}, "spec": {"ports": [{"port": 0}], "sessionAffinity": "Sometimes"}}

    error = refused(api_server, RemoteInvalid, lambda client: client.create(services, wrong))

    assert isinstance(error, RemoteInvalid)
    assert {field for field, _ in error.causes} >= {"spec.ports[0].port", "spec.sessionAffinity"}


def test_a_field_that_does_not_exist_is_refused(api_server: Access, namespace: str) -> None:
    wrong = config_map("one") | {"dta": {}}

    error = refused(api_server, RemoteRefused, lambda client: client.create(config_maps(namespace), wrong))

    assert 'unknown field "dta"' in str(error)


def test_a_missing_namespace_is_named_with_what_to_do(api_server: Access) -> None:
    maps = config_maps("no-such-namespace")

    error = refused(api_server, RemoteRefused, lambda client: client.create(maps, config_map("one")))

    assert str(error).endswith('namespaces "no-such-namespace" not found. Make the namespace first')


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("unknown.test", "v1", "widgets", "default", "one"),
        Endpoint("apps", "v7", "deployments", "default", "one"),
        Endpoint("", "v1", "configmaps", "default", "one", "status"),
    ],
    ids=["group", "version", "subresource"],
)
def test_a_kind_that_is_not_served_is_not_a_missing_object(endpoint: Endpoint, api_server: Access) -> None:
    refused(api_server, KindNotServed, lambda client: client.get(endpoint))


# --- Parts of objects -------------------------------------------------------------------------------------------------


def test_an_apply_leaves_fields_of_other_managers(api_server: Access, namespace: str) -> None:
    one = config_maps(namespace).named("one")

    async def apply(client: KubernetesClient) -> Any:
        await client.apply(one, config_map("one", ours="1"))
        await client.apply(one, config_map("one", theirs="1"), ApiWriteOptions("them"))
        return tree(await client.apply(one, config_map("one", ours="2")))["data"]

    assert with_client(api_server.kubeconfig, apply) == {"ours": "2", "theirs": "1"}


def test_a_conflict_names_the_field_manager_and_can_be_forced(api_server: Access, namespace: str) -> None:
    one = config_maps(namespace).named("one")

    async def conflict(client: KubernetesClient) -> Any:
        await client.apply(one, config_map("one", a="1", b="1"), ApiWriteOptions("them"))
        with pytest.raises(HeldByOthers) as caught:
            await client.apply(one, config_map("one", a="2"))
        forced = tree(await client.apply(one, config_map("one", a="2"), force=True))
        return caught.value.held, forced["data"]

    assert with_client(api_server.kubeconfig, conflict) == ((("data.a", "them"),), {"a": "2", "b": "1"})


def test_a_status_is_written_by_its_subresource(api_server: Access, namespace: str) -> None:
    budgets = Endpoint("policy", "v1", "poddisruptionbudgets", namespace)
    one = budgets.named("one")
    body: Any = {"metadata": {"name": "one"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    status = {"observedGeneration": 7, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}

    async def write(client: KubernetesClient) -> list[Any]:
        made = tree(await client.create(budgets, body))
        change = {"spec": {"minAvailable": 5}, "status": status | {"disruptionsAllowed": 0}}
        patched = tree(await client.patch(one.status, change, PatchType.MERGE))
        replaced = tree(await client.replace(one.status, patched | {"status": patched["status"] | {"expectedPods": 3}}))
        read = tree(await client.get(one.status))
        return [
            made["metadata"]["generation"] == read["metadata"]["generation"],
            read["spec"]["minAvailable"],
            patched["status"]["observedGeneration"],
            replaced["status"]["expectedPods"],
            read["status"] == replaced["status"],
        ]

    assert with_client(api_server.kubeconfig, write) == [True, 1, 7, 3, True]


def test_a_dry_run_answers_and_stores_nothing(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)
    one, dry = maps.named("one"), ApiWriteOptions(dry_run=True)

    async def dry_run(client: KubernetesClient) -> list[Any]:
        made = tree(await client.create(maps, config_map("one", a="1"), dry))
        nothing = await client.get(one)
        before = await client.create(maps, config_map("one", a="1"))
        dry_run_writes = [
            await client.patch(one, {"data": {"a": "2"}}, PatchType.MERGE, dry),
            await client.apply(one, config_map("one", a="2"), dry, force=True),
            await client.replace(one, config_map("one", a="2"), dry),
        ]
        await client.delete(one, DeleteOptions(dry_run=True))
        data = [tree(body)["data"] for body in dry_run_writes]
        return [made["data"], nothing, data, await client.get(one) == before]

    assert with_client(api_server.kubeconfig, dry_run) == [{"a": "1"}, None, [{"a": "2"}] * 3, True]


def test_a_write_that_changes_nothing_leaves_the_version(api_server: Access, namespace: str) -> None:
    one = config_maps(namespace).named("one")

    async def same(client: KubernetesClient) -> bool:
        return await client.apply(one, config_map("one", a="1")) == await client.apply(one, config_map("one", a="1"))

    assert with_client(api_server.kubeconfig, same)


# --- Lists ------------------------------------------------------------------------------------------------------------


async def make_many(client: KubernetesClient, maps: Endpoint, count: int) -> None:
    for number in range(count):
        labels = {"even": str(number % 2 == 0).lower()}
        await client.create(maps, {"metadata": {"name": f"m{number:02}", "labels": labels}, "data": {"a": "1"}})


def test_lists_page_by_page(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def list_all(client: KubernetesClient) -> list[Any]:
        await make_many(client, maps, 7)
        pages = [page async for page in client.pages(maps, size=3)]
        return [[names(page.items) for page in pages], len({page.resource_version for page in pages})]

    assert with_client(api_server.kubeconfig, list_all) == [
        [["m00", "m01", "m02"], ["m03", "m04", "m05"], ["m06"]],
        1,
    ]


def test_lists_what_is_selected(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def select(client: KubernetesClient) -> list[list[str]]:
        await make_many(client, maps, 4)
        by_label = await client.list(maps, ObjectSelector("even=true"))
        by_field = await client.list(maps, ObjectSelector(fields="metadata.name=m01"))
        return [names(by_label.items), names(by_field.items)]

    assert with_client(api_server.kubeconfig, select) == [["m00", "m02"], ["m01"]]


def test_reads_metadata_alone(api_server: Access, namespace: str) -> None:
    maps = config_maps(namespace)

    async def read(client: KubernetesClient) -> list[Any]:
        await make_many(client, maps, 1)
        page = await client.list(maps, ObjectSelector(representation=Representation.METADATA))
        return [
            tree(await client.get(maps.named("m00"), Representation.METADATA)),
            *(tree(bytes(one)) for one in page.items),
        ]

    one, listed = with_client(api_server.kubeconfig, read)

    assert (one["kind"], one["metadata"]["name"], "data" in one) == ("PartialObjectMetadata", "m00", False)
    assert (listed["metadata"]["labels"], "data" in listed) == ({"even": "true"}, False)
