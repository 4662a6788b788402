"""The TLS settings in a `kbs-config.toml` that people edit: put where they belong, everything else as it was.

Keys are found however they are spelled, stay where they stand and keep their comments; removed ones come back. What
comes out is read again: it says what it should, or nothing is changed.
"""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from setpoint.kinds.trustee.trustee_config.tls import TLS_COMMENT, TLS_KEYS, TlsSettings, setting_line
from setpoint.kinds.trustee.trustee_config.toml_statements import Header, Layout, Pair, Statement, statements

_SERVER: Final = "http_server"


def with_tls(text: str, generated: str) -> str:
    """`text` with the TLS settings of `generated`; as it is when there are none, or no safe way to put them in."""
    wanted = tls_in(generated)
    before = _read(text)
    if not wanted or before is None:
        return text
    if not text.strip():
        return generated
    made = _Edit(text, wanted).made() if _SERVER in before else _with_section(text, generated)
    return made if _says(made, before, wanted) else text


def tls_in(text: str) -> Mapping[str, str]:
    """The TLS settings in `text`, by key; none where it is not TOML."""
    server = (_read(text) or {}).get(_SERVER)
    found = server if isinstance(server, dict) else {}
    return {key: str(found[key]) for key in TLS_KEYS if key in found}


def without_tls(text: str) -> str:
    """What else `text` says: without TLS settings and blank lines. Only to be compared."""
    if _read(text) is None:
        return text
    return "".join(one.text for one in statements(text) if not _is_about_tls(one) and one.text.strip())


def settings_problem(text: str, generated: str) -> str | None:
    """What is wrong with a file that people edited, and what to do: no server reads it, or TLS is not as generated."""
    problem = toml_problem(text)
    wanted = tls_in(generated)
    if _read(text) is not None and (not wanted or tls_in(text) == wanted):
        return None
    return problem or f"there is no place for the TLS settings: write [{_SERVER}], once, and no other {_SERVER}"


def toml_problem(text: str) -> str | None:
    """Why the settings of `text` cannot be seen to; None when they can."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"it is not TOML: {error}: correct it"
    if any(isinstance(one, Pair) and one.path == (_SERVER,) for one in statements(text)):
        return f"{_SERVER} is written as an inline table: write it as [{_SERVER}]"
    return None


def _read(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _says(made: str, before: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether `made` says what was said before, but for the TLS settings."""
    after = _read(made)
    if after is None or tls_in(made) != wanted:
        return False
    rest = {key: value for key, value in before.get(_SERVER, after[_SERVER]).items() if key not in TLS_KEYS}
    return after == {**before, _SERVER: {**rest, **wanted}}


def _is_about_tls(one: Statement) -> bool:
    match one:
        case Pair(path=path):
            return len(path) == 2 and path[0] == _SERVER and path[1] in TLS_KEYS
        case Layout(table=table, text=text):
            return table == (_SERVER,) and text.strip().startswith(TLS_COMMENT)
        case _:
            return False


def _with_section(text: str, generated: str) -> str:
    """`text` with the generated section of the server at its end."""
    section = "".join(one.text for one in statements(generated) if one.table == (_SERVER,))
    return f"{text.rstrip()}\n\n{section.strip()}\n"


class _Edit:
    """One text on its way to other settings."""

    def __init__(self, text: str, wanted: Mapping[str, str]) -> None:
        self._wanted = wanted
        self._comment = TlsSettings(wanted.get(TLS_KEYS[0], "")).comment
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._old = list(statements(text))

    def made(self) -> str:
        """The text with the settings."""
        lines: list[str] = []
        # Behind which line what is missing goes, and whether that line is about TLS already.
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

    def _rewritten(self, one: Statement) -> str:
        """The statement as it should be; "" for one that goes."""
        if not _is_about_tls(one):
            return one.text
        if isinstance(one, Pair):
            value = self._wanted.get(one.path[1])
            if value is None or value == tomllib.loads(f"x = {one.value}")["x"]:
                return "" if value is None else one.text
            return f"{one.before}{setting_line('', value).removeprefix(' = ')}{one.after}"
        first = next(other for other in self._old if isinstance(other, Layout) and _is_about_tls(other))
        indent = one.text[: len(one.text) - len(one.text.lstrip())]
        return f"{indent}{self._comment}{self._newline}" if one is first else ""

    def _is_of_server(self, one: Statement) -> bool:
        match one:
            case Header(table=table):
                return table == (_SERVER,)
            case Pair(path=path):
                return len(path) > 1 and path[0] == _SERVER and one.table in ((), (_SERVER,))
            case _:
                return False

    def _with_missing(self, lines: Sequence[str], place: int, *, at_block: bool) -> str:
        there = {one.path[1] for one in self._old if isinstance(one, Pair) and _is_about_tls(one)}
        missing = {key: value for key, value in self._wanted.items() if key not in there}
        if not missing:
            return "".join(lines)
        heads = any(isinstance(one, Header) and one.table == (_SERVER,) for one in self._old)
        prefix = "" if heads or place < 0 else f"{_SERVER}."
        new = [setting_line(f"{prefix}{key}", value) for key, value in missing.items()]
        if not at_block and not prefix:
            new = ["", self._comment, "", *new]
        if place < 0:
            # Only tables inside of it are there: its own may still follow.
            place, new = len(lines), ["", f"[{_SERVER}]", *new]
        before = "".join(lines[:place])
        gap = "" if not before or before.endswith("\n") else self._newline
        return f"{before}{gap}{''.join(line + self._newline for line in new)}{''.join(lines[place:])}"
