"""A folder as the source of a set. It is read whole, and only while it does not change."""

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import ManifestInvalid, NotReady
from setpoint.library.sets.snapshot import SizeLimits, Snapshot, SourceFile, digest_of_files, is_manifest_path


class _Found(NamedTuple):
    """A manifest file of a folder, and what of its metadata changes with every write."""

    path: str
    place: str
    size: int
    written: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The manifest files below a folder. Hidden files and folders are not read."""

    folder: Path

    @property
    def address(self) -> str:
        """See Source."""
        return str(self.folder.absolute())

    @property
    def default_name(self) -> str:
        """See Source."""
        return self.folder.absolute().resolve().name

    @property
    def place(self) -> str:
        """See Source."""
        return f"folder {self.folder.absolute()}"

    @property
    def settles(self) -> bool:
        """See Source. Editors and rsync write one file after the other."""
        return True

    async def look(self) -> str:
        """See Source."""
        return await asyncio.to_thread(lambda: _fingerprint(self._found()))

    async def snapshot(self, seen: str) -> Snapshot:
        """See Source. An empty file is taken for one that is being written."""
        return await asyncio.to_thread(self._read, seen)

    def _read(self, seen: str) -> Snapshot:
        before = self._found()
        files = tuple(SourceFile(one.path, _contents(one)) for one in before)
        if _fingerprint(before) != seen or self._found() != before:
            raise NotReady(f"{self.folder} is being written: it is read once it no longer changes")
        return Snapshot(digest_of_files(files), files)

    def _found(self) -> Sequence[_Found]:
        try:
            root = self.folder.resolve(strict=True)
            if not root.is_dir():
                raise ManifestInvalid(f"{self.folder} is a file: name a folder")
            limits, found = SizeLimits(self.address), list[_Found]()
            for one in _below(root, root):
                limits.add(one.path, one.size)
                found.append(one)
        except OSError as error:
            place = Path(error.filename or self.folder).absolute()
            why = "there is no such folder" if isinstance(error, FileNotFoundError) else error.strerror
            raise ManifestInvalid(f"{place}: {why}: what was declared from there stands") from error
        return sorted(found)


def _below(folder: Path, root: Path) -> Iterator[_Found]:
    """The manifest files below a folder; ManifestInvalid for a link that leads out of the root."""
    with os.scandir(folder) as entries:
        for entry in entries:
            path = os.path.relpath(entry.path, root)
            if entry.name.startswith("."):
                continue
            if entry.is_symlink() and (is_manifest_path(path) or entry.is_dir()):
                _require_inside(Path(entry.path), root, path)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path), root)
            # A link to a folder inside of the root is not followed: the folder is read by itself.
            elif is_manifest_path(path) and not entry.is_dir():
                yield _found(entry, path)


def _require_inside(link: Path, root: Path, path: str) -> None:
    try:
        target = link.resolve(strict=True)
    except OSError as error:
        raise ManifestInvalid(f"{path}: this link leads nowhere: remove it") from error
    if not target.is_relative_to(root):
        raise ManifestInvalid(f"{path}: this link leads out of the folder: put a copy there instead")


def _found(entry: os.DirEntry[str], path: str) -> _Found:
    found = entry.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ManifestInvalid(f"{path}: this is no file: remove it")
    return _Found(path, entry.path, found.st_size, (found.st_mtime_ns, found.st_ctime_ns, found.st_ino))


def _contents(one: _Found) -> bytes:
    try:
        data = Path(one.place).read_bytes()
    except OSError as error:
        raise ManifestInvalid(f"{one.path}: {error.strerror}: what was declared from there stands") from error
    if not data:
        raise ManifestInvalid(
            f"{one.path}: this file is empty, as if it were being written: nothing is pruned for that; "
            "delete it to take back what it declared"
        )
    return data


def _fingerprint(found: Sequence[_Found]) -> str:
    return sha256(repr(found).encode("utf-8", "surrogateescape")).hexdigest()
