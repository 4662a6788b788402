"""A git repository as the source of a set: the files of a commit, read from its objects.

Only plumbing commands run: no checkout, no hook, no filter, no fetch. The work tree is never looked at.
"""

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final, NamedTuple

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.errors import ManifestInvalid, RemoteUnavailable
from setpoint.library.sets.snapshot import SizeLimits, Snapshot, SourceFile, is_manifest_path

_TIMEOUT_SECONDS: Final = 60.0
_MAX_LISTING: Final = 64 * 1024 * 1024
_LINK: Final = "120000"
_SUBMODULE: Final = "160000"
# Of a submodule, and of an object that is not in the repository: a partial clone has few.
_NO_SIZE: Final = -1
# Nothing of the user's or of the machine's configuration. That of the repository is read by git, and has nothing here
# that could run a program.
_SETTINGS: Final = (
    *("-c", "safe.directory=*"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "core.quotePath=false"),
)
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_REF: Final = re.compile(r"(?!-)(?!.*\.\.)(?!.*@\{)[^\s~^:?*\[\\\x00-\x1f]+")


class _Entry(NamedTuple):
    """A file of a tree, as `git ls-tree` lists it."""

    mode: str
    oid: str
    size: int
    path: str


@dataclass(frozen=True, slots=True)
class GitSource:
    """The manifest files of a commit, in a folder of the repository or in all of it."""

    repository: Path
    ref: str = "HEAD"
    # Relative to the root of the repository; empty for all of it.
    folder: str = ""

    @staticmethod
    def parse(text: str) -> "GitSource":
        """The source that `PATH[@REF[:FOLDER]]` names; ManifestInvalid for anything else."""
        if Path(text).is_dir():
            return GitSource(Path(text))
        path, at, rest = text.rpartition("@")
        ref, _, folder = rest.partition(":")
        folder = normpath(folder) if folder.strip("/") else ""
        if not at or not path or not _REF.fullmatch(ref) or folder.startswith(("..", "/")):
            raise ManifestInvalid(
                f"--git {text}: there is no folder of that name: write PATH, PATH@REF or PATH@REF:FOLDER of a local "
                "repository, such as /srv/infra.git@main:production"
            )
        return GitSource(Path(path), ref, "" if folder == "." else folder)

    @property
    def address(self) -> str:
        """See Source."""
        folder = f":{self.folder}" if self.folder else ""
        return f"{self.repository.absolute()}@{self.ref}{folder}"

    @property
    def default_name(self) -> str:
        """See Source."""
        name = PurePosixPath(self.folder).name or self.repository.absolute().resolve().name
        return name.removesuffix(".git")

    @property
    def place(self) -> str:
        """See Source."""
        return f"git {self.repository.absolute()}@{self.ref}"

    @property
    def settles(self) -> bool:
        """See Source. A commit is written before the ref that names it."""
        return False

    async def look(self) -> str:
        """See Source: the commit."""
        if not self.repository.is_dir():
            raise ManifestInvalid(
                f"{self.repository.absolute()}: there is no such repository: what was declared from it stands"
            )
        found = await self._git("rev-parse", "--verify", "--quiet", f"{self.ref}^{{commit}}")
        return found.decode("ascii", "replace").strip()

    async def snapshot(self, seen: str) -> Snapshot:
        """See Source: `seen` is the commit."""
        tree = f"{seen}:{self.folder}" if self.folder else seen
        try:
            listing = await self._git("ls-tree", "-r", "-z", "-l", "--full-tree", tree)
        except ManifestInvalid as error:
            if not self.folder:
                raise
            raise ManifestInvalid(
                f"{self.address}: the folder {self.folder} is not in the commit {seen[:12]}: what was declared from it "
                "stands"
            ) from error
        entries = list(self._entries(listing))
        limits = SizeLimits(self.address)
        wanted = [one for one in entries if one.mode != _SUBMODULE and is_manifest_path(one.path)]
        for one in wanted:
            limits.add(self._named(one.path), self._size(one))
        blobs = await self._contents([one.oid for one in wanted])
        by_path = {one.path: one for one in entries}
        files = [SourceFile(self._named(one.path), blobs[one.oid]) for one in wanted if one.mode != _LINK]
        for link in (one for one in wanted if one.mode == _LINK):
            target = by_path[self._target_of(link, blobs[link.oid], by_path)]
            limits.add(self._named(target.path), self._size(target))
            files.append(SourceFile(self._named(link.path), (await self._contents([target.oid]))[target.oid]))
        ignored = tuple(f"submodule {self._named(one.path)}" for one in entries if one.mode == _SUBMODULE)
        return Snapshot(seen, tuple(sorted(files, key=lambda one: one.path)), ignored)

    def _target_of(self, link: _Entry, text: bytes, entries: Mapping[str, _Entry]) -> str:
        """The path of the file that a link of a tree leads to; ManifestInvalid for one out of the tree."""
        target = normpath(str(PurePosixPath(link.path).parent / text.decode("utf-8", "replace")))
        if target not in entries or entries[target].mode in (_LINK, _SUBMODULE):
            where = self._named(link.path)
            raise ManifestInvalid(f"{where}: this link leads out of the folder, or to no file: put a copy there")
        return target

    def _named(self, path: str) -> str:
        return f"{self.folder}/{path}" if self.folder else path

    def _entries(self, listing: bytes) -> Iterator[_Entry]:
        for line in listing.split(b"\0"):
            head, tab, name = line.partition(b"\t")
            if not tab:
                continue
            mode, _, oid, size = head.decode("ascii").split()
            try:
                path = name.decode()
            except UnicodeDecodeError as error:
                raise ManifestInvalid(f"{name!r}: the name of this file is not UTF-8: rename it") from error
            yield _Entry(mode, oid, int(size) if size.isdecimal() else _NO_SIZE, path)

    def _size(self, one: _Entry) -> int:
        if one.size == _NO_SIZE:
            raise self._missing(one.oid)
        return one.size

    def _missing(self, oid: str) -> ManifestInvalid:
        return ManifestInvalid(f"{self.repository.absolute()}: the object {oid} is missing: check it with `git fsck`")

    async def _contents(self, oids: Sequence[str]) -> Mapping[str, bytes]:
        """The blobs by their ids, by one process."""
        if not oids:
            return {}
        unique = list(dict.fromkeys(oids))
        answer = await self._git("cat-file", "--batch", given="".join(f"{one}\n" for one in unique).encode())
        found, at = dict[str, bytes](), 0
        for oid in unique:
            end = answer.index(b"\n", at)
            head = answer[at:end].split()
            if len(head) != 3 or head[1] != b"blob":
                raise self._missing(oid)
            at = end + 1 + int(head[2])
            found[oid] = answer[end + 1 : at]
            at += 1
        return found

    async def _git(self, *arguments: str, given: bytes = b"") -> bytes:
        """The output of a git command; ManifestInvalid when it fails, with its message."""
        repository = self.repository.absolute().resolve()
        environment = {
            **_ENVIRONMENT,
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_CEILING_DIRECTORIES": str(repository.parent),
        }
        command = ("git", *_SETTINGS, "-C", str(repository), "--no-pager", *arguments)
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
            )
        except FileNotFoundError as error:
            raise ManifestInvalid("--git needs the program git, and there is none on the PATH: install it") from error
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                output, problems = await process.communicate(given)
        except TimeoutError as error:
            raise RemoteUnavailable(f"git {arguments[0]} in {self.repository} took too long") from error
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        if process.returncode or len(output) > _MAX_LISTING * 2:
            raise ManifestInvalid(f"{self.address}: {self._reason(problems)}: what was declared from it stands")
        return output

    def _reason(self, problems: bytes) -> str:
        """What git says; it says nothing about a ref that is not there."""
        lines = problems.decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1].removeprefix("fatal: ")
        return "there is no commit yet" if self.ref == "HEAD" else f"no branch, tag or commit is called {self.ref}"
