"""What an author's manifest becomes in a cluster."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from setpoint.clients.kube_endpoints import Endpoint, Write
from setpoint.core.canonical import same
from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.engine.resource import Resource, ResourceRef, Tree
from setpoint.errors import ManifestInvalid
from setpoint.stores.manifests import Authored, being_deleted, read_manifest
from setpoint.stores.records import decode

# Whose fields are whose: what authors apply, and what the engine patches.
AUTHOR, ENGINE = Write("setpoint"), Write("setpoint-controller")
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_LABELLED: Final = ("labels", "annotations", "ownerReferences")


def to_apply(manifest: Tree) -> Authored:
    """The author's part; ManifestInvalid for what a cluster would keep as something else."""
    authored = read_manifest(manifest)
    require_short_numbers(authored.ref, decode(authored.body))
    return authored


def require_short_numbers(ref: ResourceRef, body: Tree) -> None:
    """ManifestInvalid for a number that a cluster would keep as something else."""
    for path, number in _too_long(body, Path(())):
        raise ManifestInvalid(
            f"{ref.kind} {ref.name}: {path} cannot be {number}: "
            "a cluster keeps whole numbers of 64 bits, and would round it"
        )


def version_of(authored: Authored) -> str:
    """The version of the API group that the author writes: the cluster knows what it means in another."""
    return str(decode(authored.body)["apiVersion"]).rpartition("/")[2]


def apply_body(authored: Authored, endpoint: Endpoint, present: bytes | None = None) -> Tree:
    """The object to send to `endpoint`, to apply it or to make it: all that the author says, and nothing else.

    An annotation of the engine's that the author repeats, having read it, stays the engine's alone.
    """
    body: dict[str, Any] = decode(authored.body)
    if authored.secret:
        body["data"] = decode(authored.secret)
    repeated = {} if present is None else engine_annotations(present)
    said = authored.metadata.get("annotations", {})
    own = {key: text for key, text in said.items() if repeated.get(key) != text}
    metadata = {"name": authored.ref.name, "namespace": endpoint.namespace, **authored.metadata, "annotations": own}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value}}


class _Fields(msgspec.Struct):
    manager: str = ""
    owned: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class _Metadata(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    managed_fields: list[_Fields] = msgspec.field(default_factory=list)


class _Object(msgspec.Struct):
    metadata: _Metadata


_objects: Final = msgspec.json.Decoder(_Object)


def engine_annotations(present: bytes) -> dict[str, str]:
    """The annotations of an object that the engine was the last to change."""
    metadata = _objects.decode(present).metadata
    owned: set[str] = set()
    for one in metadata.managed_fields:
        if one.manager == ENGINE.field_manager:
            owned |= set(one.owned.get("f:metadata", {}).get("f:annotations", {}))
    return {key: text for key, text in metadata.annotations.items() if f"f:{key}" in owned}


def require_open_to(authored: Authored, present: Resource) -> None:
    """NotReady while the resource is being deleted, unless its annotations or labels are all that is new."""
    if not present.is_deleting:
        return
    metadata = present.document["metadata"]
    assert isinstance(metadata, dict)
    body = {name: value for name, value in present.document.items() if name not in ("metadata", "status", "data")}
    data = present.document.get("data")
    is_same = same(decode(authored.body), body) and same(decode(authored.secret) if authored.secret else None, data)
    says_more = any(_adds(authored.metadata.get(name), metadata.get(name)) for name in _LABELLED)
    if not (says_more and is_same):
        raise being_deleted(present.ref)


def _too_long(value: Any, path: Path) -> Iterator[tuple[Path, int]]:  # noqa: ANN401 - any JSON
    if isinstance(value, bool):
        return
    if isinstance(value, int) and not _LEAST <= value <= _GREATEST:
        yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _too_long(member, path / name)
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _too_long(member, path / position)


def _adds(said: Json, present: Json) -> bool:
    """Whether something is said that is not there."""
    if isinstance(said, dict) and isinstance(present, dict):
        return any(present.get(key) != value for key, value in said.items())
    return bool(said) and not same(said, present)
