"""Merges the generated TLS settings into a `kbs-config.toml` that users edit; every other byte stays as it is.

The result is parsed again: where it does not mean what it should, the text is left unchanged.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias

from setpoint.core.merge.threeway import EditableFields, WholeValue
from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.kinds.trustee.constants import KBS_TOML
from setpoint.kinds.trustee.trustee_config.generated_texts import profile_of
from setpoint.kinds.trustee.trustee_config.kbs_toml import TLS_COMMENT, TLS_KEYS, TlsSettings, setting_line

TomlKeyPath: TypeAlias = tuple[str, ...]

_KEY: Final = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEYS: Final = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_HEADER: Final = re.compile(rf"[ \t]*\[\[?[ \t]*(?P<keys>{_KEYS})[ \t]*\]")
_PAIR: Final = re.compile(rf"[ \t]*(?P<keys>{_KEYS})[ \t]*=[ \t]*")
_ONE_KEY: Final = re.compile(_KEY)
# Tokens of a value: strings and comments are skipped as a whole, brackets are counted.
_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*|.", re.DOTALL
)
_DEEPER: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class TomlLayout:
    """A comment or a blank line, in `table`."""

    text: str
    table: TomlKeyPath


@dataclass(frozen=True, slots=True)
class TomlHeader:
    """The start of a table."""

    text: str
    table: TomlKeyPath


@dataclass(frozen=True, slots=True)
class TomlPair:
    """A key and its value. `before` is the text up to the value, `after` the rest: space, comment, end of line."""

    before: str
    value: str
    after: str
    table: TomlKeyPath
    path: TomlKeyPath

    @property
    def text(self) -> str:
        """The statement as it is written."""
        return f"{self.before}{self.value}{self.after}"


TomlStatement: TypeAlias = TomlLayout | TomlHeader | TomlPair


def toml_statements(text: str) -> Iterator[TomlStatement]:
    """The statements of a TOML text, in order."""
    table: TomlKeyPath = ()
    position = 0
    while position < len(text):
        if header := _HEADER.match(text, position):
            end = _line_end(text, position)
            table = _key_path(header["keys"])
            yield TomlHeader(text[position:end], table)
        elif pair := _PAIR.match(text, position):
            value_end, end = _value_end(text, pair.end())
            path = (*table, *_key_path(pair["keys"]))
            yield TomlPair(text[position : pair.end()], text[pair.end() : value_end], text[value_end:end], table, path)
        else:
            end = _line_end(text, position)
            yield TomlLayout(text[position:end], table)
        position = end


def _key_path(keys: str) -> TomlKeyPath:
    return tuple(key.strip("\"'") for key in _ONE_KEY.findall(keys))


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _value_end(text: str, position: int) -> tuple[int, int]:
    """The ends of the value and of the statement: the first end of line outside of brackets and strings."""
    depth, last = 0, position
    for token in _TOKEN.finditer(text, position):
        found = token[0]
        if found == "\n" and not depth:
            return last, token.end()
        depth += _DEEPER.get(found, 0)
        if not found.isspace() and not found.startswith("#"):
            last = token.end()
    return last, len(text)


# --- TLS settings in valid TOML --------------------------------------------------------------------------------------

_SERVER: Final = "http_server"


def with_tls(text: str, generated: str) -> str:
    """`text` with the TLS settings of `generated`; unchanged if there are none, or no safe way to insert them."""
    wanted = tls_in(generated)
    before = _read(text)
    if not wanted or before is None:
        return text
    if not text.strip():
        return generated
    made = _TlsEdit(text, wanted).made() if _SERVER in before else _with_section(text, generated)
    return made if _means(made, before, wanted) else text


def tls_in(text: str) -> Mapping[str, str]:
    """The TLS settings in `text` by key; empty if it is not TOML."""
    server = (_read(text) or {}).get(_SERVER)
    found = server if isinstance(server, dict) else {}
    return {key: str(found[key]) for key in TLS_KEYS if key in found}


def without_tls(text: str) -> str:
    """`text` without TLS settings and blank lines: for comparison only."""
    if _read(text) is None:
        return text
    return "".join(one.text for one in toml_statements(text) if not _is_about_tls(one) and one.text.strip())


def settings_problem(text: str, generated: str) -> str | None:
    """What is wrong with an edited file, and what to do: it is not TOML, or TLS is not as generated."""
    problem = toml_problem(text)
    wanted = tls_in(generated)
    if _read(text) is not None and (not wanted or tls_in(text) == wanted):
        return None
    return problem or f"there is no place for the TLS settings: write [{_SERVER}], once, and no other {_SERVER}"


def toml_problem(text: str) -> str | None:
    """Why TLS settings cannot be merged into `text`; None if they can."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"it is not TOML: {error}: correct it"
    if any(isinstance(one, TomlPair) and one.path == (_SERVER,) for one in toml_statements(text)):
        return f"{_SERVER} is written as an inline table: write it as [{_SERVER}]"
    return None


def _read(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _means(made: str, before: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether `made` has the same values as before, except for the TLS settings."""
    after = _read(made)
    if after is None or tls_in(made) != wanted:
        return False
    rest = {key: value for key, value in before.get(_SERVER, after[_SERVER]).items() if key not in TLS_KEYS}
    return after == {**before, _SERVER: {**rest, **wanted}}


def _is_about_tls(one: TomlStatement) -> bool:
    match one:
        case TomlPair(path=path):
            return len(path) == 2 and path[0] == _SERVER and path[1] in TLS_KEYS
        case TomlLayout(table=table, text=text):
            return table == (_SERVER,) and text.strip().startswith(TLS_COMMENT)
        case _:
            return False


def _with_section(text: str, generated: str) -> str:
    """`text` with the generated server section appended."""
    section = "".join(one.text for one in toml_statements(generated) if one.table == (_SERVER,))
    return f"{text.rstrip()}\n\n{section.strip()}\n"


class _TlsEdit:
    """The edit of one text."""

    def __init__(self, text: str, wanted: Mapping[str, str]) -> None:
        self._wanted = wanted
        self._comment = TlsSettings(wanted.get(TLS_KEYS[0], "")).comment
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._old = list(toml_statements(text))

    def made(self) -> str:
        """The edited text."""
        lines: list[str] = []
        # The index at which missing settings are inserted, and whether that is inside the TLS block.
        place, at_block = -1, False
        for one in self._old:
            text = self._rewritten(one)
            if text:
                lines.append(text)
            if text and _is_about_tls(one):
                place, at_block = len(lines), True
            elif not at_block and self._is_of_server(one):
                place = len(lines)
        return self._with_missing(lines, place, at_block=at_block)

    def _rewritten(self, one: TomlStatement) -> str:
        """The edited statement; "" for one that is removed."""
        if not _is_about_tls(one):
            return one.text
        if isinstance(one, TomlPair):
            value = self._wanted.get(one.path[1])
            if value is None or value == tomllib.loads(f"x = {one.value}")["x"]:
                return "" if value is None else one.text
            return f"{one.before}{setting_line('', value).removeprefix(' = ')}{one.after}"
        first = next(other for other in self._old if isinstance(other, TomlLayout) and _is_about_tls(other))
        indent = one.text[: len(one.text) - len(one.text.lstrip())]
        return f"{indent}{self._comment}{self._newline}" if one is first else ""

    def _is_of_server(self, one: TomlStatement) -> bool:
        match one:
            case TomlHeader(table=table):
                return table == (_SERVER,)
            case TomlPair(path=path):
                return len(path) > 1 and path[0] == _SERVER and one.table in ((), (_SERVER,))
            case _:
                return False

    def _with_missing(self, lines: Sequence[str], place: int, *, at_block: bool) -> str:
        there = {one.path[1] for one in self._old if isinstance(one, TomlPair) and _is_about_tls(one)}
        missing = {key: value for key, value in self._wanted.items() if key not in there}
        if not missing:
            return "".join(lines)
        heads = any(isinstance(one, TomlHeader) and one.table == (_SERVER,) for one in self._old)
        prefix = "" if heads or place < 0 else f"{_SERVER}."
        new = [setting_line(f"{prefix}{key}", value) for key, value in missing.items()]
        if not at_block and not prefix:
            new = ["", self._comment, "", *new]
        if place < 0:
            # Only subtables exist: the table itself is appended.
            place, new = len(lines), ["", f"[{_SERVER}]", *new]
        before = "".join(lines[:place])
        gap = "" if not before or before.endswith("\n") else self._newline
        return f"{before}{gap}{''.join(line + self._newline for line in new)}{''.join(lines[place:])}"


# --- TLS settings line by line, as trustee-operator merges them: for files that are not valid TOML --------------------
# A key without spaces around `=` is not recognised; a file without `[http_server]` stays unchanged; lines after the
# settings end up before them.

_SERVER_HEADER: Final = "[http_server]"
_STARTS: Final = (*(f"{key} =" for key in TLS_KEYS), TLS_COMMENT)


def is_tls_line(line: str) -> bool:
    """Whether a stripped line is a TLS setting, or the comment above them."""
    return line.startswith(_STARTS)


def merge_tls_lines(existing: str, new: str) -> str:
    """`existing` with the settings of `new` at the end of its server section; unchanged if `new` has none."""
    settings = _settings_of(_sections(new))
    if not settings:
        return existing
    sections = _sections(existing)
    home = next((one for one in sections if one.is_server_section), None)
    made: list[str] = []
    for section in sections:
        made += section.without_settings() if section.is_server_section else section.lines
        made += settings if section is home else ()
    return "".join(f"{line}\n" for line in made)


@dataclass(frozen=True, slots=True)
class _Section:
    """A header and its lines; the header is "" before the first one."""

    header: str
    lines: list[str] = field(default_factory=list)

    @property
    def is_server_section(self) -> bool:
        return self.header == _SERVER_HEADER

    def without_settings(self) -> Iterator[str]:
        """The lines without settings, and without blank lines that follow a setting."""
        is_behind = False
        for line in self.lines:
            stripped = line.strip()
            is_setting = is_tls_line(stripped)
            is_behind = is_setting or (is_behind and not stripped)
            if not is_behind:
                yield line


def _settings_of(sections: Sequence[_Section]) -> list[str]:
    """The settings in the first section, if it is the server's: everything from the comment on."""
    first = next((one for one in sections if one.header), None)
    if first is None or not first.is_server_section:
        return []
    lines = [line for line in first.lines if line.strip() != _SERVER_HEADER]
    block = next((index for index, line in enumerate(lines) if line.strip().startswith(TLS_COMMENT)), len(lines))
    return [line for index, line in enumerate(lines) if index >= block or is_tls_line(line.strip())]


def _sections(text: str) -> list[_Section]:
    """The sections of the text; a header repeated at once does not start a new one."""
    found = [_Section("")]
    lines = text.split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        stripped = line.strip()
        if stripped.startswith("[") and stripped != found[-1].header:
            found.append(_Section(stripped))
        found[-1].lines.append(line.removesuffix("\r"))
    return found


# --- The merge view --------------------------------------------------------------------------------------------------

_FILE: Final = Path(("data", KBS_TOML))
_TEXT: Final = _FILE / "text"
# Users may edit the text.
KBS_TOML_EDITS: Final[EditableFields] = {_TEXT: WholeValue(variant_of=profile_of)}


class KbsTomlView:
    """The file in two parts for the merge: the text without TLS settings, and the TLS settings."""

    def read(self, object_: JsonObject) -> Json:
        """The two parts of the ConfigMap."""
        text = text_at(object_, "data", KBS_TOML)
        return {"data": {KBS_TOML: {"text": without_tls(text), "tls": dict(tls_in(text))}}}

    def write(self, live: JsonObject, generated: JsonObject, merged: Json) -> JsonObject:
        """The live ConfigMap with the merged parts."""
        old, new = text_at(live, "data", KBS_TOML), text_at(generated, "data", KBS_TOML)
        if get_at(merged, _TEXT) != without_tls(new):
            # Invalid TOML cannot be parsed: edit it line by line.
            new = merge_tls_lines(old, new) if toml_problem(old) else with_tls(old, new)
        made = set_at(live, _FILE, new)
        assert isinstance(made, dict)
        return made
