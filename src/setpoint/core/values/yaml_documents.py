"""YAML documents: reading with the line of each value, and writing text that reads back as the same value.

Plain scalars follow Kubernetes' rules; dates and times stay text. Tags are refused. Aliases are expanded up to a limit,
and cyclic ones are refused. Merge keys (`<<`) are those that kubectl and YAML 1.1 read alike: any other is refused.
"""

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import ClassVar, Final, TypeAlias

import yaml
from yaml.representer import BaseRepresenter

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.errors import YamlInvalid

MAX_VALUES: Final = 200_000
_MAX_DEPTH: Final = 200
_WIDTH: Final = 80
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE: Final = frozenset(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE: Final = frozenset(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"))
_WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_REAL: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_BASED: Final = re.compile(r"0x[0-9a-fA-F]+|0o?[0-7]+")
# Characters that a terminal hides, or that change the direction of writing.
_FORMAT: Final = re.compile(
    "[\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_DEFAULT_TAGS: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))


_Start: TypeAlias = yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document: its value, and for each path the line of its key, or where an element begins, counted from 1."""

    value: Json
    source: str
    lines: Mapping[Path, int]

    def where(self, path: Path) -> str:
        """`file:line` of the value at `path`, or of its nearest ancestor that exists."""
        return f"{self.source}:{self.line_of(path)}"

    def line_of(self, path: Path) -> int:
        """The line of the value at `path`, or of its nearest ancestor that exists."""
        while path not in self.lines and path:
            path = path.parent
        return self.lines[path]


def read_documents(text: str, source: str, most: float = inf) -> tuple[YamlDocument, ...]:
    """The documents in `text` without empty ones; YamlInvalid names the line where it is not YAML, and why.

    `most` is how many values all documents may have together; each may have `MAX_VALUES`.
    """
    try:
        found = list(_documents(yaml.parse(text, Loader=yaml.CBaseLoader), source, most))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _misread(text, source, line, f"this is not YAML: {error.problem or error.context}") from error
    except YamlInvalid as error:
        raise _misread(text, source, error.line, error.why) from error
    except (yaml.YAMLError, ValueError) as error:
        raise _invalid(source, 1, f"this is not YAML: {str(error).splitlines()[0]}") from error
    return tuple(document for document in found if document.value is not None)


def write_document(value: Json) -> str:
    """The text of a document with the members in their order; `read_documents` reads it back as the same value."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=_WIDTH
    )
    # Every text with such a character is in double quotes. libyaml escapes control characters, and no others.
    return _FORMAT.sub(lambda found: f"\\U{ord(found[0]):08x}", text)


def _represent_text(writer: BaseRepresenter, text: str) -> yaml.ScalarNode:
    """Quotes text that `read_documents` would read as another type: PyYAML quotes by YAML 1.1 rules, not by ours."""
    style = None if isinstance(_scalar(text), str) else "'"
    is_plain = all(one.isprintable() or one == "\n" for one in text)
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style if is_plain else '"')


class _Dumper(yaml.CSafeDumper):
    yaml_representers: ClassVar = {**yaml.CSafeDumper.yaml_representers, str: _represent_text}

    def ignore_aliases(self, data: object) -> bool:
        return True


def _documents(events: Iterator[yaml.Event], source: str, most: float) -> Iterator[YamlDocument]:
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            reader = _Reader(events, source, min(MAX_VALUES, most))
            value = reader.value(next(events), Path())
            most -= reader.size
            yield YamlDocument(value, source, reader.lines)


@dataclass(frozen=True, slots=True)
class _Anchored:
    """An anchored value, and how many values it holds with its aliases expanded."""

    value: Json
    size: int


class _Reader:
    """Builds the value of one document from parser events, within the limits of depth and size."""

    def __init__(self, events: Iterator[yaml.Event], source: str, most: float) -> None:
        self.lines: dict[Path, int] = {}
        # With aliases expanded.
        self.size = 0
        self._events = events
        self._source = source
        self._most = most
        # None while the value is still being read: an alias to it would be a cycle.
        self._anchors: dict[str, _Anchored | None] = {}

    def value(self, event: yaml.Event, at: Path) -> Json:
        """The value that begins with `event`; its line is added to `lines`."""
        self.lines[at] = _line(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        assert isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent)
        self._check(event, at)
        before = self.size
        self._count(1, event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        value = self._own_value(event, at)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, self.size - before)
        return value

    def _own_value(self, event: _Start, at: Path) -> Json:
        match event:
            case yaml.ScalarEvent():
                text: str = event.value
                return text if event.style else _scalar(text)
            case yaml.SequenceStartEvent():
                return self._array(at)
            case _:
                return self._object(at)

    def _array(self, at: Path) -> Json:
        items: list[Json] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self.value(event, at / len(items)))
        return items

    def _object(self, at: Path) -> Json:
        result: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        seen: set[tuple[str, bool]] = set()
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key, is_merge = self._key(event), _is_merge_key(event)
            if (key, is_merge) in seen:
                raise self._refused(event, f"the key {key!r} stands twice: keep one of them")
            seen.add((key, is_merge))
            value = self.value(next(self._events), at / key)
            # That of the key: a map as a value begins a line later.
            self.lines[at / key] = _line(event)
            if is_merge:
                merged = self._merged(event, value, result, at)
            else:
                result[key] = value
        return {**merged, **result}

    def _merged(self, event: yaml.Event, value: Json, before: Mapping[str, Json], at: Path) -> dict[str, Json]:
        """The fields that a merge key adds; of several maps the first one wins."""
        maps = [value] if isinstance(value, dict) else value
        merged: dict[str, Json] = {}
        for one in reversed(maps if isinstance(maps, list) else [None]):
            if not isinstance(one, dict):
                raise self._refused(event, "a merge key (<<) takes a map, or a list of maps: write one")
            merged |= one
        for key in merged:
            if key in before:
                # For YAML 1.1 the field before it wins, for kubectl the merged one.
                raise self._refused(
                    event, f"the field {key!r} stands before the merge key (<<) that has it, too: write << first"
                )
            self.lines[at / key] = _line(event)
        return merged

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refused(event, "a key has to be text: write a name")
        key: str = event.value
        return key

    def _alias(self, event: yaml.AliasEvent) -> Json:
        if event.anchor not in self._anchors:
            raise self._refused(event, f"there is no anchor &{event.anchor} before this alias")
        found = self._anchors[event.anchor]
        if found is None:
            raise self._refused(event, "an alias leads back into itself: write the value out")
        self._count(found.size, event)
        return found.value

    def _check(self, event: _Start, at: Path) -> None:
        if event.tag is not None and event.tag not in _DEFAULT_TAGS:
            raise self._refused(event, f"the tag {event.tag!r} is not supported: write the value without it")
        if len(at.steps) > _MAX_DEPTH:
            raise self._refused(event, f"nested deeper than {_MAX_DEPTH} levels: write it flatter")

    def _count(self, more: int, event: yaml.Event) -> None:
        self.size += more
        if self.size > self._most:
            raise self._refused(event, f"the aliases expand to more than {self._most:.0f} values: write less of it")

    def _refused(self, event: yaml.Event, why: str) -> YamlInvalid:
        return _invalid(self._source, _line(event), why)


def _is_merge_key(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and not event.style


# At the beginning of a line, or of a value: text in quotes may contain it.
_TEMPLATE: Final = re.compile(r"\s*(?:- )*(?:[^\s'\"#]+:\s+)?\{\{")
_TABBED: Final = re.compile(r" *\t")
_CONFLICT: Final = re.compile(r"<{7} ")


def _misread(text: str, source: str, line: int, why: str) -> YamlInvalid:
    """The error at a line, in words of its own for what is no YAML yet: merge conflicts, templates, and tabs."""
    lines = text.splitlines()
    if marked := [number for number, one in enumerate(lines, 1) if _CONFLICT.match(one)]:
        return _invalid(source, marked[0], "a merge conflict begins here: resolve it, and take out its marks")
    for number in (line, line - 1):
        if 0 < number <= len(lines):
            if _TEMPLATE.match(lines[number - 1]):
                advice = "render the template first, and name the file that comes of it"
                return _invalid(source, number, f"this is a template ({{{{ … }}}}), and no YAML yet: {advice}")
            if _TABBED.match(lines[number - 1]):
                return _invalid(source, number, "a tab is used as indentation, which YAML forbids: write spaces")
    return _invalid(source, line, why)


def _invalid(source: str, line: int, why: str) -> YamlInvalid:
    return YamlInvalid(f"{source}:{line}: {why}", line, why)


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.line + 1


def _scalar(text: str) -> Json:
    """The value of a plain scalar."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if len(text) > 400:
        return text
    if _WHOLE.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 16) if text.startswith("0x") else int(text.replace("o", ""), 8)
    return float(text) if _REAL.fullmatch(text) else text
