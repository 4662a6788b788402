"""A snapshot of a source: its manifest files at one revision, read whole, within limits; and the source itself."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Final, Protocol

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import ManifestInvalid
from setpoint.library.manifests.reading import SUFFIXES, ReadManifests, decoded_text, read_manifests
from setpoint.library.manifests.sources import YamlText

# Of one snapshot. A larger one is split into sets of their own.
MAX_FILES: Final = 20_000
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
MAX_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A manifest file of a source, by its path there."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The manifest files of a source at one revision: a commit, or the digest of the files."""

    revision: str
    files: tuple[SourceFile, ...]
    # What the source has and a set does not take, such as submodules.
    ignored: tuple[str, ...] = ()

    def manifests(self, namespace: str, *, allow_empty: bool) -> ReadManifests:
        """The manifests in it; ManifestInvalid when there is none, unless that is allowed."""
        if not self.files and not allow_empty:
            raise ManifestInvalid(f"no file here ends in {' or '.join(SUFFIXES)}: {ALLOW_EMPTY}")
        texts = [YamlText(decoded_text(one.data, one.path), one.path) for one in self.files]
        try:
            return read_manifests(texts, namespace, allow_empty=allow_empty)
        except ManifestInvalid as error:
            if any(one.data.strip() for one in self.files):
                raise
            raise ManifestInvalid(f"{error}; {ALLOW_EMPTY}") from error


async def read_snapshot(snapshot: Snapshot, namespace: str, *, allow_empty: bool) -> ReadManifests:
    """The manifests of a snapshot, read beside the steps of controllers."""
    return await asyncio.to_thread(snapshot.manifests, namespace, allow_empty=allow_empty)


ALLOW_EMPTY: Final = "nothing is pruned for that; --allow-empty prunes all of the set"


class Source(Protocol):
    """Where the manifests of a set are."""

    @property
    def address(self) -> str:
        """The source in messages and records."""
        ...

    @property
    def default_name(self) -> str:
        """The name of its set, if it is given none."""
        ...

    @property
    def place(self) -> str:
        """What is looked at: sources with the same one are read at the same revision."""
        ...

    @property
    def settles(self) -> bool:
        """Whether it may be half-written, and has to look the same twice before it is read."""
        ...

    async def look(self) -> str:
        """A text that changes whenever the manifests may have changed; an error when the source cannot be read."""
        ...

    async def snapshot(self, seen: str) -> Snapshot:
        """All of it as it was when `look` returned `seen`. NotReady while it is being written."""
        ...


def digest_of_files(files: Sequence[SourceFile]) -> str:
    """The revision of files without a commit."""
    total = sha256()
    for one in files:
        name = one.path.encode("utf-8", "surrogateescape")
        total.update(b"%d:%s%d:" % (len(name), name, len(one.data)))
        total.update(one.data)
    return f"sha256:{total.hexdigest()}"


def is_manifest_path(path: str) -> bool:
    """Whether a path of a source is that of a manifest: no part of it is hidden, and it ends as manifests do."""
    parts = PurePosixPath(path).parts
    return path.endswith(SUFFIXES) and not any(part.startswith(".") for part in parts)


class SizeLimits:
    """Counts the files of a snapshot; ManifestInvalid beyond the limits."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._files = self._bytes = 0

    def add(self, path: str, size: int) -> None:
        """Counts a file."""
        self._files += 1
        self._bytes += size
        if size > MAX_FILE_BYTES:
            raise ManifestInvalid(f"{path}: larger than {MAX_FILE_BYTES // 2**20} MiB: split it")
        if self._files > MAX_FILES or self._bytes > MAX_BYTES:
            raise ManifestInvalid(
                f"{self._address}: more than {MAX_FILES:,} manifest files, or {MAX_BYTES // 2**20} MiB: "
                "split it into several sets"
            )
