"""The newest lines of a log file, and of those that it was rotated to: renamed with a number or a date, also by gzip.

What cannot be read (to the end) ends that file: a file may be rotated, compressed or cut off while it is read.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass

# `.1`, `.2.gz`, `-20260301`, `-20260301-1772323200.gz`, `.2026-03-01T10:00:00`: as logrotate and its like name them.
_ROTATED: Final = re.compile(r"[.-][0-9][0-9T:._-]{0,40}(\.gz)?")
_GZIP: Final = ".gz"
# A compressed file counts as so many times its size, as logs do; whatever it holds, no more than that is read of it.
_RATIO: Final = 8
_MAX_DECOMPRESSED: Final = 2**29
# A longer line is no entry of a log.
_MAX_LINE: Final = 2**22


@dataclass(frozen=True, slots=True)
class _Part:
    """The end of a file, from `begin` on; a compressed file is always read from its beginning."""

    path: Path
    begin: int


def newest_lines(path: Path, most_bytes: int) -> Iterator[bytes]:
    """The lines among about so many of the newest bytes of a log, the oldest first. The last of a file may be torn."""
    for part in reversed(_newest_parts(path, most_bytes)):
        try:
            yield from _lines_of(part)
        except (OSError, EOFError, zlib.error):
            # The rest of it is gone, or was never written.
            continue


def rotated_files(path: Path) -> Sequence[Path]:
    """The files that a log was rotated to, the newest first."""
    try:
        names = {one.name for one in path.parent.iterdir() if one.name.startswith(path.name)}
    except OSError:
        return ()
    found = [
        path.parent / name
        for name in names
        # While a file is being compressed, both are there.
        if _ROTATED.fullmatch(name, len(path.name)) and name.removesuffix(_GZIP) not in names - {name}
    ]
    times = {one: _modified(one) for one in found}
    return sorted((one for one in found if times[one] >= 0), key=lambda one: (-times[one], one.name))


def _modified(path: Path) -> int:
    """When a regular file was written to; -1 for what is none. Compression keeps that time."""
    try:
        return path.stat().st_mtime_ns if path.is_file() else -1
    except OSError:
        return -1


def _newest_parts(path: Path, most_bytes: int) -> list[_Part]:
    """The files that have so many bytes, the newest first."""
    found, left = [], most_bytes
    for one in (path, *rotated_files(path)):
        if left <= 0:
            break
        size, is_compressed = _size_of(one), one.suffix == _GZIP
        found.append(_Part(one, 0 if is_compressed else max(0, size - left)))
        left -= size * _RATIO if is_compressed else size
    return found


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # It was rotated away since.
        return 0


def _lines_of(part: _Part) -> Iterator[bytes]:
    with _opened(part.path) as file:
        if part.begin:
            # The rest of a line that began before.
            file.seek(part.begin - 1)
            _skip_line(file)
        while (line := file.readline(_MAX_LINE)) and file.tell() - part.begin < _MAX_DECOMPRESSED:
            if len(line) < _MAX_LINE:
                yield line
            else:
                _skip_line(file)


def _opened(path: Path) -> io.BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == _GZIP else path.open("rb")


def _skip_line(file: io.BufferedIOBase) -> None:
    while (piece := file.readline(_MAX_LINE)) and not piece.endswith(b"\n"):
        pass
