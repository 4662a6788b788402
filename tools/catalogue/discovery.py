"""Google's discovery documents, as google-api-python-client brings them: schemas, their members, methods."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypedDict, cast

PACKAGE: Final = "google-api-python-client"

Schema = TypedDict(
    "Schema",
    {
        "type": str,
        "$ref": str,
        "items": "Schema",
        "properties": "dict[str, Schema]",
        "additionalProperties": "Schema",
        "enum": list[str],
        "description": str,
        "format": str,
        "pattern": str,
        "readOnly": bool,
        "deprecated": bool,
        "default": str,
        "location": str,
        "annotations": dict[str, list[str]],
    },
    total=False,
)


class Method(TypedDict, total=False):
    httpMethod: str
    path: str
    flatPath: str
    parameters: dict[str, Schema]
    request: dict[str, str]
    response: dict[str, str]
    description: str


class Resource(TypedDict, total=False):
    methods: dict[str, Method]
    resources: "dict[str, Resource]"


@dataclass(frozen=True, slots=True)
class Document:
    """One API in one version."""

    schemas: Mapping[str, Schema]
    resources: Mapping[str, Resource]
    service_path: str

    def schema(self, name: str) -> Schema:
        """The schema of that name, or an empty one."""
        return self.schemas.get(name, {})

    def resolved(self, schema: Schema) -> Schema:
        """The schema itself, or the one that it refers to."""
        name = schema.get("$ref")
        return self.schema(name) if name else schema

    def element(self, schema: Schema) -> Schema:
        """The schema of a list's elements, resolved; of anything else, itself resolved."""
        found = self.resolved(schema)
        return self.resolved(found["items"]) if "items" in found else found

    def members(self, schema: Schema) -> Mapping[str, Schema]:
        """The members of an object, or of a list's elements."""
        return self.element(schema).get("properties", {})

    def collection(self, dotted: str) -> Mapping[str, Method]:
        """The methods of a collection; `dotted` begins with the name of the API."""
        resources, methods = self.resources, dict[str, Method]()
        for name in dotted.split(".")[1:]:
            resource = resources.get(name, {})
            resources, methods = resource.get("resources", {}), resource.get("methods", {})
        return methods

    def collections(self) -> Iterator[tuple[str, Mapping[str, Method]]]:
        """Every collection, by its dotted name without that of the API."""
        yield from _collections(self.resources, "")


def _collections(resources: Mapping[str, Resource], above: str) -> Iterator[tuple[str, Mapping[str, Method]]]:
    for name, resource in resources.items():
        dotted = f"{above}.{name}" if above else name
        yield dotted, resource.get("methods", {})
        yield from _collections(resource.get("resources", {}), dotted)


@cache
def document(name: str) -> Document:
    """The document of an API, such as `pubsub.v1`."""
    found = json.loads((_folder() / f"{name}.json").read_text("utf-8"))
    return Document(
        schemas=cast(Mapping[str, Schema], found.get("schemas", {})),
        resources=cast(Mapping[str, Resource], found.get("resources", {})),
        service_path=found.get("servicePath", ""),
    )


def version() -> str:
    """The version of the package that the documents come with."""
    return metadata.version(PACKAGE)


@cache
def _folder() -> Path:
    found = find_spec("googleapiclient")
    if found is None or found.origin is None:
        raise SystemExit(f"{PACKAGE} is not installed here: run `make catalogue`, which has an environment with it")
    return Path(found.origin).parent / "discovery_cache" / "documents"
