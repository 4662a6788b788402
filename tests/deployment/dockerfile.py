"""A Dockerfile as its instructions, which can be run in a folder, without a container engine."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns, rmtree
from tempfile import mkdtemp
from typing import Final

import pytest

from tests.go_programs import cache_folder

# The folders that the commands name: made below the root of the build.
_FOLDERS: Final = ("/src", "/build", "/dist", "/opt")
_UNREACHABLE: Final = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|Network is unreachable"
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """A keyword such as `RUN`, and the rest of its line."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The text, split as a shell does."""
        return shlex.split(self.text)


@dataclass(frozen=True, slots=True)
class Stage:
    """A build stage: from one FROM to the next."""

    image: str
    instructions: Sequence[Instruction]

    def all(self, name: str) -> list[Instruction]:
        """The instructions of that name."""
        return [one for one in self.instructions if one.name == name]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of ENV, without substitution."""
        pairs = (word.partition("=") for one in self.all("ENV") for word in one.words)
        return {name: value for name, _, value in pairs}


def stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile."""
    found: list[tuple[str, list[Instruction]]] = []
    for one in instructions(text):
        if one.name == "FROM":
            found.append((one.words[0], []))
        elif found:
            found[-1][1].append(one)
    return [Stage(image, parts) for image, parts in found]


def instructions(text: str) -> Iterator[Instruction]:
    """Each instruction on one line, comments left out."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield Instruction(name, rest.strip())


# --- Building ---------------------------------------------------------------------------------------------------------


def build(stage: Stage, root: Path) -> None:
    """Runs the stage with `root` instead of `/`, and with this Python. Skips the test if packages cannot be fetched."""
    environment = {**stage.environment, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(_wheels(stage))}
    folder = root / stage.all("WORKDIR")[0].text.lstrip("/")
    folder.mkdir(parents=True)
    for one in stage.instructions:
        match one.name:
            case "COPY":
                *sources, target = one.words
                _copy(sources, folder / target)
            case "RUN":
                _run([_below(root, word) for word in one.words], folder, environment)
            case name:
                assert name in ("WORKDIR", "ENV"), f"what {name} does is not known here"


def _wheels(stage: Stage) -> Path:
    """The folder with the wheels of all requirements, fetched once and kept: a hash decides which are installed.

    To search the index takes pip most of the time of a build.
    """
    files = sorted({word for one in stage.all("COPY") for word in one.words[:-1] if word.startswith("requirements/")})
    digest = sha256(b"".join(Path(file).read_bytes() for file in files) + sys.version.encode()).hexdigest()
    kept = cache_folder(os.environ) / "wheels" / digest
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        fetched = Path(mkdtemp(prefix=digest, dir=kept.parent))
        for file in files:
            download = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "-r", file]
            _run([*download, "--dest", str(fetched)], Path(), stage.environment)
        # Another process may have been faster.
        with suppress(OSError):
            fetched.rename(kept)
        rmtree(fetched, ignore_errors=True)
    return kept


def _copy(sources: Sequence[str], target: Path) -> None:
    for source in map(Path, sources):
        if source.is_dir():
            copytree(source, target, ignore=ignore_patterns("__pycache__"))
        else:
            target.mkdir(parents=True, exist_ok=True)
            copy2(source, target)


def _below(root: Path, word: str) -> str:
    if word == "python":
        return sys.executable
    return f"{root}{word}" if word.startswith(_FOLDERS) else word


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and _UNREACHABLE.search(done.stdout + done.stderr):
        pytest.skip(f"packages cannot be fetched: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
