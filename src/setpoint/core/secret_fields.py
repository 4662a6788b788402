"""Secret values in whole documents: the one place that decides what stores encrypt and views redact."""

import base64
import binascii
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from operator import is_
from types import MappingProxyType, NoneType
from typing import Final, TypeAlias

from setpoint.core.redaction import LAST_APPLIED, OPEN_SECRET_MEMBERS, REDACTED, SECRET_NAME, holds_value
from setpoint.core.schema.shape import (
    AtomicList,
    Field,
    KeyedList,
    Leaf,
    MapShape,
    ObjectShape,
    Shape,
    field_below,
)
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path
from setpoint.errors import SetpointError

# Stands for a value that is not shown. A manifest with it is refused: it would become the value.
HIDDEN_VALUE: Final = (
    f' is "{REDACTED}", which stands for a value that was not shown: write the value itself, or have it shown by '
    "get --show-secrets or export --with-secrets"
)

# What takes the place of a secret value.
Hide: TypeAlias = Callable[[Json], Json]
_SECRET_KIND: Final = "secret"
_STRING_DATA: Final = "stringData"
# The member of a write-only field that says where the value is kept, as in Kubernetes' own types.
_REFERENCE: Final = "valueFrom"
# The member of a spec that holds a Kubernetes object, as a map or as text.
_MANIFEST: Final = "manifest"
_SCALARS: Final = (str, int, float, NoneType)
_LEAF_TYPES: Final = frozenset((str, int, float, bool, NoneType))
_NOTHING, _OBJECTS, _LISTS = frozenset((NoneType,)), frozenset((dict,)), frozenset((list,))
# What an annotation has if it is a copy of an object, and what shows it even if it cannot be read.
_OBJECT_MEMBER: Final = re.compile(r"kind|apiVersion|metadata|data\b|stringData")
_OBJECT_TEXT: Final = re.compile(
    r"""apiVersion|stringData|"(?:kind|data)"|^\s*(?:data\s*:|kind\s*:\s*\w+\s*$)""", re.MULTILINE
)
_COPIED_MEMBERS: Final = frozenset({"apiVersion", "metadata", "spec", "data", "stringData"})
_KIND_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
# How similar a kind is to a known one, if it is that with a typing error.
_MISSPELT_RATIO: Final = 0.8
# A shorter text is part of many words by chance.
_SHORTEST_TEXT: Final = 4


class SecretFields:
    """Finds the secret values of a document: the one place that decides what stores encrypt and views redact.

    They are the write-only fields of the known kinds and the values of Secrets, at any depth, in lists, in a manifest
    that is text, and in annotations that repeat a manifest. A value that does not fit its type counts as secret.
    """

    def __init__(self, shapes: Mapping[GroupKind, ObjectShape] = MappingProxyType({})) -> None:
        self._shapes = shapes
        # By name alone: a wrong API group does not uncover a password.
        self._names = {name.casefold(): (group, name) for group, name in shapes}

    def redacted(self, document: JsonObject) -> JsonObject:
        """`document` with every secret value redacted; `document` itself when it holds none."""
        try:
            found = self._object(document, _redact)
        except RecursionError:
            # Nested so deeply that it cannot be searched: only what it is called is shown.
            return {name: one if name in ("apiVersion", "kind") else REDACTED for name, one in document.items()}
        assert isinstance(found, Mapping)
        return found

    def texts(self, document: JsonObject) -> frozenset[str]:
        """The secret texts in `document`: see `secret_texts`. Those that are nested too deeply are left out."""
        found: set[str] = set()

        def collect(value: Json) -> Json:
            found.update(secret_texts(value))
            return value

        with suppress(RecursionError):
            self._object(document, collect)
        return frozenset(found)

    def _object(self, value: Json, hide: Hide, listed: str = "") -> Json:
        """An object of any kind, a list of them, or a part of one. `listed`: the kind of objects that name none."""
        if isinstance(value, _SCALARS):
            return value
        if type(value) is not dict and not isinstance(value, Mapping):
            return _elements(value, lambda one: self._object(one, hide, listed))
        if not listed and "kind" not in value and _STRING_DATA not in value:
            return self._untyped_members(value, hide)
        kind = str(value.get("kind", listed)).strip().casefold()
        typed, items = self._root(kind), kind.removesuffix("list")
        if typed is not None:
            return _members(value, lambda name, one: self._root_member(name, one, typed, hide))
        if items != kind:
            return _members(value, lambda name, one: self._object(one, hide, items if name == "items" else ""))
        # No other object has this member: the kind is misspelt.
        if kind != _SECRET_KIND and _STRING_DATA not in value:
            return self._untyped_members(value, hide)
        # Without metadata it may be a reference to a Secret.
        is_open = OPEN_SECRET_MEMBERS.__contains__ if "metadata" in value else _is_no_data
        return _members(value, lambda name, one: self._member(name, one, hide) if is_open(name) else _data(one, hide))

    def _untyped_members(self, value: Mapping[str, Json], hide: Hide) -> JsonObject:
        """Each member; `value` itself when all are the same. Most are scalars that are no manifests."""
        changed: dict[str, Json] = {}
        for name, one in value.items():
            if name == _MANIFEST or not (type(one) in _LEAF_TYPES or one == {} or isinstance(one, _SCALARS)):
                walked = self._member(name, one, hide)
                if walked is not one:
                    changed[name] = walked
        return {**value, **changed} if changed else value

    def _root(self, kind: str) -> Field | None:
        """The resources of a kind, in lower case; None for an unknown one."""
        name = self._names.get(kind)
        return None if name is None else _element(self._shapes[name])

    def _root_member(self, name: str, value: Json, typed: Field, hide: Hide) -> Json:
        """A member of a resource; or of a reference to one, which has no spec."""
        field = field_below(typed, name)
        if field is None or value is None or name == "metadata":
            return self._member(name, value, hide)
        return self._field(value, field, hide)

    def _member(self, name: str, value: Json, hide: Hide) -> Json:
        if isinstance(value, _SCALARS):
            return self._maybe_manifest(value, hide) if name == _MANIFEST and isinstance(value, str) else value
        if name != "metadata":
            return self._object(value, hide)
        annotations = value.get("annotations") if isinstance(value, Mapping) else None
        if not isinstance(value, Mapping) or not isinstance(annotations, Mapping):
            return self._object(value, hide)
        shown = _members(annotations, lambda key, text: self._annotation(key, text, hide))
        return value if shown is annotations else {**value, "annotations": shown}

    def _annotation(self, key: str, text: Json, hide: Hide) -> Json:
        """An annotation, which may be a copy of a whole manifest."""
        if not isinstance(text, str) or not (key == LAST_APPLIED or _OBJECT_MEMBER.search(text)):
            return text
        found = self._text(text, hide)
        if found is None:
            return hide(text) if key == LAST_APPLIED or _OBJECT_TEXT.search(text) else text
        return found

    def _may_be_broken_copy(self, value: Json) -> bool:
        """Whether it may be the copy of an object, or a list with one, whose kind is misspelt: its type is unknown."""
        if isinstance(value, list):
            return any(map(self._may_be_broken_copy, value))
        if not isinstance(value, Mapping) or self._may_be_broken_copy(value.get("items")):
            return isinstance(value, Mapping)
        kind = value.get("kind")
        if not isinstance(kind, str) or not _KIND_NAME.fullmatch(kind):
            return not _COPIED_MEMBERS.isdisjoint(value)
        name, known = kind.casefold(), (_SECRET_KIND, *self._names)
        return name not in known and any(SequenceMatcher(None, name, one).ratio() >= _MISSPELT_RATIO for one in known)

    def _maybe_manifest(self, text: str, hide: Hide) -> Json:
        """A text that may be a manifest, of a type that is unknown or under a name with a typing error."""
        found = self._text(text, hide)
        if found is None:
            return hide(text) if _SECRET_KIND in text.casefold() else text
        return found

    def _text(self, text: str, hide: Hide) -> Json:
        """The documents in `text`; `text` itself when they hold no secret value, None when it is not readable.

        A text that may hold one, since the kind of an object is misspelt, is hidden as a whole.
        """
        documents = _read_text(text)
        if not documents or not all(isinstance(one, Mapping | list) for one in documents):
            return None
        try:
            walked = [self._object(one, hide) for one in documents]
        except RecursionError:
            return None
        if not all(map(is_, walked, documents)):
            return _written(walked)
        return hide(text) if self._may_be_broken_copy(documents) else text

    def _typed_member(self, name: str, value: Json, parent: Field, hide: Hide) -> Json:
        if value is None:
            return None
        field = field_below(parent, name)
        if name == _MANIFEST and isinstance(value, str):
            found = self._text(value, hide)
            return hide(value) if found is None else found
        if field is None or (field.entries is not None and not isinstance(value, Mapping)):
            # Not as the type says: it may be a password with a typing error in its name, or in the wrong place.
            has_secret_name = SECRET_NAME.search(name) is not None and holds_value(value)
            if has_secret_name or not parent.is_open:
                return hide(value)
            return self._maybe_manifest(value, hide) if isinstance(value, str) else self._object(value, hide)
        return self._field(value, field, hide)

    def _field(self, value: Json, field: Field, hide: Hide) -> Json:
        if field.write_only:
            return _write_only(value, field, hide)
        if field.is_open and (isinstance(value, _SCALARS) or _are_as_typed((value,), field)):
            return value
        match field.shape, value:
            case (ObjectShape() | MapShape(), Mapping()):
                return self._spec(value, field, hide)
            case (KeyedList(item=keyed), list() | tuple()):
                return _elements(value, lambda one: self._field(one, keyed, hide))
            case (AtomicList(item=shape), list() | tuple()):
                item = _element(shape)
                return _elements(value, lambda one: self._field(one, item, hide))
            case _:
                return self._object(value, hide) if field.is_open else hide(value)

    def _spec(self, value: Mapping[str, Json], field: Field, hide: Hide) -> Json:
        """An object of a spec. What a wait expects of a Secret may be one of its values."""
        walked = _members(value, lambda name, one: self._typed_member(name, one, field, hide))
        wait = value.get("waitFor")
        if not isinstance(wait, Mapping) or not self._holds_secret(value.get(_MANIFEST)):
            return walked
        return {**walked, "waitFor": _members(wait, lambda name, one: hide(one) if name == "fieldValue" else one)}

    def _holds_secret(self, manifest: Json) -> bool:
        if isinstance(manifest, str):
            return self._text(manifest, _redact) is not manifest
        return self._object(manifest, _redact) is not manifest


# Finds the values of Secrets alone.
NO_TYPES: Final = SecretFields()


def secret_texts(value: Json) -> frozenset[str]:
    """The texts in a secret value, in each form in which a message may repeat them, but for very short ones."""
    forms = (form for text in _leaf_texts(value) for form in _forms(text))
    return frozenset(text for text in forms if len(text) >= _SHORTEST_TEXT)


def without_texts(value: Json, texts: Collection[str]) -> Json:
    """`value` with each of `texts` redacted wherever a text repeats it; `value` itself when none does."""
    if isinstance(value, str):
        for text in sorted(texts, key=len, reverse=True):
            value = value.replace(text, REDACTED) if text in value else value
        return value
    if isinstance(value, Mapping):
        return _members(value, lambda _, one: without_texts(one, texts))
    return _elements(value, lambda one: without_texts(one, texts)) if isinstance(value, list | tuple) else value


def redacted_at(value: Json, at: Path = Path()) -> Path | None:  # noqa: B008 - a constant
    """Where a manifest has a redacted value, in text as well; None when it has none."""
    if isinstance(value, str):
        return at if REDACTED in (value, value.strip()) else _redacted_in_text(value, at)
    if isinstance(value, Mapping):
        found = (redacted_at(one, at / name) for name, one in value.items())
    elif isinstance(value, list | tuple):
        found = (redacted_at(one, at / index) for index, one in enumerate(value))
    else:
        return None
    return next((one for one in found if one is not None), None)


def _redacted_in_text(text: str, at: Path) -> Path | None:
    if REDACTED not in text or at.steps[-1:] != (_MANIFEST,):
        return None
    documents = _read_text(text) or ()
    return next((one for one in (redacted_at(document, at) for document in documents) if one is not None), None)


def _written(documents: Sequence[Json]) -> str:
    from setpoint.core.values.yaml_documents import write_document

    return "---\n".join(map(write_document, documents))


def _read_text(text: str) -> list[Json] | None:
    """The documents in a text; None when they cannot be read."""
    # Most manifests are maps: the YAML reader is imported for text only.
    from setpoint.core.values.yaml_documents import read_documents

    try:
        return [one.value for one in read_documents(text, "")]
    except (SetpointError, RecursionError):
        return None


def _data(value: Json, hide: Hide) -> Json:
    """The values of a Secret."""
    if value is None:
        return None
    return _members(value, lambda _, one: hide(one)) if isinstance(value, Mapping) else hide(value)


def _is_no_data(member: str) -> bool:
    return member not in ("data", "stringData")


def _redact(_value: Json) -> Json:
    return REDACTED


def _write_only(value: Json, field: Field, hide: Hide) -> Json:
    """A write-only value. The reference to a Secret that keeps it is not secret, as long as it fits its type."""

    def member(name: str, one: Json) -> Json:
        is_shown = one is None or (name == _REFERENCE and _fits(one, field_below(field, name)))
        return one if is_shown else hide(one)

    return _members(value, member) if isinstance(value, Mapping) else hide(value)


def _fits(value: Json, field: Field | None) -> bool:
    match field, value:
        case (Field(shape=ObjectShape(fields=fields)), Mapping()):
            return all(_fits(one, fields.get(name)) for name, one in value.items())
        case (Field(shape=Leaf()), str()):
            return True
        case _:
            return False


def _are_as_typed(values: Collection[Json], field: Field) -> bool:
    """Whether values of a field have members of its type alone, at any depth: if none is write-only, none is secret.

    The values of one field in all elements of a list are looked at together, in as few calls as those of one element.
    """
    shape, types = field.shape, frozenset(map(type, values))
    if types <= _LEAF_TYPES:
        return field.entries is None or types <= _NOTHING
    if types == _OBJECTS and isinstance(shape, ObjectShape):
        objects: Collection[JsonObject] = values  # type: ignore[assignment] # that is what they are
        names, fields = frozenset[str]().union(*objects), shape.fields
        if _MANIFEST in names or not names <= fields.keys():
            return False
        members = ([one[name] for one in objects if name in one] for name in names)
        return all(map(_are_as_typed, members, [fields[name] for name in names]))
    if types == _LISTS and isinstance(shape, AtomicList | KeyedList):
        lists: Collection[Sequence[Json]] = values  # type: ignore[assignment] # as above
        item = _element(shape.item) if isinstance(shape, AtomicList) else shape.item
        return _are_as_typed([*chain.from_iterable(lists)], item)
    return False


def _members(value: Mapping[str, Json], member: Callable[[str, Json], Json]) -> JsonObject:
    """Each member as `member` says; `value` itself when all are the same."""
    changed: dict[str, Json] = {}
    for name, one in value.items():
        walked = member(name, one)
        if walked is not one:
            changed[name] = walked
    return {**value, **changed} if changed else value


def _elements(value: Sequence[Json], element: Callable[[Json], Json]) -> Json:
    walked = [element(one) for one in value]
    return value if all(map(is_, walked, value)) else walked


@cache
def _element(shape: Shape) -> Field:
    """An element of a list that has no field of its own."""
    return Field(shape)


def _leaf_texts(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (text for one in value.values() for text in _leaf_texts(one))
    elif isinstance(value, list | tuple):
        yield from (text for one in value for text in _leaf_texts(one))
    elif value is not None:
        yield str(value)


def _forms(text: str) -> Iterator[str]:
    """A text as it is, in JSON and in base64; of base64 also what it stands for."""
    yield text
    yield canonical(text).decode()[1:-1]
    yield base64.b64encode(text.encode()).decode()
    try:
        yield base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return
