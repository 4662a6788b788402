"""JSONPath templates, the part of kubectl's that names fields: `{.spec.region}`, `{range .items[*]}{.kind}{end}`.

Between braces stands a path in setpoint's own language, as in `waitFor`, with `[*]` for each element.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import printable
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import ManifestInvalid

_TEXT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
_RANGE: Final = "range"
_END: Final = "end"
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path with `[*]` in it: the paths between the wildcards."""

    parts: tuple[Path, ...]

    @staticmethod
    def parse(text: str, where: str) -> "FieldPath":
        """The path written as `text`; ManifestInvalid says what is wrong, and where."""
        plain = text.strip().removeprefix("$").removeprefix("@")
        if ".." in plain:
            raise ManifestInvalid(f"{where}: {text!r} searches at any depth: write the whole path")
        try:
            parts = tuple(Path.parse(one.removeprefix(".")) for one in plain.replace(".*", "[*]").split("[*]"))
        except ManifestInvalid as error:
            raise ManifestInvalid(f"{where}: {error}") from error
        return FieldPath(parts)

    def values(self, tree: Json) -> Iterator[Json]:
        """What is there: nothing where a step of the way is missing."""
        yield from _values(tree, self.parts)


def _values(tree: Json, parts: Sequence[Path]) -> Iterator[Json]:
    found = get_at(tree, parts[0])
    if isinstance(found, Missing):
        return
    if len(parts) == 1:
        yield found
        return
    inside = found.values() if isinstance(found, Mapping) else found if isinstance(found, list | tuple) else ()
    for one in inside:
        yield from _values(one, parts[1:])


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
