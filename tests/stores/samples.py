"""Resources that the tests of the stores are about."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from setpoint.core.values.json_types import Json, JsonObject
from setpoint.engine.ports import EventRecord, ResourceChange
from setpoint.engine.resource import Resource, ResourceRef

GROUP = "sql.cnrm.cloud.google.com"
REF = ResourceRef(GROUP, "SQLInstance", "default", "db")
SECRET_REF = ResourceRef("", "Secret", "default", "login")
FINALIZER = ("x.dev/f",)


def instance(name: str = "db", spec: Json = None, **metadata: Any) -> JsonObject:
    """A manifest: `instance(labels={"team": "a"})`."""
    wanted = {"settings": {"tier": "small"}} if spec is None else spec
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "SQLInstance",
        "metadata": {"name": name, **metadata},
        "spec": wanted,
    }


def secret(**members: Json) -> JsonObject:
    """A manifest: `secret(stringData={"password": "hunter2"})`."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, **members}


def metadata_of(resource: Resource) -> Mapping[str, Any]:
    metadata = resource.document["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def expected_document(resource: Resource, metadata: Mapping[str, Any]) -> JsonObject:
    """The document of a new `instance()` with this metadata of its author or owner."""
    written = {
        "uid": resource.uid,
        "resourceVersion": resource.revision,
        "generation": 1,
        "creationTimestamp": metadata_of(resource)["creationTimestamp"],
    }
    return instance(namespace="default", **metadata, **written)


def event_about(resource: Resource, message: str = "updated") -> EventRecord:
    """An event to be recorded with an update of `resource`."""
    return EventRecord(resource.ref, resource.uid, "Normal", "Updated", message, "2026-01-01T00:00:00Z")


async def take(events: AsyncIterator[ResourceChange], count: int) -> list[ResourceChange]:
    """The next events, as many as asked for. A watch that misses one must fail a test, not hang it."""
    async with asyncio.timeout(240):
        return [await anext(events) for _ in range(count)]


def brief(events: list[ResourceChange]) -> list[tuple[str, str]]:
    """The change and the name of each event."""
    return [(event.change.value, event.resource.ref.name) for event in events]


def as_known(resource: Resource) -> Mapping[str, Any]:
    """The document without its revision: a deletion event may carry the revision of the deletion."""
    metadata = {name: value for name, value in metadata_of(resource).items() if name != "resourceVersion"}
    return {**resource.document, "metadata": metadata}
