"""TLS settings carried over line by line, with the results of trustee-operator: `toml_tls` has better ones.

Known for: a key written without spaces is not seen, a file without `[http_server]` stays as it is, and whatever
stands behind the settings ends up before them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from setpoint.kinds.trustee.trustee_config.tls import TLS_COMMENT, TLS_KEYS

_SERVER: Final = "[http_server]"
_STARTS: Final = (*(f"{key} =" for key in TLS_KEYS), TLS_COMMENT)


def is_tls_line(line: str) -> bool:
    """Whether a line, without the space around it, is the comment above the settings or one of them."""
    return line.startswith(_STARTS)


def merge_tls_lines(existing: str, new: str) -> str:
    """`existing` with the settings of `new` at the end of its section; as it is when `new` has none."""
    settings = _settings_of(_sections(new))
    if not settings:
        return existing
    sections = _sections(existing)
    home = next((one for one in sections if one.is_servers), None)
    made: list[str] = []
    for section in sections:
        made += section.without_settings() if section.is_servers else section.lines
        made += settings if section is home else ()
    return "".join(f"{line}\n" for line in made)


@dataclass(frozen=True, slots=True)
class _Section:
    """A header and the lines up to the next one; "" for what stands before the first."""

    header: str
    lines: list[str] = field(default_factory=list)

    @property
    def is_servers(self) -> bool:
        return self.header == _SERVER

    def without_settings(self) -> Iterator[str]:
        """The lines without settings, and without the blank ones right behind a setting."""
        is_behind = False
        for line in self.lines:
            said = line.strip()
            is_setting = is_tls_line(said)
            is_behind = is_setting or (is_behind and not said)
            if not is_behind:
                yield line


def _settings_of(sections: Sequence[_Section]) -> list[str]:
    """The settings in the first section that has a name, if that is the server's: from the comment on, everything."""
    first = next((one for one in sections if one.header), None)
    if first is None or not first.is_servers:
        return []
    lines = [line for line in first.lines if line.strip() != _SERVER]
    block = next((index for index, line in enumerate(lines) if line.strip().startswith(TLS_COMMENT)), len(lines))
    return [line for index, line in enumerate(lines) if index >= block or is_tls_line(line.strip())]


def _sections(text: str) -> list[_Section]:
    """The text in pieces; a header that comes again right away begins no other one."""
    found = [_Section("")]
    lines = text.split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        said = line.strip()
        if said.startswith("[") and said != found[-1].header:
            found.append(_Section(said))
        found[-1].lines.append(line.removesuffix("\r"))
    return found
