"""The schema of a kind, from the OpenAPI document of its API server or from its CustomResourceDefinition: which fields
there are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource
from setpoint.clients.kubernetes.requests import Endpoint, version_path
from setpoint.clients.response_bodies import decode_response, decode_tree
from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, PathStep, get_at, nearest
from setpoint.errors import ManifestInvalid, SetpointError
from setpoint.kinds.kubernetes_object.options import ApplyIntent

_KINDS: Final = "x-kubernetes-group-version-kind"
_OPEN: Final = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
_VERSIONS: Final = Path(("spec", "versions"))
_SCHEMA: Final = Path(("schema", "openAPIV3Schema"))
# So deep a field of the same name is looked for, and so many steps of references are followed.
_DEEPEST: Final = 5
_MOST_NEAR: Final = 3
_ADVICE: Final = "write a path that it has, or leave this out"
# Fields that every object has; the schema of a CustomResourceDefinition does not repeat them.
_COMMON: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class UnknownPath:
    """A path that a kind does not have; and those that may be meant, best first."""

    path: Path
    near: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class KindSchema:
    """The fields of a kind. `components` are the schemas that it refers to."""

    root: Mapping[str, Any]
    components: Mapping[str, Any] = field(default_factory=dict)

    def unknown(self, path: Path) -> UnknownPath | None:
        """What is wrong with a path; None for one that exists, or may: maps and open objects accept any key."""
        node: Mapping[str, Any] | None = self.root
        for depth, step in enumerate(path.steps):
            node = self._resolved(node)
            below = self._below(node, step)
            if below is None:
                if not _is_closed(node, step):
                    return None
                return UnknownPath(path, tuple(self._near(Path(path.steps[:depth]), node, path.steps[depth:])))
            node = below
        return None

    def _below(self, node: Mapping[str, Any], step: PathStep) -> Mapping[str, Any] | None:
        """The schema one step down; None when it says nothing about that step."""
        found = node.get("items") if not isinstance(step, str) else _member(node, step)
        return found if isinstance(found, Mapping) else None

    def _near(self, at: Path, node: Mapping[str, Any], steps: Sequence[PathStep]) -> Iterator[Path]:
        """Paths that may be meant: a field of the same name elsewhere, or another one here."""
        rest, step = Path(tuple(steps[1:])), str(steps[0])
        yield from self._named(step, self.root, Path())
        for name in nearest(step, list(_properties(node))):
            near = Path((*at.steps, name, *rest.steps))
            yield near if self.unknown(near) is None else Path((*at.steps, name))

    def _named(self, name: str, node: Mapping[str, Any], at: Path) -> Iterator[Path]:
        properties = _properties(self._resolved(node))
        if name in properties and at:
            yield at / name
        if len(at.steps) < _DEEPEST:
            for other, below in properties.items():
                if isinstance(below, Mapping) and (at or other not in _COMMON):
                    yield from self._named(name, below, at / other)

    def _resolved(self, node: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The schema itself: `$ref`, alone or as the only one of `allOf`, is followed."""
        for _ in range(_DEEPEST):
            parts = [] if node is None else node.get("allOf", [])
            inside = parts[0] if isinstance(parts, list) and len(parts) == 1 else node
            name = str(inside.get("$ref", "")).rpartition("/")[2] if isinstance(inside, Mapping) else ""
            if not name:
                break
            node = self.components.get(name)
        return node if isinstance(node, Mapping) else {}


def _member(node: Mapping[str, Any], name: str) -> object:
    return _properties(node).get(name) or node.get("additionalProperties")


def _properties(node: Mapping[str, Any]) -> Mapping[str, Any]:
    found = node.get("properties")
    return found if isinstance(found, Mapping) else {}


def _is_closed(node: Mapping[str, Any], step: PathStep) -> bool:
    """Whether an object has no other fields than those that its schema names. What has no fields at all is open."""
    is_open = any(node.get(name) for name in _OPEN) or node.get("additionalProperties") is not None
    return isinstance(step, str) and not is_open and bool(_properties(node))


# --- Where schemas come from -----------------------------------------------------------------------------------------


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, Any] = {}


class _Document(msgspec.Struct):
    components: _Components = _Components()


_documents: Final = msgspec.json.Decoder(_Document)
_objects: Final[msgspec.json.Decoder[dict[str, Json]]] = msgspec.json.Decoder(dict[str, Any])


async def served_schema(client: KubernetesClient, served: ApiResource) -> KindSchema | None:
    """The schema that the API server publishes for a kind; None when it does not answer with one."""
    path = f"/openapi/v3{version_path(served.group, served.version)}"
    try:
        response = await client.read(path, {"Accept": "application/json"})
        found = decode_response(_documents, response.body, f"GET {path}", MAX_LIST_VALUES).components.schemas
    except SetpointError:
        return None
    wanted = {"group": served.group, "version": served.version, "kind": served.kind}
    for schema in found.values():
        if isinstance(schema, Mapping) and wanted in schema.get(_KINDS, ()):
            return KindSchema(schema, found)
    return None


async def is_defined(client: KubernetesClient, served: ApiResource, version: str, fields: Sequence[Path] = ()) -> bool:
    """Whether the CustomResourceDefinition of a kind has a version, and these fields in it.

    The API server takes a moment to serve what was just defined.
    """
    if "." not in served.group:
        return False
    name = f"{served.plural}.{served.group}"
    try:
        body = await client.get(Endpoint("apiextensions.k8s.io", "v1", "customresourcedefinitions", None, name))
        definition = None if body is None else decode_tree(_objects, body, name)
    except SetpointError:
        return False
    versions = get_at(definition, _VERSIONS)
    for one in versions if isinstance(versions, list) else ():
        if text_at(one, "name") == version and isinstance(one, dict) and one.get("served") is True:
            schema = get_at(one, _SCHEMA)
            found = KindSchema({} if isinstance(schema, Missing) or not isinstance(schema, dict) else schema)
            return all(found.unknown(field) is None for field in fields)
    return False


# --- Ignored fields --------------------------------------------------------------------------------------------------


async def require_known_fields(client: KubernetesClient, served: ApiResource, request: ApplyIntent, live: Json) -> None:
    """ManifestInvalid for an ignored field that the kind does not have: it would be ignored in vain.

    The API server is asked only about paths that are in neither object; if it does not answer, they are accepted.
    """
    doubtful = [
        (position, path)
        for position, path in enumerate(request.ignored_fields)
        if all(isinstance(get_at(tree, path), Missing) for tree in (request.tree, live))
    ]
    schema = await served_schema(client, served) if doubtful else None
    for position, path in doubtful if schema is not None else ():
        unknown = None if schema is None else schema.unknown(path)
        if unknown is not None:
            advice = f"did you mean {' or '.join(map(str, unknown.near[:_MOST_NEAR]))}?" if unknown.near else _ADVICE
            what = f" is {str(path)!r}: {served.kind} of {served.api_version} has no such field; {advice}"
            raise ManifestInvalid(Message(FieldTerm(f"spec.ignoreFields[{position}]"), what))
