"""TLS settings carried over line by line, exactly as trustee-operator does it: `toml_tls` does it better.

Known for: a key written without spaces is not seen, a file without `[http_server]` stays as it is, and whatever
stands behind the settings ends up before them.
"""

from collections.abc import Iterator
from typing import Final

from setpoint.kinds.trustee.trustee_config.tls import TLS_COMMENT, TLS_KEYS

_HEADER: Final = "[http_server]"
_STARTS: Final = (*(f"{key} =" for key in TLS_KEYS), TLS_COMMENT)


def is_tls_line(line: str) -> bool:
    """Whether a line, without the space around it, is the comment above the settings or one of them."""
    return line.startswith(_STARTS)


def merge_tls_lines(existing: str, new: str) -> str:
    """`existing` with the settings of `new` at the end of its section; as it is when `new` has none."""
    settings = _settings(new)
    if not settings:
        return existing
    kept = _without_settings(_lines(existing))
    made: list[str] = []
    inside = done = False
    for line in kept:
        if _is_header(line):
            if inside and not done and not _opens(line):
                made += settings
                done = True
            inside = _opens(line)
        made.append(line)
    if inside and not done:
        made += settings
    return "".join(f"{line}\n" for line in made)


def _settings(text: str) -> list[str]:
    """The settings in the first section, if that is the server's: from the comment on, everything."""
    found: list[str] = []
    inside = in_block = False
    for line in _lines(text):
        if _opens(line):
            inside = True
            continue
        if _is_header(line):
            break
        in_block = in_block or (inside and line.strip().startswith(TLS_COMMENT))
        if in_block or (inside and is_tls_line(line.strip())):
            found.append(line)
    return found


def _without_settings(lines: list[str]) -> Iterator[str]:
    """The lines without the server's settings, and without the blank lines that follow a setting."""
    inside = in_block = False
    for line in lines:
        if _is_header(line):
            # The same header twice does not end a block.
            inside, in_block = _opens(line), in_block and _opens(line)
            yield line
        elif inside and is_tls_line(line.strip()):
            in_block = True
        elif not (inside and in_block and not line.strip()):
            in_block = False
            yield line


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _is_header(line: str) -> bool:
    return line.strip().startswith("[")


def _opens(line: str) -> bool:
    return line.strip() == _HEADER
