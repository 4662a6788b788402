"""Requests to an API server as values: endpoints, selectors, paging, write and delete options."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from urllib.parse import quote, urlencode

from setpoint.errors import Bug, ManifestInvalid

# Whoever sets a field owns it: this is how we are called as an owner.
FIELD_MANAGER: Final = "setpoint"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch
# What would be read as another path, or as none.
_INVALID_NAME: Final = re.compile(r"|\.|\.\.|.*[/%].*", re.DOTALL).fullmatch


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Objects of one kind: without `name` all of them, without `namespace` in all namespaces, or where there are none.

    The group of Pods is "". `plural` is how the kind is called in paths: `deployments`.
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
        """The path, quoted."""
        start = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespace is not None:
            start = f"{start}/namespaces/{_quoted(self.namespace)}"
        path = f"{start}/{self.plural}"
        if self.name is not None:
            path = f"{path}/{_quoted(self.name)}"
        return path if self.subresource is None else f"{path}/{self.subresource}"

    @property
    def status(self) -> "Endpoint":
        """The status of the object alone."""
        return replace(self, subresource="status")

    def named(self, name: str, namespace: str | None = None) -> "Endpoint":
        """One object: in `namespace`, or in the one there is."""
        where = self.namespace if namespace is None else namespace
        return Endpoint(self.group, self.version, self.plural, where, name, self.subresource)

    def object_path(self) -> str:
        """The path of one object. Without a name it would be that of all, which nobody may delete by mistake."""
        if self.name is None:
            raise Bug(f"{self.path} has no name: one object was meant")
        return self.path

    def collection_path(self) -> str:
        """The path of all of them, where objects are listed and made."""
        return self.path if self.name is None else replace(self, name=None, subresource=None).path


def _quoted(part: str) -> str:
    # Most names need no quotes, and to see that is cheaper than to find none.
    return part if _PLAIN(part) else quote(part, safe="")


class Representation(StrEnum):
    """How much of an object is wanted."""

    WHOLE = "application/json"
    METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

    @property
    def for_lists(self) -> str:
        """The same, for a list."""
        return self.value.replace("PartialObjectMetadata;", "PartialObjectMetadataList;")


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """Which objects: by labels and by fields, as kubectl writes them; and how much of each."""

    labels: str = ""
    fields: str = ""
    form: Representation = Representation.WHOLE

    def query(self) -> dict[str, str]:
        """What it adds to a query."""
        given = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in given.items() if value}


ALL_OBJECTS: Final = ObjectSelector()


class PatchType(StrEnum):
    """What a patch means."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A part of a list: at most `size` objects, or all with 0, after the page that gave `token`.

    With the resource version "0" it is whatever the API server has at hand: quick, whole, and maybe of a moment ago.
    """

    size: int = 500
    token: str = ""
    resource_version: str | None = None

    def query(self) -> dict[str, str]:
        """What it adds to a query."""
        query = {"limit": str(self.size)} if self.size else {}
        if self.token:
            query["continue"] = self.token
        elif self.resource_version is not None:
            query["resourceVersion"] = self.resource_version
        return query


FIRST_PAGE: Final = PageRequest()


class FieldValidation(StrEnum):
    """What becomes of fields that the kind does not have."""

    REFUSED = "Strict"
    DROPPED = "Ignore"


@dataclass(frozen=True, slots=True)
class ApiWriteOptions:
    """How something is written. With `dry_run` the server does all but keep it."""

    field_manager: str = FIELD_MANAGER
    dry_run: bool = False
    unknown: FieldValidation = FieldValidation.REFUSED

    def query(self) -> dict[str, str]:
        """What it adds to a query."""
        query = {"fieldManager": self.field_manager, "fieldValidation": self.unknown.value}
        return query | {"dryRun": "All"} if self.dry_run else query


DEFAULT_WRITE: Final = ApiWriteOptions()


class DeletePropagation(StrEnum):
    """What becomes of what an object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How something is deleted: only if it is still that object, in that version."""

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


def with_query(path: str, query: dict[str, str]) -> str:
    """The path with its query, quoted."""
    return f"{path}?{urlencode(query)}" if query else path
