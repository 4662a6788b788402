"""Manifests from files, folders, standard input, text and objects, with the place of each mistake."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.messages import AnnotationTerm, FieldTerm, field_named_by
from setpoint.core.values.paths import Path as FieldPath
from setpoint.core.values.paths import get_at, nearest
from setpoint.core.values.problems import MAX_PROBLEMS, joined_problems, problems_of
from setpoint.engine.resource import DEFAULT_NAMESPACE, Resource, ResourceRef
from setpoint.engine.transfer.export_format import is_export_header
from setpoint.errors import ManifestInvalid, NotJson, SetpointError, UserError
from setpoint.library.manifests.sources import (
    ManifestDocument,
    ManifestFile,
    ManifestObject,
    ManifestSource,
    YamlText,
    object_document,
)

SUFFIXES = (".yaml", ".yml", ".json")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_ROOT = FieldPath()
# What every manifest has, as text; and keys that are no misspelt ones.
_REQUIRED = (FieldPath(("apiVersion",)), FieldPath(("kind",)), FieldPath(("metadata", "name")))
_MEMBERS = ("apiVersion", "kind", "metadata", "spec", "status", "namespace")
_MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadedManifest:
    """One manifest as its author wrote it, with the place it came from: file and line, or the argument of a call."""

    tree: JsonObject
    document: ManifestDocument
    # Its place in the document: an item of a List.
    at: FieldPath = _ROOT

    def place_of(self, error: SetpointError) -> str:
        """The place of the field that `error` names, or of the manifest's beginning."""
        return self.document.where(self._path_of(error))

    def placed(self, error: SetpointError) -> Sequence[ManifestInvalid]:
        """The mistakes that `error` tells, each with its place, in the order of the lines."""
        problems = problems_of(error) if isinstance(error, UserError) else (error,)
        return [_placed(self.place_of(one), one) for one in sorted(problems, key=self._line_of)]

    def _line_of(self, error: SetpointError) -> int:
        return self.document.line_of(self._path_of(error))

    def _path_of(self, error: SetpointError) -> FieldPath:
        match field_named_by(error):
            case AnnotationTerm(key):
                return self._annotation(key)
            case FieldTerm(path):
                return self._within(_field_path(path))
            case None:
                return self.at

    def _within(self, path: FieldPath) -> FieldPath:
        return FieldPath((*self.at.steps, *path.steps))

    def _annotation(self, key: str) -> FieldPath:
        return self._within(FieldPath(("metadata", "annotations", key)))

    def place_of_annotation(self, key: str) -> str:
        """The place of an annotation."""
        return self.document.where(self._annotation(key))

    @property
    def file(self) -> str:
        """The file that it is in, or the argument of a call."""
        return self.document.source

    @property
    def start(self) -> str:
        """The place of its beginning."""
        return self.document.where(self.at)

    @property
    def resource(self) -> Resource:
        """The resource it declares, in the namespace it will have."""
        return Resource(in_namespace(self.tree))

    @property
    def ref(self) -> ResourceRef:
        """Which resource it declares."""
        return self.resource.ref


def in_namespace(tree: JsonObject, namespace: str = DEFAULT_NAMESPACE) -> JsonObject:
    """The manifest with its namespace; `namespace` where it names none."""
    metadata = tree["metadata"]
    assert isinstance(metadata, dict)
    return {**tree, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}


def _field_path(text: str) -> FieldPath:
    """The path of a field; as far as the first `[` where an API server names an element in its own way."""
    try:
        return FieldPath.parse(text)
    except ManifestInvalid:
        return FieldPath(tuple(text.partition("[")[0].split(".")))


def _placed(place: str, error: SetpointError) -> ManifestInvalid:
    return ManifestInvalid(f"{place}: {error}")


@dataclass(frozen=True, slots=True)
class ReadManifests:
    """The manifests in files, and what is wrong with the rest of the files."""

    manifests: tuple[LoadedManifest, ...]
    problems: tuple[ManifestInvalid, ...] = ()


def load_manifests(paths: Sequence[str], namespace: str = DEFAULT_NAMESPACE) -> tuple[LoadedManifest, ...]:
    """Every manifest in `paths`, with Lists split up; ManifestInvalid names file and line of each mistake."""
    read = read_manifests(list(map(ManifestFile, paths)), namespace)
    if read.problems:
        raise joined_problems(read.problems)
    return read.manifests


def read_manifests(
    sources: Sequence[ManifestSource], namespace: str = DEFAULT_NAMESPACE, *, allow_empty: bool = False
) -> ReadManifests:
    """Every manifest in `sources`, with Lists split up, and what is wrong with anything else there.

    Those that name no namespace are in `namespace`. ManifestInvalid when there is no manifest at all, unless that is
    allowed.
    """
    found: list[LoadedManifest] = []
    problems: list[ManifestInvalid] = []
    for one in _manifests_in(sources, allow_empty=allow_empty):
        if isinstance(one, LoadedManifest):
            is_default = namespace == DEFAULT_NAMESPACE
            found.append(one if is_default else replace(one, tree=in_namespace(one.tree, namespace)))
        elif len(problems) < MAX_PROBLEMS:
            problems.append(one)
    problems += _duplicates(found)
    if not found and not allow_empty:
        names = (one.path if isinstance(one, ManifestFile) else one.name for one in sources)
        nothing = f"no manifest in {', '.join(names)}: a manifest has apiVersion, kind and metadata.name"
        raise joined_problems(problems or [ManifestInvalid(nothing)])
    return ReadManifests(tuple(found), tuple(problems))


def _manifests_in(
    sources: Iterable[ManifestSource], *, allow_empty: bool
) -> Iterator[LoadedManifest | ManifestInvalid]:
    for documents in _documents_in(sources, allow_empty=allow_empty):
        if isinstance(documents, ManifestInvalid):
            yield documents
            continue
        for document in documents:
            yield from _manifests(document)
            if isinstance(document.value, dict) and is_export_header(document.value):
                # The rest of the file belongs to the export.
                break


def _documents_in(
    sources: Iterable[ManifestSource], *, allow_empty: bool
) -> Iterator[Sequence[ManifestDocument] | ManifestInvalid]:
    """The documents of each file, text and object; or why it cannot be read."""
    for source in sources:
        try:
            if isinstance(source, ManifestObject):
                yield [object_document(source)]
                continue
            files = _files(source.path, allow_empty=allow_empty) if isinstance(source, ManifestFile) else [source]
        except ManifestInvalid as error:
            yield error
            continue
        for file in files:
            try:
                yield _yaml_documents(file)
            except ManifestInvalid as error:
                yield error


def _yaml_documents(file: str | YamlText) -> Sequence[ManifestDocument]:
    # Imported where a file is read: YAML takes as long as the rest of a command that reads none.
    from setpoint.core.values.yaml_documents import read_documents

    if isinstance(file, YamlText):
        return read_documents(file.text, file.name)
    return read_documents(_text(file, _MAX_BYTES), _source(file))


def read_texts(path: str, largest: int = _MAX_BYTES) -> Iterator[tuple[str, str]]:
    """The name and text of each file in `path`; ManifestInvalid for one that cannot be read or is too large."""
    for file in _files(path):
        yield _source(file), _text(file, largest)


def _files(path: str, *, allow_empty: bool = False) -> list[str]:
    """The files that `path` names: itself, or those of a folder. ManifestInvalid for a URL, or a folder without any.

    A pipe is read where it is named, not where a folder has one: whatever writes to it might never do so.
    """
    if _URL.match(path):
        raise ManifestInvalid(f"{path}: a URL is not read: download it, and name the file, or - for standard input")
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    files = sorted(_manifest_files(folder))
    for file in files:
        if file.exists() and not file.is_file():
            raise ManifestInvalid(f"{file}: this is no file: remove it, or name the others")
    if not files and not allow_empty:
        raise ManifestInvalid(
            f"{path}: no manifest in this folder: it has no file that ends in {' or '.join(SUFFIXES)}"
        )
    return list(map(str, files))


def _manifest_files(folder: Path) -> Iterator[Path]:
    """The files below a folder that may hold manifests; not in hidden folders, such as that of git."""
    for here, folders, names in os.walk(folder):
        folders[:] = (name for name in folders if not name.startswith("."))
        yield from (Path(here) / name for name in names if Path(name).suffix in SUFFIXES)


def _source(file: str) -> str:
    return "standard input" if file == "-" else file


def _text(file: str, largest: int) -> str:
    if file == "-":
        return decoded_text(sys.stdin.buffer.read(largest + 1), _source(file), largest)
    try:
        with Path(file).open("rb") as opened:
            return decoded_text(opened.read(largest + 1), file, largest)
    except OSError as error:
        raise ManifestInvalid(f"{file}: {error.strerror}: name a file, a folder or - for standard input") from error


def decoded_text(data: bytes, source: str, largest: int = _MAX_BYTES) -> str:
    """The text of a file; ManifestInvalid for one that is too large, or no UTF-8."""
    if len(data) > largest:
        raise ManifestInvalid(f"{source}: larger than {largest // 2**20} MiB: split it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestInvalid(f"{source}:{line}: this is not UTF-8 text: save it as UTF-8") from error


def _manifests(document: ManifestDocument) -> Iterator[LoadedManifest | ManifestInvalid]:
    value = document.value
    if isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list):
        items = value["items"]
        assert isinstance(items, list)
        for index, item in enumerate(items):
            yield from _manifest(item, document, FieldPath(("items", index)))
    else:
        yield from _manifest(value, document, _ROOT)


def _manifest(value: Json, document: ManifestDocument, at: FieldPath) -> Iterator[LoadedManifest | ManifestInvalid]:
    """The manifest, or everything that keeps it from being one."""
    start = document.where(at)
    if not isinstance(value, dict):
        wrong = f"{start}: a manifest is a map with apiVersion, kind and metadata, not {_type_name(value)}"
        yield ManifestInvalid(wrong)
        return
    if is_export_header(value):
        yield ManifestInvalid(f"{start}: this is an export, and no manifest: `setpoint import` takes it")
        return
    manifest = LoadedManifest(value, document, at)
    problems = list(_missing_members(value, document, at))
    yield from problems
    if not problems:
        try:
            canonical(value)
        except NotJson as error:
            yield from manifest.placed(error)
        else:
            yield manifest


def _missing_members(value: JsonObject, document: ManifestDocument, at: FieldPath) -> Iterator[ManifestInvalid]:
    for path in _REQUIRED:
        found = get_at(value, path)
        if isinstance(found, str):
            continue
        for name, holder in ((str(path.steps[0]), _ROOT), (str(path.steps[-1]), path.parent)):
            misspelt = _misspelt(name, get_at(value, holder))
            if misspelt is not None:
                wrong = FieldPath((*holder.steps, misspelt))
                place = document.where(FieldPath((*at.steps, *wrong.steps)))
                yield ManifestInvalid(
                    f"{place}: there is no field {wrong}; did you mean {FieldPath((*holder.steps, name))}?"
                )
                break
        else:
            place = document.where(FieldPath((*at.steps, *path.steps)))
            yield ManifestInvalid(f"{place}: {path} is missing or not text: write it")


def _misspelt(name: str, holder: Json | Missing) -> str | None:
    """The key that stands where `name` is missing, and is similar."""
    if not isinstance(holder, dict) or name in holder:
        return None
    return next(iter(nearest(name, [key for key in holder if key not in _MEMBERS])), None)


def _type_name(value: object) -> str:
    names = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")


def _duplicates(manifests: Sequence[LoadedManifest]) -> Iterator[ManifestInvalid]:
    seen: dict[ResourceRef, LoadedManifest] = {}
    for manifest in manifests:
        first = seen.setdefault(manifest.ref, manifest)
        if first is not manifest:
            places = f"{first.start} and {manifest.start}"
            yield ManifestInvalid(f"{manifest.ref} is declared twice, in {places}: keep one of them")
