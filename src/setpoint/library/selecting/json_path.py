"""JSONPath templates, the part of kubectl's that names fields: `{.spec.region}`, `{range .items[*]}{.kind}{end}`.

Between braces stands a path in setpoint's own language, as in `waitFor`, with `[*]` for each element, `..` for any
depth, slices such as `[0:2]`, and unions such as `[0,2]` or `['a','b']`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

import orjson

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import printable
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import ManifestInvalid

_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_QUOTED: Final = re.compile("'([^']*)'")
_MANY: Final = re.compile(
    r"""(?P<child>\[\*\]|\.\*)|(?P<descendant>\.\.)|\[(?P<slice>(?:-?\d+)?:(?:-?\d+)?(?::(?:-?\d+)?)?)\]"""
    r"""|\[(?P<positions>-\d+|-?\d+(?:,-?\d+)+)\]|\[(?P<names>'[^']*'(?:,'[^']*')*)\]"""
    r"""|"(?:[^"\\]|\\.)*"|'[^']*'"""
)
_RANGE: Final = "range"
_END: Final = "end"
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class _Every(Enum):
    """Steps that lead to several values: to each element or member, or to a value and all that is in it."""

    CHILD = "[*]"
    DESCENDANT = ".."


@dataclass(frozen=True, slots=True)
class _Union:
    """The elements at these positions, those below zero from the end; or the members of these names."""

    keys: tuple[int | str, ...]


_PathPart: TypeAlias = Path | _Every | slice | _Union


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path that may lead to several values: `[*]`, `..`, slices and unions, and the plain paths between them."""

    parts: tuple[_PathPart, ...]

    @staticmethod
    def parse(text: str, where: str) -> "FieldPath":
        """The path written as `text`; ManifestInvalid says what is wrong, and where."""
        try:
            return FieldPath(tuple(_parts_of(text.strip().removeprefix("$").removeprefix("@"))))
        except ManifestInvalid as error:
            raise ManifestInvalid(f"{where}: {error}") from error

    def values(self, tree: Json) -> Iterator[Json]:
        """What is there: nothing where a step of the way is missing."""
        yield from _values(tree, self.parts)


def _parts_of(text: str) -> Iterator[_PathPart]:
    """The plain paths of a text, and the steps between them that lead to several values."""
    at = 0
    for found in _MANY.finditer(text):
        part = _part_of(found)
        if part is None:
            continue
        if at < found.start():
            yield Path.parse(text[at : found.start()].removeprefix("."))
        at = found.end()
        if part is _Every.DESCENDANT and at == len(text):
            raise ManifestInvalid(f"{text!r} ends with '..': name a field after it")
        yield part
    if at < len(text) or not at:
        yield Path.parse(text[at:].removeprefix("."))


def _part_of(found: "re.Match[str]") -> _PathPart | None:
    """What a match says; None for a quoted text, in which these characters mean nothing."""
    match found.lastgroup:
        case "child":
            return _Every.CHILD
        case "descendant":
            return _Every.DESCENDANT
        case "slice":
            start, stop, step = [int(one) if one else None for one in f"{found['slice']}::".split(":")[:3]]
            if step is not None and step <= 0:
                raise ManifestInvalid(f"the slice {found[0]} has a step of {step}: it has to be above zero")
            return slice(start, stop, step)
        case "positions":
            return _Union(tuple(map(int, found["positions"].split(","))))
        case "names":
            return _Union(tuple(_QUOTED.findall(found["names"])))
        case _:
            return None


def _values(tree: Json, parts: Sequence[_PathPart]) -> Iterator[Json]:
    if not parts:
        yield tree
        return
    for one in _found(tree, parts[0]):
        yield from _values(one, parts[1:])


def _found(tree: Json, part: _PathPart) -> Iterator[Json]:
    match part:
        case Path():
            found = get_at(tree, part)
            if not isinstance(found, Missing):
                yield found
        case slice():
            yield from tree[part] if isinstance(tree, list | tuple) else ()
        case _Union():
            yield from (one for key in part.keys for one in _at(tree, key))
        case _Every.CHILD:
            yield from _children(tree)
        case _Every.DESCENDANT:
            yield tree
            for below in _children(tree):
                yield from _found(below, part)


def _at(tree: Json, key: int | str) -> Iterator[Json]:
    if isinstance(key, str):
        if isinstance(tree, Mapping) and key in tree:
            yield tree[key]
    elif isinstance(tree, list | tuple) and -len(tree) <= key < len(tree):
        yield tree[key]


def _children(tree: Json) -> Iterable[Json]:
    return tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list | tuple) else ()


@dataclass(frozen=True, slots=True)
class JsonPathTemplate:
    """A template: texts, paths, and parts that are repeated for each value of a path."""

    parts: "tuple[str | FieldPath | RepeatedPart, ...]"

    @staticmethod
    def parse(text: str) -> "JsonPathTemplate":
        """The template; a path alone may stand without braces. ManifestInvalid names the character."""
        if "{" not in text:
            text = "{" + text + "}" if text.startswith((".", "$")) else "{." + text + "}"
        return JsonPathTemplate(_Reader(text).parts())

    def render(self, tree: Json) -> str:
        """The template filled in. Several values of a path have a space between them, as with kubectl."""
        return "".join(_rendered(one, tree) for one in self.parts)


@dataclass(frozen=True, slots=True)
class RepeatedPart:
    """A part of a template for each value of a path."""

    over: FieldPath
    inside: JsonPathTemplate


def _rendered(part: "str | FieldPath | RepeatedPart", tree: Json) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, RepeatedPart):
        return "".join(part.inside.render(one) for one in part.over.values(tree))
    return " ".join(value_text(one) for one in part.values(tree))


def value_text(value: Json) -> str:
    """A value as text that a terminal can show: objects and lists as JSON."""
    return printable(value if isinstance(value, str) else orjson.dumps(value).decode())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def parts(self, *, is_inside: bool = False) -> "tuple[str | FieldPath | RepeatedPart, ...]":
        found: list[str | FieldPath | RepeatedPart] = []
        while self._at < len(self._text):
            start = self._text.find("{", self._at)
            if start != self._at:
                found.append(self._text[self._at : None if start < 0 else start])
                self._at = len(self._text) if start < 0 else start
                continue
            place, expression = start, self._expression()
            if expression == _END:
                if not is_inside:
                    raise self._error("there is no {range} to end", place)
                return tuple(found)
            found.append(self._part(expression, place))
        if is_inside:
            raise self._error("{end} is missing", self._at)
        return tuple(found)

    def _part(self, expression: str, place: int) -> "str | FieldPath | RepeatedPart":
        word, _, rest = expression.partition(" ")
        if word == _RANGE:
            over = FieldPath.parse(rest, self._where(place))
            return RepeatedPart(over, JsonPathTemplate(self.parts(is_inside=True)))
        if expression.startswith('"'):
            text = _TEXT.fullmatch(expression)
            if text is None:
                raise self._error('a text has to end with "', place)
            return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1])
        return FieldPath.parse(expression, self._where(place))

    def _expression(self) -> str:
        """What stands between two braces; a quoted text in it may have braces of its own."""
        quote, start = "", self._at + 1
        for at in range(start, len(self._text)):
            sign = self._text[at]
            if quote:
                quote = "" if sign == quote else quote
            elif sign in "\"'":
                quote = sign
            elif sign == "}":
                self._at = at + 1
                return self._text[start:at].strip()
        raise self._error("'}' is missing", self._at)

    def _where(self, at: int) -> str:
        return f"jsonpath {self._text!r}: character {at + 1}"

    def _error(self, problem: str, at: int) -> ManifestInvalid:
        return ManifestInvalid(f"{self._where(at)}: {problem}")
