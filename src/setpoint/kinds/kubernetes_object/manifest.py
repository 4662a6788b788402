"""The manifest in a KubernetesObject: parsed, validated, with references replaced by values of other resources.

A reference is `{"$ref": {…}}`, or `${ref:KIND/NAME:PATH}` inside text; `$${ref:` is the plain text `${ref:`. A `$ref`
whose value is text is not a reference.
"""

import base64
import binascii
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from msgspec import UNSET

from setpoint.core.redaction import is_secret
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import MAX_VALUES
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.messages import FieldTerm, Message, SubjectTerm, message_of
from setpoint.core.values.paths import Path, nearest, scalar_text
from setpoint.engine.kind import ANY_GROUP, ResolvedReferences, ValueReference
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import Blocked, ManifestInvalid, YamlInvalid
from setpoint.kind.typed_spec import decode_spec, field_invalid
from setpoint.kinds.kubernetes_object.spec import MANIFEST, KubernetesObjectSpec

REF: Final = "$ref"
# The longest manifest as text that is kept parsed.
_LONGEST_KEPT: Final = 16_384
_MEMBERS: Final = ("kind", "name", "namespace", "group", "path")
_NEEDED: Final = ("kind", "name", "path")
# In this order: an escaped reference, a complete one, an incomplete one.
_INLINE: Final = re.compile(
    r"(?P<escaped>\$\$\{ref:)|\$\{ref:(?P<target>[^:{}]*):(?P<path>[^{}]+)\}|(?P<broken>\$\{ref:)"
)


@dataclass(frozen=True, slots=True)
class ManifestTemplate:
    """A manifest with references; `namespace` is the default namespace of their targets."""

    tree: Json
    where: str
    namespace: str

    def dependencies(self) -> tuple[ValueReference, ...]:
        """All references, each with its field; ManifestInvalid for one that is malformed."""
        return tuple({dependency.field: dependency for dependency in self._walk(self.tree, self.where)}.values())

    def substituted(self, values: Mapping[str, Json]) -> Json:
        """The manifest with each reference replaced by its value; Blocked for one that is not in `values`."""
        return _Substitution(self, values).value(self.tree, self.where)

    def _walk(self, tree: Json, at: str) -> Iterator[ValueReference]:
        match tree:
            case dict() if _is_reference(tree):
                yield self.reference(tree, at)
            case dict():
                for name, below in tree.items():
                    yield from self._walk(below, f"{at}{_below(name)}")
            case list():
                for position, below in enumerate(tree):
                    yield from self._walk(below, f"{at}[{position}]")
            case str() if "${ref:" in tree:
                yield from (self.inside(found, at) for found in _INLINE.finditer(tree) if not found["escaped"])
            case _:
                return

    def reference(self, tree: Mapping[str, Json], at: str) -> ValueReference:
        """The reference of `{"$ref": {…}}`."""
        if len(tree) > 1:
            raise ManifestInvalid(
                Message(FieldTerm(at), f": {REF} stands for a whole value: leave out what is beside it")
            )
        members = _members(tree[REF], at)
        kind, name, path = (members[one] for one in _NEEDED)
        group, namespace = members.get("group", ANY_GROUP), members.get("namespace", self.namespace)
        field = Message(FieldTerm(f"{at}.{REF}"))
        target = ResourceRef(group, kind, namespace, name)
        return ValueReference(field, target, _path(path, Message(FieldTerm(f"{at}.{REF}.path"))))

    def inside(self, found: "re.Match[str]", at: str) -> ValueReference:
        """The reference of `${ref:…}` inside text."""
        parts = (found["target"] or "").split("/")
        if found["broken"] or len(parts) not in (2, 3) or not all(parts):
            advice = ": write ${ref:KIND/NAME:PATH} or ${ref:KIND/NAMESPACE/NAME:PATH}; $${ref: is plain text"
            raise ManifestInvalid(Message(FieldTerm(at), advice))
        kind, _, group = parts[0].partition(".")
        namespace = parts[1] if len(parts) == 3 else self.namespace
        field = Message(FieldTerm(at), f" {found[0]}")
        return ValueReference(
            field, ResourceRef(group or ANY_GROUP, kind, namespace, parts[-1]), _path(found["path"], field)
        )


@dataclass(frozen=True, slots=True)
class _Substitution:
    manifest: ManifestTemplate
    values: Mapping[str, Json]

    def value(self, tree: Json, at: str) -> Json:
        match tree:
            case dict() if _is_reference(tree):
                return self._known(self.manifest.reference(tree, at))
            case dict():
                return {name: self.value(below, f"{at}{_below(name)}") for name, below in tree.items()}
            case list():
                return [self.value(below, f"{at}[{position}]") for position, below in enumerate(tree)]
            case str() if "${ref:" in tree:
                return _INLINE.sub(lambda found: self._text(found, at), tree)
            case _:
                return tree

    def _text(self, found: "re.Match[str]", at: str) -> str:
        if found["escaped"]:
            return "${ref:"
        dependency = self.manifest.inside(found, at)
        text = scalar_text(self._known(dependency))
        if text is None:
            problem = ": the value is a list or a map, which has no place inside a text"
            raise ManifestInvalid(Message(dependency.field, problem))
        return text

    def _known(self, dependency: ValueReference) -> Json:
        found: Json | Missing = self.values.get(dependency.field, MISSING)
        if isinstance(found, Missing):
            missing = f": the value at {dependency.path} of {dependency.target} is not known yet"
            raise Blocked(Message(dependency.field, missing))
        return found


def _is_reference(tree: Mapping[str, Json]) -> bool:
    return isinstance(tree.get(REF), dict)


def _below(name: str) -> str:
    return f".{name}" if "." not in name else str(Path((name,)))


def _members(data: Json, at: str) -> Mapping[str, str]:
    assert isinstance(data, dict)
    for name, text in data.items():
        if name not in _MEMBERS:
            near = nearest(name, _MEMBERS)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(_MEMBERS)}"
            raise ManifestInvalid(Message(FieldTerm(f"{at}.{REF}.{name}"), f": no such member; {hint}"))
        if not isinstance(text, str) or not text:
            raise ManifestInvalid(Message(FieldTerm(f"{at}.{REF}.{name}"), ": write text"))
    for name in _NEEDED:
        if name not in data:
            raise ManifestInvalid(Message(FieldTerm(f"{at}.{REF}.{name}"), " is missing: write kind, name and path"))
    return data


def _path(text: str, where: Message) -> Path:
    try:
        return Path.parse(text)
    except ManifestInvalid as error:
        raise ManifestInvalid(Message(where, ": ", message_of(error))) from error


_SERVER_SET: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"),
)
_API_VERSION: Final = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z][a-z0-9]*")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# A resource without any of these texts contains no reference.
_MENTIONS: Final = (REF, "${ref:")


def spec_of(resource: Resource) -> KubernetesObjectSpec:
    """The decoded spec."""
    return decode_spec(resource, KubernetesObjectSpec)


def manifest_of(resource: Resource, spec: KubernetesObjectSpec) -> ManifestTemplate:
    """The manifest as written; ManifestInvalid unless it is exactly one document."""
    where = Message(SubjectTerm(str(resource.ref)), FieldTerm(MANIFEST))
    tree: Json = spec.manifest if isinstance(spec.manifest, dict) else _read(spec.manifest, where)
    return ManifestTemplate(tree, MANIFEST, resource.ref.namespace)


def may_contain_references(resource: Resource) -> bool:
    """Whether the resource may contain references. False is certain."""
    return resource.mentions(*_MENTIONS)


def check_manifest(resource: Resource, spec: KubernetesObjectSpec) -> None:
    """ManifestInvalid for what is not an object, or sets fields that only the API server sets."""
    manifest = manifest_of(resource, spec)
    manifest.dependencies()
    _Validation(resource, manifest.tree).require(is_final=False)


def desired_object(resource: Resource, resolved: ResolvedReferences) -> dict[str, Json]:
    """The desired object, with references resolved; a Secret has all its values in `data`.

    A step asks twice: where the object is, and what it is to be.
    """
    for known, values, made in _last_made:
        if known is resource and values is resolved:
            return made
    manifest = manifest_of(resource, spec_of(resource))
    if may_contain_references(resource):
        return _Validation(resource, manifest.substituted(resolved.values)).require(is_final=True)
    desired = _Validation(resource, manifest.tree).require(is_final=True)
    _last_made.append((resource, resolved, desired))
    return desired


# The last one. Without references: their values may be secret, and are not kept.
_last_made: Final[deque[tuple[Resource, ResolvedReferences, dict[str, Json]]]] = deque(maxlen=1)


def _read(text: str, where: Message) -> Json:
    try:
        documents = _documents(text)
    except YamlInvalid as error:
        raise ManifestInvalid(Message(where, f", line {error.line}: {error.why}")) from error
    if len(documents) != 1:
        problem = f" has {len(documents)} documents: write one, and a KubernetesObject for each"
        raise ManifestInvalid(Message(where, problem))
    return documents[0]


def _documents(text: str) -> tuple[Json, ...]:
    if len(text) <= _LONGEST_KEPT:
        return _short_documents(text)
    return _parsed(text)


# Few and short ones: decoded, they take up to a hundred times the space, and tenants write them.
@lru_cache(maxsize=64)
def _short_documents(text: str) -> tuple[Json, ...]:
    return _parsed(text)


def _parsed(text: str) -> tuple[Json, ...]:
    # Most manifests are maps: the YAML reader is imported for text only.
    from setpoint.core.values.yaml_documents import read_documents

    return tuple(document.value for document in read_documents(text, "", MAX_VALUES))


def is_aggregated_role(tree: Mapping[str, Json]) -> bool:
    """Whether it is a ClusterRole whose rules a controller gathers from other roles."""
    is_role = str(tree.get("apiVersion")).startswith("rbac.authorization.k8s.io/") and tree.get("kind") == "ClusterRole"
    return is_role and isinstance(tree.get("aggregationRule"), dict)


class _Validation:
    """Validates the manifest of a resource."""

    def __init__(self, resource: Resource, tree: Json) -> None:
        self._resource = resource
        self._tree = tree

    def require(self, *, is_final: bool) -> dict[str, Json]:
        """The validated object. Unless it `is_final`, its names may still be references."""
        if not isinstance(self._tree, dict):
            raise field_invalid(
                self._resource, MANIFEST, " is no object: write apiVersion, kind, metadata and what belongs to it"
            )
        self._require_type(self._tree)
        metadata = self._tree.get("metadata")
        if not isinstance(metadata, dict):
            raise field_invalid(self._resource, f"{MANIFEST}.metadata", " is missing: write metadata.name")
        self._require_identity(metadata, is_final=is_final)
        self._refuse_server_set(metadata)
        kept: dict[str, Json] = {name: value for name, value in self._tree.items() if name != "status"}
        kept["metadata"] = {name: value for name, value in metadata.items() if name not in _SERVER_SET}
        if is_aggregated_role(kept) and not kept.get("rules"):
            # A controller fills them in; none are declared, and an empty list would be.
            kept.pop("rules", None)
        is_hidden = is_secret(kept)
        return self._secret(kept) if is_hidden and is_final else kept

    def _require_type(self, tree: Mapping[str, Json]) -> None:
        api_version, kind = tree.get("apiVersion"), tree.get("kind")
        if not isinstance(api_version, str) or not _API_VERSION.fullmatch(api_version):
            raise field_invalid(
                self._resource, f"{MANIFEST}.apiVersion", f" is {_shown(api_version)}: write one such as v1 or apps/v1"
            )
        if not isinstance(kind, str) or not _KIND.fullmatch(kind):
            raise field_invalid(self._resource, f"{MANIFEST}.kind", f" is {_shown(kind)}: write one such as Deployment")
        if kind == "List":
            raise field_invalid(self._resource, MANIFEST, " is a List: write a KubernetesObject for each of its items")

    def _require_identity(self, metadata: Mapping[str, Json], *, is_final: bool) -> None:
        if "generateName" in metadata:
            problem = ": an object without a name cannot be found again; write name"
            raise field_invalid(self._resource, f"{MANIFEST}.metadata.generateName", problem)
        names = {"name": metadata.get("name"), "namespace": metadata.get("namespace", "any")}
        for member, name in names.items():
            if not is_final and isinstance(name, dict):
                continue
            if not isinstance(name, str) or not name or (is_final and name != name.strip()):
                raise field_invalid(
                    self._resource, f"{MANIFEST}.metadata.{member}", f" is {_shown(name)}: write a name"
                )

    def _refuse_server_set(self, metadata: Mapping[str, Json]) -> None:
        """Null and empty members are allowed: tools leave them behind."""
        server_set = [f"metadata.{name}" for name in _SERVER_SET if metadata.get(name)]
        server_set += ["status"] * bool(isinstance(self._tree, dict) and self._tree.get("status"))
        if server_set:
            raise field_invalid(
                self._resource, MANIFEST, f": only the cluster sets {', '.join(server_set)}: leave it out"
            )

    def _secret(self, tree: dict[str, Json]) -> dict[str, Json]:
        """With `stringData` moved to `data`, as the API server stores it: what is sent can then be compared."""
        data, plain = (self._texts(tree, name) for name in ("data", "stringData"))
        for name, text in data.items():
            try:
                base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                # Without its cause, which contains the value.
                problem = f" is not base64: encode it, or write it as stringData.{name}"
                raise field_invalid(self._resource, f"{MANIFEST}.data.{name}", problem) from None
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
        rest = {name: value for name, value in tree.items() if name not in ("data", "stringData")}
        return {**rest, "data": {**data, **encoded}} if "data" in tree or encoded else rest

    def _texts(self, tree: Mapping[str, Json], member: str) -> dict[str, str]:
        found = tree.get(member)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise field_invalid(self._resource, f"{MANIFEST}.{member}", " is not a map: write a text for each key")
        for name, text in found.items():
            # The message must not contain the value of a Secret.
            if not isinstance(text, str):
                raise field_invalid(self._resource, f"{MANIFEST}.{member}.{name}", " is not text: put it in quotes")
        return {name: text for name, text in found.items() if isinstance(text, str)}


def _shown(value: object) -> str:
    if value is None or value is UNSET:
        return "missing"
    return repr(value) if isinstance(value, str) else "not text"
