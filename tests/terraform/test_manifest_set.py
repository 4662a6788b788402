"""Manifests are split without loss: each object once, by its key, in one stage."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.yaml_documents import read_documents, write_document
from setpoint.errors import ManifestInvalid
from setpoint.terraform.cty.types import ObjectType
from setpoint.terraform.cty.values import UNKNOWN
from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.framework.schema import TerraformSchema, schema_type
from setpoint.terraform.functions.manifest_functions import Manifests
from setpoint.terraform.functions.manifest_set import ALL, CLUSTER_SCOPED_KINDS, STAGES, ManifestText, split_manifests
from setpoint.terraform.rpc.context import write_value
from setpoint.terraform.rpc.protobuf import provider_messages
from setpoint.terraform.rpc.service import ProviderService
from setpoint.terraform.setpoint_provider import SetpointProvider
from setpoint.terraform.sources.schemas import OBJECTS_SOURCE_SCHEMA, SECRET_SCHEMA
from tests.cluster.access import Access

MESSAGES = provider_messages()
NAMES = st.sampled_from(["a", "b", "web"])
KINDS = st.sampled_from(
    [
        ("v1", "Namespace", "namespaces"),
        ("v1", "ConfigMap", "namespaced"),
        ("apps/v1", "Deployment", "namespaced"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "crds"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "cluster_scoped"),
        ("acme.test/v1", "Anvil", "namespaced"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda below: st.dictionaries(st.text(), below, max_size=3)
)


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """A stage, a key and an object of it."""
    api_version, kind, stage = draw(KINDS)
    name, namespace = draw(NAMES), draw(NAMES | st.none()) if stage == "namespaced" else None
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    tree = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "data": draw(VALUES)}
    return stage, "/".join(part for part in (kind, namespace, name) if part), tree


@given(st.lists(objects(), unique_by=lambda one: one[1]), st.integers(0, 3), st.booleans())
def test_every_object_is_in_all_and_in_one_stage_and_reads_back_the_same(
    found: list[tuple[str, str, dict[str, Any]]], cut: int, as_list: bool
) -> None:
    trees = [tree for _, _, tree in found]
    texts = ["---\n".join(map(write_document, part)) for part in (trees[:cut], trees[cut:])]
    if as_list:
        texts = [write_document({"apiVersion": "v1", "kind": "List", "items": trees})]
    split = split_manifests([ManifestText(text, "a") for text in texts])

    assert {key: read_documents(text, "")[0].value for key, text in split[ALL].items()} == {
        key: tree for _, key, tree in found
    }
    assert {stage: set(split[stage]) for stage in STAGES} == {
        stage: {key for at, key, _ in found if at == stage} for stage in STAGES
    }
    assert sum(len(split[stage]) for stage in STAGES) == len(found)


@given(st.lists(objects(), min_size=1, unique_by=lambda one: one[1]), st.data())
def test_an_object_that_stands_twice_is_refused_with_both_lines(
    found: list[tuple[str, str, dict[str, Any]]], data: st.DataObject
) -> None:
    _, key, again = data.draw(st.sampled_from(found))
    texts = [ManifestText(write_document(tree), f"{at}.yaml") for at, (_, _, tree) in enumerate(found)]
    first = next(at for at, one in enumerate(found) if one[1] == key)

    with pytest.raises(ManifestInvalid) as refused:
        split_manifests([*texts, ManifestText("\n---\n" + write_document(again), "last.yaml")])
    assert str(refused.value) == f"last.yaml:3: {key} is at {first}.yaml:1 already: remove one of them"


def test_two_groups_with_one_key_are_told_apart() -> None:
    texts = [f"apiVersion: {group}/v1\nkind: Service\nmetadata: {{name: a}}\n" for group in ("b.test", "a.test")]

    with pytest.raises(ManifestInvalid, match=r"of another group \(b.test/v1 and a.test/v1\): split the two"):
        split_manifests([ManifestText("---\n".join(texts), "x")])


def test_the_stages_of_the_signature_are_those_of_the_result() -> None:
    assert isinstance(Manifests.returns, ObjectType)
    assert set(Manifests.returns.attributes) == {ALL, *STAGES}


def test_cluster_scoped_kinds_are_those_of_the_api_server(api_server: Access) -> None:
    served = set()
    for group in api_server.call("GET", "/apis").body["groups"]:
        for version in group["versions"]:
            listed = api_server.call("GET", f"/apis/{version['groupVersion']}").body["resources"]
            served |= {(group["name"], one["kind"]) for one in listed if _is_made(one)}
    core = api_server.call("GET", "/api/v1").body["resources"]
    served |= {("", one["kind"]) for one in core if _is_made(one)}
    # Kinds of custom resources that other tests have defined.
    built_in = {(group, kind) for group, kind in served if "." not in group or group.endswith(".k8s.io")}

    assert built_in - CLUSTER_SCOPED_KINDS == set()


def _is_made(resource: dict[str, Any]) -> bool:
    return not resource["namespaced"] and "/" not in resource["name"] and "list" in resource["verbs"]


@pytest.mark.parametrize(
    ("method", "name", "schema"),
    [
        ("ReadDataSource", "setpoint_objects", OBJECTS_SOURCE_SCHEMA),
        ("OpenEphemeralResource", "setpoint_secret", SECRET_SCHEMA),
    ],
)
def test_a_cluster_that_is_not_known_yet_is_told(method: str, name: str, schema: TerraformSchema) -> None:
    provider, values = SetpointProvider(), dict.fromkeys(schema.attributes)

    async def run() -> Any:
        service = ProviderService(provider, MESSAGES, ActiveCalls())
        configure = MESSAGES["ConfigureProvider.Request"]()
        write_value(configure.config, {"cluster": UNKNOWN}, schema_type(provider.schema))
        await service.handle("ConfigureProvider", configure)
        request = MESSAGES[f"{method}.Request"](type_name=name)
        write_value(request.config, values, schema_type(schema))
        return await service.handle(method, request)

    (shown,) = asyncio.run(run()).diagnostics
    assert shown.summary == "The cluster is not known yet"
    assert shown.detail.endswith("list the resource that makes the cluster in depends_on.")
