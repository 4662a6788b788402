"""States of other providers become states of `setpoint_object`, by either form of a provider's address."""

import asyncio
import json
from typing import Any

import pytest

from setpoint.terraform.cty.codec import decode_msgpack
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.framework.schema import schema_type
from setpoint.terraform.resources.object_move import is_moved_object
from setpoint.terraform.resources.object_state import read_private_state
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA
from setpoint.terraform.rpc.protobuf import provider_messages
from setpoint.terraform.rpc.service import ProviderService
from setpoint.terraform.setpoint_provider import SetpointProvider
from tests.terraform.objects.former_states import (
    FormerResource,
    config_map_tree,
    k8sconnect_object,
    kubectl_manifest,
    kubernetes_manifest,
)

MESSAGES = provider_messages()
TREE = config_map_tree("a", "shop", {"b": "1"})
EXEC = {"api_version": "client.authentication.k8s.io/v1", "command": "login", "args": ["-v"], "env": {"A": "b"}}
CLUSTER = {"host": "https://a:6443", "exec": {**EXEC, "added_later": 1}, "insecure": True, "added_later": {"a": 1}}
KUBECTL = ("HashiCorp", "kubectl-client-side-apply")
REF = {"api_version": "v1", "kind": "ConfigMap", "name": "a", "namespace": "shop"}


def move(source: FormerResource, address: str | None = None) -> Any:
    """The response to MoveResourceState."""
    request = MESSAGES["MoveResourceState.Request"](
        source_provider_address=f"registry.terraform.io/{source.provider}" if address is None else address,
        source_type_name=source.type,
        source_schema_version=source.version,
        source_state={"json": json.dumps(source.attributes).encode()},
        target_type_name="setpoint_object",
    )
    service = ProviderService(SetpointProvider(), MESSAGES, ActiveCalls())
    return asyncio.run(service.handle("MoveResourceState", request))


def moved(source: FormerResource, address: str | None = None) -> tuple[Any, tuple[str, ...]]:
    """The attributes of the moved state that are set, and the former field managers."""
    answer = move(source, address)
    assert [one.summary for one in answer.diagnostics] == []
    values = decode_msgpack(answer.target_state.msgpack, schema_type(OBJECT_SCHEMA))
    assert isinstance(values, dict)
    state = {name: to_json_tree(one) for name, one in values.items() if one is not None}
    return state, read_private_state(answer.target_private).taken_over


@pytest.mark.parametrize(
    ("source", "former"),
    [
        (kubernetes_manifest(TREE, uid="u"), ("Terraform",)),
        (kubernetes_manifest(TREE, manager="platform"), ("platform",)),
        (kubectl_manifest(TREE), KUBECTL),
        (kubectl_manifest(TREE, "alekc/kubectl", server_side_apply=True), ("kubectl", *KUBECTL)),
        (kubectl_manifest(TREE, "alekc/kubectl", server_side_apply=True, field_manager="me"), ("me", *KUBECTL)),
        (k8sconnect_object(TREE, {"host": "https://a"}), ("k8sconnect",)),
    ],
)
def test_a_state_keeps_its_manifest_and_names_the_former_managers(
    source: FormerResource, former: tuple[str, ...]
) -> None:
    state, found = moved(source)

    manifest = state.get("manifest") or json.loads(state["yaml_body"])
    assert (manifest, found, state["object_ref"]) == (TREE, former, REF)
    assert moved(source, source.provider.rpartition("/")[2]) == (state, former)


def test_the_cluster_and_settings_of_k8sconnect_are_carried_over() -> None:
    source = k8sconnect_object(TREE, CLUSTER)
    settings = {"delete_protection": True, "delete_timeout": "2m", "ignore_fields": ["data.b"], "force_destroy": True}
    state, _ = moved(FormerResource(source.type, source.provider, 2, {**source.attributes, **settings}))

    cluster = {name: one for name, one in state["cluster"].items() if one is not None}
    assert cluster == {"host": "https://a:6443", "exec": EXEC, "insecure": True}
    assert {name: state.get(name) for name in settings} == {**settings, "force_destroy": None}


def test_an_overridden_namespace_is_written_into_the_manifest() -> None:
    state, _ = moved(kubectl_manifest(TREE, override_namespace="other"))

    assert "namespace: other" in state["yaml_body"]
    assert state["object_ref"]["namespace"] == "other"


@pytest.mark.parametrize(
    ("source", "address", "shown"),
    [
        (kubernetes_manifest(TREE), "acme/other", "kubernetes_manifest cannot become setpoint_object"),
        (
            FormerResource("kubernetes_secret", "a/kubernetes", 0, {}),
            None,
            "kubernetes_secret cannot become setpoint_object",
        ),
        (kubectl_manifest(TREE, yaml_body="a: ["), None, "The state of kubectl_manifest cannot be read"),
        (kubectl_manifest(TREE, yaml_body=None), None, "The state of kubectl_manifest cannot be read"),
        (
            FormerResource("kubernetes_manifest", "a/kubernetes", 0, {}),
            None,
            "The state of kubernetes_manifest cannot be read",
        ),
        (k8sconnect_object(TREE, {"host": 1}), None, "The state of k8sconnect_object cannot be read"),
    ],
)
def test_other_states_are_refused_with_what_to_do(source: FormerResource, address: str | None, shown: str) -> None:
    (found,) = move(source, address).diagnostics

    assert found.summary == shown
    assert "import the object" in found.detail.lower()


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("shop", "shop", True),
        ("default", None, True),
        (None, "stray", True),
        ("shop", None, False),
        ("shop", "other", False),
    ],
)
def test_the_default_namespace_may_be_left_out(before: str | None, after: str | None, same: bool) -> None:
    state, _ = moved(k8sconnect_object({**TREE, "metadata": {"name": "a", "namespace": before}}, {}))
    tree = {**TREE, "metadata": {"name": "a"} if after is None else {"name": "a", "namespace": after}}

    assert is_moved_object(state, tree, "default") is same
    assert not is_moved_object(state, {**tree, "kind": "Secret"}, "default")
