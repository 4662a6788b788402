"""Manifests: validation of what an author writes (names, labels, Secret data), and the part of it that a store keeps.

No error message holds a value of a Secret. Copies of secret values in annotations are not kept.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from setpoint.core.redaction import LAST_APPLIED, REDACTED
from setpoint.core.schema.annotations import SET, SOURCE
from setpoint.core.secret_fields import HIDDEN_VALUE, SecretFields
from setpoint.core.unstructured import display_name, group_kind
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.messages import Message, field_message, message_of
from setpoint.core.values.paths import Path, nearest
from setpoint.core.values.problems import Problems
from setpoint.engine.resource import DEFAULT_NAMESPACE, SECRET, ResourceRef
from setpoint.errors import ManifestInvalid, NotReady
from setpoint.stores.manifest_types import ANY_TYPE, AUTHORED_METADATA, ManifestTypes, type_problems
from setpoint.stores.records import decode


def json_type(value: object) -> str:
    """The JSON type for an error message, such as "a number"; never the value itself."""
    match value:
        case None:
            return "missing or null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"


_PART: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_PARTS: Final = rf"{_PART}(?:\.{_PART})*"
_WORD: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


@dataclass(frozen=True, slots=True)
class NameRule:
    """A pattern and a maximum length, with their text for error messages."""

    pattern: re.Pattern[str]
    longest: int
    words: str

    def allows(self, text: str) -> bool:
        """Whether `text` follows the rule."""
        return len(text) <= self.longest and self.pattern.fullmatch(text) is not None

    def __str__(self) -> str:
        return f"{self.words}, at most {self.longest} characters"


def _rule(pattern: str, longest: int, words: str) -> NameRule:
    return NameRule(re.compile(pattern), longest, words)


NAME: Final = _rule(
    _PARTS, 253, 'lower-case letters, digits, "-" and ".", with a letter or digit at the ends of each part'
)
NAMESPACE: Final = _rule(_PART, 63, 'lower-case letters, digits and "-", with a letter or digit at both ends')
API_VERSION: Final = _rule(
    rf"(?:{_PARTS}/)?[a-z](?:[-a-z0-9]*[a-z0-9])?", 317, '"v1", or a group and a version such as "apps/v1"'
)
KIND: Final = _rule(r"[A-Za-z](?:[-A-Za-z0-9]*[A-Za-z0-9])?", 63, "letters and digits, such as SQLInstance")
KEY: Final = _rule(
    rf"(?:{_PARTS}/)?{_WORD}",
    317,
    'letters, digits, "-", "_" and "." (63 at most, a letter or digit at both ends), after an optional "domain/"',
)
LABEL_VALUE: Final = _rule(
    rf"(?:{_WORD})?", 63, 'letters, digits, "-", "_" and ".", with a letter or digit at both ends, or nothing'
)
DATA_KEY: Final = _rule(r"(?!\.{1,2}$)(?!\.\.)[-._A-Za-z0-9]+", 253, 'letters, digits, "-", "_" and "."')


_LINE_ENDS: Final = str.maketrans("", "", "\r\n")


def is_secret(ref: ResourceRef) -> bool:
    """Whether it is a core `v1` Secret."""
    return (ref.group, ref.kind) == SECRET


def take_secret_data(body: dict[str, Any]) -> dict[str, str]:
    """Takes `data` and `stringData` out of `body`: all values as base64, `stringData` first where both name a key.

    ValueError names the key and what is wrong with it.
    """
    for problem in _secret_problems(body):
        raise ValueError(message_of(problem))
    encoded, plain = (body.pop(member, None) or {} for member in ("data", "stringData"))
    data = {key: _canonical_base64(text) for key, text in encoded.items()}
    return {**data, **{key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}}


def _secret_problems(body: dict[str, Any]) -> Iterator[ManifestInvalid]:
    for member in ("data", "stringData"):
        entries = body.get(member) or {}
        if not isinstance(entries, dict):
            yield ManifestInvalid(field_message(member, f" is {json_type(entries)}: write an object of texts"))
            continue
        for key, value in entries.items():
            problem = _entry_problem(member, key, value)
            if problem:
                yield ManifestInvalid(field_message(Path((member, key)), problem))


def _entry_problem(member: str, key: str, value: object) -> str:
    """What is wrong with an entry of a Secret, without its value; empty for nothing."""
    if not DATA_KEY.allows(key):
        return f" cannot have that key: write {DATA_KEY}"
    if not isinstance(value, str):
        return f" is {json_type(value)}: write it as text, in quotes"
    if value == REDACTED:
        return HIDDEN_VALUE
    return (
        "" if member == "stringData" or _is_base64(value) else " is not base64: encode it, or write it under stringData"
    )


def _is_base64(text: str) -> bool:
    try:
        _canonical_base64(text)
    except binascii.Error:
        return False
    return True


def _canonical_base64(text: str) -> str:
    """The canonical base64 form, without the line breaks that Kubernetes accepts."""
    return base64.b64encode(base64.b64decode(text.translate(_LINE_ENDS).encode(), validate=True)).decode()


# What is kept of it beside the names.
_KEPT: Final = ("labels", "annotations", "ownerReferences")
# Annotations that only a store writes, with the declaration of a set.
_RECORDED: Final = (SET, SOURCE)
# Metadata that only a store writes. It is ignored, so that the output of `get` can be applied.
_STORE_WRITTEN: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("finalizers", "managedFields", "selfLink", "generateName"),
)


@dataclass(frozen=True, slots=True)
class AuthoredManifest:
    """The author's part of a manifest. `metadata` holds non-empty labels, annotations and ownerReferences.

    `redacted` is `body` with its secret values redacted; empty when it holds none.
    """

    ref: ResourceRef
    metadata: Mapping[str, Any]
    body: bytes
    secret: bytes
    redacted: bytes = b""


def read_manifest(
    manifest: JsonObject, secrets: SecretFields | None = None, types: ManifestTypes = ANY_TYPE
) -> AuthoredManifest:
    """The author's part of `manifest`; ManifestInvalid names each wrong member, what is wrong and what to write.

    `secrets` finds the secret values, for a store that encrypts them. A manifest of one of the `types` has the version
    and the members of that type.
    """
    if not isinstance(manifest, Mapping):
        raise ManifestInvalid(
            f"a manifest is {json_type(manifest)}: write an object with apiVersion, kind and metadata"
        )
    tree = decode(canonical(manifest))
    problems = Problems()
    found = chain(_problems(tree), type_problems(tree, types))
    problems.add(ManifestInvalid(Message(f"{display_name(tree)}: ", message_of(one))) for one in found)
    problems.require_none()
    authored = _read(tree)
    if secrets is None:
        return authored
    # What is left of `tree` is the body.
    metadata = without_secret_copies(authored.metadata, secrets)
    return replace(authored, metadata=metadata, redacted=redacted_body(tree, secrets))


def redacted_body(body: JsonObject, secrets: SecretFields) -> bytes:
    """The author's part with its secret values redacted; empty when it holds none."""
    redacted = secrets.redacted(body)
    return b"" if redacted is body else canonical(redacted)


def without_secret_copies(metadata: Mapping[str, Any], secrets: SecretFields) -> Mapping[str, Any]:
    """The metadata without annotations that repeat a secret value of a manifest; `metadata` itself when none does."""
    present = metadata.get("annotations", {})
    shown = _annotations_of(secrets.redacted({"metadata": {"annotations": present}}))
    kept = {key: text for key, text in present.items() if shown[key] == text}
    if len(kept) == len(present):
        return metadata
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _annotations_of(document: JsonObject) -> dict[str, Any]:
    metadata: Any = document["metadata"]
    annotations: dict[str, Any] = metadata["annotations"]
    return annotations


def being_deleted_error(ref: ResourceRef) -> NotReady:
    """The error for a manifest that cannot be applied now."""
    return NotReady(f"{ref} is being deleted: wait until it is gone, then apply it again")


def stored_ref(ref: ResourceRef) -> ResourceRef:
    """The ref under which a store without cluster-scoped kinds keeps it: the default namespace stands for none."""
    return ref if ref.namespace else ref._replace(namespace=DEFAULT_NAMESPACE)


def require_same_ref(seen: ResourceRef, wanted: ResourceRef) -> None:
    """ManifestInvalid unless a document with the ref `wanted` can replace `seen`."""
    if stored_ref(wanted) != stored_ref(seen):
        raise ManifestInvalid(f"{seen} cannot become {wanted}: make that one, and delete this one")


def _read(tree: dict[str, Any]) -> AuthoredManifest:
    """The author's part of a valid manifest; `tree` is left with the body."""
    group, kind = group_kind(tree)
    metadata = tree.pop("metadata")
    tree.pop("status", None)
    ref = ResourceRef(group, kind, metadata.get("namespace") or DEFAULT_NAMESPACE, metadata["name"])
    for key in _RECORDED:
        (metadata.get("annotations") or {}).pop(key, None)
    kept = {name: metadata[name] for name in _KEPT if metadata.get(name)}
    secret = b""
    if is_secret(ref):
        # kubectl's copy of the whole manifest, values included.
        kept.get("annotations", {}).pop(LAST_APPLIED, None)
        data = take_secret_data(tree)
        secret = canonical(data) if data else b""
    return AuthoredManifest(ref, kept, canonical(tree), secret)


# --- What is wrong with a manifest ------------------------------------------------------------------------------------


# Of a text that is refused.
_MOST_SHOWN: Final = 300


def _problems(tree: dict[str, Any]) -> Iterator[ManifestInvalid]:
    yield from _name_problems(tree.get("apiVersion"), Path(("apiVersion",)), API_VERSION)
    yield from _name_problems(tree.get("kind"), Path(("kind",)), KIND)
    metadata = tree.get("metadata")
    if isinstance(metadata, dict):
        yield from _metadata_problems(metadata, Path(("metadata",)))
    else:
        yield ManifestInvalid(field_message("metadata", f" is {json_type(metadata)}: write an object with a name"))
    if group_kind(tree) == SECRET:
        yield from _secret_problems(tree)


def _name_problems(text: object, path: Path, rule: NameRule) -> Iterator[ManifestInvalid]:
    if text is None or text == "":
        yield ManifestInvalid(field_message(path, f" is missing: write {rule}"))
    elif not isinstance(text, str):
        yield ManifestInvalid(field_message(path, f" is {json_type(text)}: write it as text, in quotes"))
    elif not rule.allows(text):
        yield ManifestInvalid(field_message(path, f" cannot be {text[:_MOST_SHOWN]!r}: write {rule}"))


def _metadata_problems(metadata: dict[str, Any], path: Path) -> Iterator[ManifestInvalid]:
    if metadata.get("namespace") not in (None, ""):
        yield from _name_problems(metadata["namespace"], path / "namespace", NAMESPACE)
    yield from _name_problems(metadata.get("name"), path / "name", NAME)
    for name in metadata:
        if name not in AUTHORED_METADATA and name not in _STORE_WRITTEN:
            near = nearest(name, AUTHORED_METADATA)
            hint = f"write {near[0]}, or take it out" if near else "take it out"
            yield ManifestInvalid(field_message(path / name, f" means nothing: {hint}"))
    for name in ("labels", "annotations"):
        yield from _text_problems(metadata.get(name) or {}, path / name)
    owners = metadata.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(owner, dict) for owner in owners):
        yield ManifestInvalid(
            field_message("metadata.ownerReferences", " is no list of objects: write one object for each owner")
        )


def _text_problems(pairs: object, path: Path) -> Iterator[ManifestInvalid]:
    if not isinstance(pairs, dict):
        yield ManifestInvalid(field_message(path, f" is {json_type(pairs)}: write an object of texts"))
        return
    for key, value in pairs.items():
        if not KEY.allows(key):
            yield ManifestInvalid(field_message(path / key, f" cannot have that key: write {KEY}"))
        elif not isinstance(value, str):
            yield ManifestInvalid(field_message(path / key, f" is {json_type(value)}: write it as text, in quotes"))
        elif path.steps[-1] == "labels" and not LABEL_VALUE.allows(value):
            yield ManifestInvalid(field_message(path / key, f" cannot be {value[:_MOST_SHOWN]!r}: write {LABEL_VALUE}"))
