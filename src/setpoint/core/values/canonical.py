"""Canonical bytes of a JSON value, their digest, and JSON equality.

The bytes are those of RFC 8785 wherever it is defined, so that another language can recompute a digest. Integers beyond
±2**53 keep their exact digits: two different int64 never share a digest.
"""

import hashlib
from collections.abc import Mapping
from enum import Enum
from functools import cache
from json.encoder import encode_basestring
from typing import Final, TypeAlias
from uuid import UUID

import msgspec
import orjson
from msgspec import inspect

from setpoint.core.values.json_types import Json, number_text, same_number
from setpoint.core.values.paths import Path
from setpoint.errors import NotJson

JsonOrStruct: TypeAlias = Json | msgspec.Struct

_CONTAINERS: Final = frozenset((dict, list))
# The deepest nesting that orjson accepts; the exact encoder has the same limit.
MAX_DEPTH: Final = 254


def canonical(value: JsonOrStruct) -> bytes:
    """The canonical bytes of `value`; NotJson when it has no JSON form."""
    if isinstance(value, msgspec.Struct):
        text = _struct_text(value)
        return text if text is not None else canonical(_to_builtins(value))
    text = _fast_text(value)
    return text if text is not None else _exact_text(value)


def digest(value: JsonOrStruct) -> str:
    """SHA-256 of the canonical bytes of `value`, in lower-case hex."""
    return sha256_hex(canonical(value))


def sha256_hex(body: bytes) -> str:
    """SHA-256 of bytes as they are, in lower-case hex: equal response bodies need no decoding."""
    return hashlib.sha256(body).hexdigest()


def same(a: JsonOrStruct, b: JsonOrStruct) -> bool:
    """Whether `a` and `b` are the same JSON value: 1 equals 1.0, True differs from 1, the order of keys is ignored."""
    if a is b:
        return True
    kind, other = type(a), type(b)
    if kind is str and other is str:
        return a == b
    if kind in _CONTAINERS and other in _CONTAINERS:
        return encodes_same(a, b) or _same_parts(a, b)
    return _same_scalars(a, b) if _is_scalar(a) or _is_scalar(b) else _same_parts(_to_builtins(a), _to_builtins(b))


def _is_scalar(value: JsonOrStruct) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))


def _same_scalars(a: JsonOrStruct, b: JsonOrStruct) -> bool:
    if isinstance(a, str):
        return isinstance(b, str) and a == b
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return False
    return isinstance(a, (int, float)) and isinstance(b, (int, float)) and same_number(a, b)


def encodes_same(a: JsonOrStruct, b: JsonOrStruct) -> bool:
    """Whether both encode to the same bytes, which is cheap. False proves nothing: 1 and 1.0 encode differently."""
    try:
        # In the order of their members, as equal values mostly are: to sort these takes half as long again. In another
        # order they take as many bytes.
        one, other = _msgpack(a), _msgpack(b)
        return one == other or (len(one) == len(other) and _packed(a) == _packed(b))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False


def _same_parts(a: object, b: object) -> bool:
    try:
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            return len(a) == len(b) and all(key in b and same(value, b[key]) for key, value in a.items())
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(map(same, a, b))
    except RecursionError:
        raise NotJson(f"nested deeper than {MAX_DEPTH} levels, or in a cycle") from None
    return False


def _to_builtins(value: JsonOrStruct) -> Json:
    """A struct as plain objects and lists, without its unset fields; any other value unchanged."""
    if isinstance(value, msgspec.Struct):
        tree: Json = msgspec.to_builtins(value, str_keys=True)
        return tree
    return value


# --- Fast encoder: bytes of orjson or msgspec, used when they are proven to be canonical -----------------------------

_OPTIONS: Final = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
_sorted_json: Final = msgspec.json.Encoder(order="sorted").encode
_msgpack: Final = msgspec.msgpack.Encoder().encode
_packed: Final = msgspec.msgpack.Encoder(order="sorted").encode
# MessagePack writes this byte before every double, so bytes without it hold no double. The byte may also be part of
# another value: then a walk over the value decides.
_DOUBLE: Final = b"\xcb"
_NOT_FLOATS: Final = frozenset((str, int, bool, type(None)))
_BELOW_ASTRAL: Final = bytes(range(0xF0))
_PLAIN_TYPES: Final = (
    inspect.StrType,
    inspect.IntType,
    inspect.BoolType,
    inspect.NoneType,
    inspect.FloatType,
    inspect.LiteralType,
)


def _fast_text(value: Json) -> bytes | None:
    """orjson's bytes if they are canonical: no float, and no key that sorts differently as UTF-16; else None."""
    try:
        text = orjson.dumps(value, option=_OPTIONS)
        proven = _DOUBLE not in _msgpack(value) or _holds_no_float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return text if proven and _sorts_alike(text) else None


def _holds_no_float(value: Json) -> bool:
    """Whether `value` holds only text, integers, booleans and null. The walk does not detect cycles: orjson has."""
    todo = [value]
    for node in todo:
        if isinstance(node, dict):
            todo.extend(node.values())
        elif isinstance(node, list | tuple):
            todo.extend(node)
        elif type(node) not in _NOT_FLOATS:
            return False
    return True


def _struct_text(value: msgspec.Struct) -> bytes | None:
    """msgspec's bytes under the same proof, for struct types that encode to plain JSON; else None."""
    if not _is_plain_type(type(value)):
        return None
    try:
        text = _sorted_json(value)
        proven = _DOUBLE not in _msgpack(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return text if proven and _sorts_alike(text) else None


def _sorts_alike(text: bytes) -> bool:
    """Whether UTF-8 and UTF-16 sort every key in `text` alike: they do if no character is beyond the BMP."""
    return text.isascii() or not text.translate(None, _BELOW_ASTRAL)


@cache
def _is_plain_type(type_: type[msgspec.Struct]) -> bool:
    """Whether every value of `type_` encodes as the exact encoder would, floats excepted."""
    try:
        todo: list[inspect.Type] = [inspect.type_info(type_)]
    except TypeError:
        return False
    seen: set[type] = set()
    for node in todo:
        match node:
            case inspect.StructType(cls=cls, fields=fields):
                todo.extend(field.type for field in fields if cls not in seen)
                seen.add(cls)
            case inspect.UnionType(types=types):
                todo.extend(types)
            case inspect.ListType(item_type=item) | inspect.DictType(key_type=inspect.StrType(), value_type=item):
                todo.append(item)
            case _ if isinstance(node, _PLAIN_TYPES):
                pass
            case _:
                return False
    return True


# --- Exact encoder: slow, and right for every value -------------------------------------------------------------------


def _exact_text(value: Json) -> bytes:
    return "".join(_ExactEncoder().write(value)).encode()


class _ExactEncoder:
    """Collects the text of one value in pieces, and the path of the current value for error messages."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._path: list[str | int] = []

    def write(self, value: object) -> list[str]:
        """Appends the text of `value`; returns all pieces so far."""
        match value:
            case str():
                self._pieces.append(self._string(value))
            case bool():
                self._pieces.append("true" if value else "false")
            case int() | float():
                self._pieces.append(self._number(value))
            case None:
                self._pieces.append("null")
            case _:
                self._container(value)
        return self._pieces

    def _container(self, value: object) -> None:
        if len(self._path) >= MAX_DEPTH:
            raise NotJson(f"nested deeper than {MAX_DEPTH} levels, or in a cycle")
        match value:
            case Mapping():
                self._object(value)
            case list() | tuple():
                self._array(value)
            case Enum():
                self.write(value.value)
            case UUID():
                self.write(str(value))
            case _:
                raise self._refused(f"a {type(value).__name__} has no JSON form: use text, a number, a list or a map")

    def _object(self, value: Mapping[object, object]) -> None:
        comma = "{"
        for key in self._sorted(value):
            self._pieces.append(f"{comma}{self._string(key)}:")
            self._path.append(key)
            self.write(value[key])
            self._path.pop()
            comma = ","
        self._pieces.append("{}" if comma == "{" else "}")

    def _array(self, value: list[object] | tuple[object, ...]) -> None:
        comma = "["
        for position, item in enumerate(value):
            self._pieces.append(comma)
            self._path.append(position)
            self.write(item)
            self._path.pop()
            comma = ","
        self._pieces.append("[]" if comma == "[" else "]")

    def _sorted(self, value: Mapping[object, object]) -> list[str]:
        keys = [key for key in value if isinstance(key, str)]
        if len(keys) < len(value):
            wrong = next(key for key in value if not isinstance(key, str))
            raise self._refused(f"the key {wrong!r} is a {type(wrong).__name__}: JSON keys are text, put it in quotes")
        if all(map(str.isascii, keys)):
            return sorted(keys)
        return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))

    def _string(self, text: str) -> str:
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                why = f"text with a lone surrogate at position {error.start} has no UTF-8 form"
                raise self._refused(why) from error
        return encode_basestring(text)

    def _number(self, value: int | float) -> str:
        try:
            return number_text(value)
        except ValueError as error:
            raise self._refused(str(error)) from error

    def _refused(self, why: str) -> NotJson:
        at = Path(tuple(self._path))
        return NotJson(f"{at}: {why}" if at else why, str(at))
