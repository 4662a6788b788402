"""For all objects with secret values at random places: no call of the provider shows, logs or keeps one of them."""

import asyncio
import base64
import logging
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.core.values.yaml_documents import write_document
from setpoint.terraform.connections.clusters import ClusterConnections
from setpoint.terraform.cty.codec import encode_msgpack
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.framework.provider import ManagedResource, Registration
from setpoint.terraform.framework.schema import schema_type
from setpoint.terraform.resources.object_resource import ObjectResource
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA
from setpoint.terraform.rpc.context import read_value
from setpoint.terraform.rpc.protobuf import provider_messages
from setpoint.terraform.rpc.service import ProviderService
from setpoint.terraform.setpoint_provider import SetpointProvider
from tests.cluster.access import Access

MESSAGES: Final = provider_messages()
TYPE: Final = schema_type(OBJECT_SCHEMA)
EMPTY: Final[AttributeValues] = dict.fromkeys(OBJECT_SCHEMA.attributes)
# What the state has by design: the manifest, and the attribute that is sensitive.
STORED: Final = ("yaml_body", "manifest", "projection")
KEYS: Final = st.sampled_from(["password", "key", "name", "host", "image", "type", "url.txt"])
# The tail makes each one unlike any word; the rest is what quoting, escaping and YAML make difficult.
MARKS: Final = st.text("ab!*&@%{}[]\"'\\:#, é", max_size=8).map(lambda text: f"{text}hunter2-{len(text)}")
TEXTS: Final = st.dictionaries(KEYS, MARKS, min_size=1, max_size=3)


def _named(api_version: str, kind: str, annotations: Any, **members: Any) -> dict[str, Any]:
    metadata = {"name": "one", "annotations": annotations}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


def _pods(env: dict[str, str], args: list[str], *, port: Any) -> Any:
    variables = [{"name": name.replace(".", "_"), "value": value} for name, value in env.items()]
    container = {"name": "web", "image": "web:1", "env": variables, "args": args, "ports": [{"containerPort": port}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template}


# Objects that the API server takes, and objects whose error repeats a value.
OBJECTS: Final = st.one_of(
    st.builds(lambda texts, notes: _named("v1", "ConfigMap", notes, data=texts), TEXTS, TEXTS),
    st.builds(lambda texts, notes: _named("v1", "Secret", notes, stringData=texts), TEXTS, TEXTS),
    st.builds(
        lambda texts, args, notes: _named("apps/v1", "Deployment", notes, spec=_pods(texts, args, port=80)),
        TEXTS,
        st.lists(MARKS, max_size=2),
        TEXTS,
    ),
    st.builds(lambda texts, notes: _named("v1", "ConfigMap", notes, data={"a": texts}), TEXTS, TEXTS),
    st.builds(lambda mark, notes: _named("v1", "Secret", notes, data={"a": mark}), MARKS, TEXTS),
    st.builds(
        lambda mark, notes: _named(
            "v1", "Service", notes, spec={"ports": [{"port": 80}], "loadBalancerSourceRanges": [mark]}
        ),
        MARKS,
        TEXTS,
    ),
    st.builds(lambda mark: _named("v1", "ConfigMap", {"a": 1, "b": mark}, dtaa={"a": mark}), MARKS),
)


class ProviderCalls:
    """The RPCs of a provider process for one object; collects all that is shown or kept."""

    def __init__(self, clusters: ClusterConnections) -> None:
        provider = SetpointProvider()
        provider.resources = {"setpoint_object": Registration[ManagedResource].of(ObjectResource(clusters))}
        self._service = ProviderService(provider, MESSAGES, ActiveCalls(grace_s=0))
        self.shown = ""

    async def _call(self, method: str, **fields: Any) -> Any:
        request = MESSAGES[f"{method}.Request"](type_name="setpoint_object", **fields)
        response = await self._service.handle(method, request)
        self.shown += "".join(f"{one.summary} {one.detail}\n" for one in response.diagnostics)
        for kept in ("private", "planned_private"):
            self.shown += getattr(response, kept, b"").decode()
        return response

    def _read(self, message: Any) -> AttributeValues | None:
        """A state of a response; what is not stored by design is shown."""
        found = read_value(message, TYPE)
        if not isinstance(found, dict):
            return None
        self.shown += str({name: value for name, value in found.items() if name not in STORED})
        return found

    async def live(self, objects: list[dict[str, Any]]) -> None:
        """Applies one object after the other in the place of the first, reads it, and deletes it."""
        state: AttributeValues | None = None
        private = b""
        for tree in objects:
            config: AttributeValues = {**EMPTY, "yaml_body": write_document(tree)}
            await self._call("ValidateResourceConfig", config=_value(config))
            proposed = {**(EMPTY if state is None else state), "yaml_body": config["yaml_body"]}
            planned = await self._call(
                "PlanResourceChange",
                prior_state=_value(state),
                proposed_new_state=_value(proposed),
                config=_value(config),
                prior_private=private,
            )
            if self._read(planned.planned_state) is None or planned.requires_replace:
                continue
            applied = await self._call(
                "ApplyResourceChange",
                prior_state=_value(state),
                planned_state=planned.planned_state,
                config=_value(config),
                planned_private=planned.planned_private,
            )
            state, private = self._read(applied.new_state), applied.private
            if state is not None:
                again = await self._call("ReadResource", current_state=_value(state), private=private)
                state, private = self._read(again.new_state), again.private
        if state is not None:
            await self._call(
                "ApplyResourceChange",
                prior_state=_value(state),
                planned_state=_value(None),
                config=_value(None),
                planned_private=private,
            )


def _value(of: CtyValue) -> dict[str, bytes]:
    return {"msgpack": encode_msgpack(of, TYPE)}


def _marks_in(tree: Any) -> set[str]:
    if isinstance(tree, dict):
        return {mark for one in tree.values() for mark in _marks_in(one)}
    if isinstance(tree, list):
        return {mark for one in tree for mark in _marks_in(one)}
    return {tree} if isinstance(tree, str) and "hunter2" in tree else set()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OBJECTS, min_size=1, max_size=3))
@pytest.mark.laws
def test_no_call_shows_logs_or_keeps_a_value_that_may_be_secret(
    api_server: Access,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    objects: list[dict[str, Any]],
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    caplog.set_level(logging.DEBUG, logger="setpoint")
    caplog.clear()
    for tree in objects:
        tree["metadata"]["namespace"] = namespace

    async def main() -> str:
        clusters = ClusterConnections()
        calls = ProviderCalls(clusters)
        try:
            await calls.live(objects)
        finally:
            session = clusters.session(None)
            await session.clusters.close()
            await session.client.close()
        return calls.shown

    shown = asyncio.run(main()) + "".join(str(vars(record)) for record in caplog.records)

    for mark in _marks_in(objects):
        assert mark not in shown
        assert base64.b64encode(mark.encode()).decode() not in shown
    assert "hunter2" not in shown
    assert "A mistake of the provider" not in shown
