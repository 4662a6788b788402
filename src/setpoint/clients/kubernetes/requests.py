"""Requests to an API server as values: endpoints, selectors, paging, write and delete options."""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from setpoint.clients.url_path import encode_query, join_path
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.errors import Bug, ManifestInvalid

# The field manager of our writes.
FIELD_MANAGER: Final = "setpoint"
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# Names that would change the path, as the API server sees it, too (IsValidPathSegmentName).
_INVALID_NAME: Final = re.compile(r"|\.|\.\.|.*[/%].*", re.DOTALL).fullmatch


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URL path of objects of one kind: without `name` all of them, without `namespace` those of all namespaces.

    The core group is "". `plural` is the kind in paths: `deployments`.
    """

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None

    def __post_init__(self) -> None:
        for part in (self.namespace, self.name):
            if part is not None and _INVALID_NAME(part):
                raise ManifestInvalid(f"{part!r} cannot be the name of an object: write letters, digits, '-' and '.'")

    @property
    def path(self) -> str:
        """The path, quoted; ManifestInvalid for a part that would lead to another path."""
        collection = _collection_path(self.group, self.version, self.plural, self.namespace)
        below = tuple(part for part in (self.name, self.subresource) if part is not None)
        return collection + join_path(below) if below else collection

    @property
    def status(self) -> "Endpoint":
        """The status subresource of the object."""
        return Endpoint(self.group, self.version, self.plural, self.namespace, self.name, "status")

    def named(self, name: str, namespace: str | None = None) -> "Endpoint":
        """One object: in `namespace`, or in that of this endpoint."""
        where = self.namespace if namespace is None else namespace
        return Endpoint(self.group, self.version, self.plural, where, name, self.subresource)

    def object_path(self) -> str:
        """The path of one object. Bug without a name: the path of all objects must not be deleted by mistake."""
        if self.name is None:
            raise Bug(f"{self.path} has no name: one object was meant")
        return self.path

    def collection_path(self) -> str:
        """The path of the collection, where objects are listed and created."""
        return self.path if self.name is None else replace(self, name=None, subresource=None).path


# Few collections, with very many objects.
@lru_cache(maxsize=1024)
def _collection_path(group: str, version: str, plural: str, namespace: str | None) -> str:
    between = () if namespace is None else ("namespaces", namespace)
    return version_path(group, version) + join_path((*between, plural))


class Representation(StrEnum):
    """How much of each object is returned."""

    WHOLE = "application/json"
    METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

    @property
    def for_lists(self) -> str:
        """The same, for a list."""
        return self.value.replace("PartialObjectMetadata;", "PartialObjectMetadataList;")


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """Label selector and field selector, as kubectl writes them; and how much of each object is returned."""

    labels: str = ""
    fields: str = ""
    representation: Representation = Representation.WHOLE

    def query(self) -> dict[str, str]:
        """Its query parameters."""
        given = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in given.items() if value}


ALL_OBJECTS: Final = ObjectSelector()


class PatchType(StrEnum):
    """The content type of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page of a list: at most `size` objects, or all with 0, after the page that returned `token`.

    With the resource version "0" the API server answers from its cache: fast, complete, and maybe a moment old.
    """

    size: int = 500
    token: str = ""
    resource_version: str | None = None

    def query(self) -> dict[str, str]:
        """Its query parameters."""
        query = {"limit": str(self.size)} if self.size else {}
        if self.token:
            query["continue"] = self.token
        elif self.resource_version is not None:
            query["resourceVersion"] = self.resource_version
        return query


FIRST_PAGE: Final = PageRequest()


class FieldValidation(StrEnum):
    """What the API server does with fields that the kind does not have."""

    STRICT = "Strict"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True)
class ApiWriteOptions:
    """Options of a write. `dry_run`: the API server does everything but persist it."""

    field_manager: str = FIELD_MANAGER
    dry_run: bool = False
    field_validation: FieldValidation = FieldValidation.STRICT

    def query(self) -> dict[str, str]:
        """Its query parameters."""
        query = {"fieldManager": self.field_manager, "fieldValidation": self.field_validation.value}
        return query | {"dryRun": "All"} if self.dry_run else query


@lru_cache(maxsize=64)
def write_query(options: ApiWriteOptions, *, force: bool = False) -> str:
    """The query of a write with these options, quoted. Few are in use, and each is sent very often."""
    return encode_query(options.query() | ({"force": "true"} if force else {}))


DEFAULT_WRITE: Final = ApiWriteOptions()


class DeletePropagation(StrEnum):
    """What garbage collection does with the dependents of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a deletion: preconditions on uid and resource version, and propagation."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: DeletePropagation = DeletePropagation.BACKGROUND
    dry_run: bool = False

    def body(self) -> dict[str, object]:
        """The body of the request."""
        body: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": self.propagation}
        given = {"uid": self.uid, "resourceVersion": self.resource_version}
        if conditions := {name: value for name, value in given.items() if value is not None}:
            body["preconditions"] = conditions
        return body | {"dryRun": ["All"]} if self.dry_run else body


def version_path(group: str, version: str) -> str:
    """The path of a version of an API group, quoted; the core group is ""."""
    return join_path(("apis", group, version) if group else ("api", version))


def with_query(path: str, query: dict[str, str]) -> str:
    """The path with its query, quoted."""
    return f"{path}?{encode_query(query)}" if query else path


def yaml_safe(encoded: bytes) -> bytes:
    """JSON that is the same value as YAML: YAML forbids some characters unescaped, and treats some as line breaks."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()
