"""Manifests from files, folders and standard input, with file and line of each mistake."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.messages import AnnotationTerm, FieldTerm, field_named_by
from setpoint.core.values.paths import Path as FieldPath
from setpoint.core.values.yaml_documents import YamlDocument, read_documents
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.engine.transfer.export_format import is_export_header
from setpoint.errors import ManifestInvalid, NotJson, SetpointError

_SUFFIXES = (".yaml", ".yml", ".json")
_MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadedManifest:
    """One manifest as its author wrote it, with the file and lines it came from."""

    tree: JsonObject
    document: YamlDocument

    def place_of(self, error: SetpointError) -> str:
        """`file:line` of the field that `error` names, or of the manifest's beginning."""
        match field_named_by(error):
            case AnnotationTerm(key):
                return self.place_of_annotation(key)
            case FieldTerm(path):
                return self.document.where(_field_path(path))
            case None:
                return self.start

    def place_of_annotation(self, key: str) -> str:
        """`file:line` of an annotation."""
        return self.document.where(FieldPath(("metadata", "annotations", key)))

    @property
    def start(self) -> str:
        """`file:line` of its beginning."""
        return f"{self.document.source}:{min(self.document.lines.values())}"

    @property
    def resource(self) -> Resource:
        """The resource it declares, in the namespace it will have."""
        metadata = self.tree["metadata"]
        assert isinstance(metadata, dict)
        return Resource({**self.tree, "metadata": {**metadata, "namespace": metadata.get("namespace") or "default"}})

    @property
    def ref(self) -> ResourceRef:
        """Which resource it declares."""
        return self.resource.ref


def _field_path(text: str) -> FieldPath:
    """The path of a field; as far as the first `[` where an API server names an element in its own way."""
    try:
        return FieldPath.parse(text)
    except ManifestInvalid:
        return FieldPath(tuple(text.partition("[")[0].split(".")))


def load_manifests(paths: Sequence[str]) -> tuple[LoadedManifest, ...]:
    """Every manifest in `paths`, with Lists split up; ManifestInvalid names file, line and what to do."""
    found = [manifest for path in paths for source, text in read_texts(path) for manifest in _manifests(text, source)]
    if not found:
        raise ManifestInvalid(f"no manifest in {', '.join(paths)}: a manifest has apiVersion, kind and metadata.name")
    _refuse_duplicates(found)
    return tuple(found)


def read_texts(path: str, largest: int = _MAX_BYTES) -> Iterator[tuple[str, str]]:
    """The name and text of each file in `path`; ManifestInvalid for one that cannot be read or is too large."""
    if path == "-":
        yield "standard input", _decoded(sys.stdin.buffer.read(largest + 1), "standard input", largest)
        return
    file = Path(path)
    files = sorted(one for one in file.rglob("*") if one.suffix in _SUFFIXES) if file.is_dir() else [file]
    for one in files:
        try:
            with one.open("rb") as opened:
                data = opened.read(largest + 1)
            yield str(one), _decoded(data, str(one), largest)
        except OSError as error:
            raise ManifestInvalid(f"{one}: {error.strerror}: name a file, a folder or - for standard input") from error


def _decoded(data: bytes, source: str, largest: int) -> str:
    if len(data) > largest:
        raise ManifestInvalid(f"{source}: larger than {largest // 2**20} MiB: split it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestInvalid(f"{source}:{line}: this is not UTF-8 text: save it as UTF-8") from error


def _manifests(text: str, source: str) -> Iterator[LoadedManifest]:
    for document in read_documents(text, source):
        value = document.value
        if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
            for item in value["items"]:
                yield _manifest(item, document)
        else:
            yield _manifest(value, document)


def _manifest(value: object, document: YamlDocument) -> LoadedManifest:
    start = f"{document.source}:{min(document.lines.values())}"
    if not isinstance(value, dict):
        raise ManifestInvalid(
            f"{start}: a manifest is a map with apiVersion, kind and metadata, not {_type_name(value)}"
        )
    if is_export_header(value):
        raise ManifestInvalid(f"{start}: this is an export, and no manifest: `setpoint import` takes it")
    metadata = value.get("metadata")
    named = isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
    for member, there in (
        ("apiVersion", isinstance(value.get("apiVersion"), str)),
        ("kind", isinstance(value.get("kind"), str)),
        ("metadata.name", named),
    ):
        if not there:
            raise ManifestInvalid(f"{start}: {member} is missing or not text: write it")
    try:
        canonical(value)
    except NotJson as error:
        raise ManifestInvalid(f"{start}: {error}") from error
    return LoadedManifest(value, document)


def _type_name(value: object) -> str:
    names = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")


def _refuse_duplicates(manifests: Sequence[LoadedManifest]) -> None:
    seen: dict[ResourceRef, LoadedManifest] = {}
    for manifest in manifests:
        first = seen.setdefault(manifest.ref, manifest)
        if first is not manifest:
            places = f"{first.start} and {manifest.start}"
            raise ManifestInvalid(f"{manifest.ref} is declared twice, in {places}: keep one of them")
