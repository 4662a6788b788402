"""A soak of `setpoint run --git`: random commits, some of them bad, and kills; the world follows the last good one."""

import asyncio
import random
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from setpoint.app import AppSettings
from setpoint.library.session import Session
from soak.cloud import PROJECT, SoakCloud
from soak.process import Process
from soak.subjects import INSTANCES, make_instances

FOLDER: Final = "world"
SET: Final = "soak"
# In the order of their weights: what a commit may be.
_GOOD: Final = ("edit", "edit", "move", "rename", "remove", "add", "mixed", "mixed")
_BAD: Final = ("broken", "unknown kind", "twice", "nothing left", "wrong field")
_CONVERGED_SECONDS: Final = 180.0
_POLL: Final = "200ms"


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The size of a soak by commits. `bad` and `kills` are the chance of each commit."""

    resources: int
    commits: int
    seed: int
    bad: float = 0.2
    kills: float = 0.4


@dataclass(slots=True)
class Repository:
    """A repository with a manifest for each resource, and what the last good commit declares."""

    folder: Path
    draw: random.Random
    # By the name of the resource: the label that it has, and its file.
    declared: dict[str, tuple[str, str]] = field(default_factory=dict)
    _count: int = 0

    def begin(self, resources: int) -> None:
        """The repository, with its first commit."""
        self.folder.mkdir(parents=True)
        self._git("init", "-q", "-b", "main", ".")
        self._git("config", "user.name", "Author")
        self._git("config", "user.email", "author@example.com")
        self.declared = {name: (self._label(), self._file()) for name in (self._name() for _ in range(resources))}
        self.commit(self.declared)

    def commit(self, declared: dict[str, tuple[str, str]], extra: dict[str, str] | None = None) -> str:
        """Makes the work tree have exactly these, and commits it; the commit."""
        root = self.folder / FOLDER
        files = {f"{file}.yaml": _manifest(name, label) for name, (label, file) in declared.items()} | (extra or {})
        present = {str(one.relative_to(root)) for one in root.rglob("*.yaml")} if root.exists() else set[str]()
        for path in present - files.keys():
            (root / path).unlink()
        for path, text in files.items():
            place = root / path
            if path not in present or place.read_text() != text:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
        (self.folder / "README").write_text(f"{self._count}\n")
        self._count += 1
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "change")
        return self._git("rev-parse", "HEAD").strip()

    def good(self) -> dict[str, tuple[str, str]]:
        """What a good commit declares from now on."""
        after, kind = dict(self.declared), self.draw.choice(_GOOD)
        for _ in range(self.draw.randint(1, max(2, len(after) // 20))):
            verb = self.draw.choice(_GOOD[:-2]) if kind == "mixed" else kind
            name = self.draw.choice(sorted(after))
            label, file = after[name]
            if verb == "edit":
                after[name] = (self._label(), file)
            elif verb == "move":
                after[name] = (label, self._file())
            elif verb == "rename":
                after[self._name()] = after.pop(name)
            elif verb == "add":
                after[self._name()] = (self._label(), self._file())
            elif len(after) > 2:
                del after[name]
        return after

    def bad(self) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
        """What a bad commit has: a good change beside one that is refused."""
        after, kind = self.good(), self.draw.choice(_BAD)
        name = sorted(after)[0]
        texts = {
            "broken": {"broken.yaml": "kind: [StorageBucket\n"},
            "unknown kind": {"unknown.yaml": "apiVersion: v9\nkind: Nothing\nmetadata: {name: a}\n"},
            "twice": {"again.yaml": _manifest(name, "z")},
            "wrong field": {"wrong.yaml": _manifest("soak-wrong", "z").replace("location", "locatoin")},
        }
        return ({}, {}) if kind == "nothing left" else (after, texts[kind])

    def _name(self) -> str:
        self._count += 1
        return f"soak-{self._count}"

    def _file(self) -> str:
        self._count += 1
        return f"{self.draw.choice('abcdefgh')}/{self._count}"

    def _label(self) -> str:
        return self.draw.choice("abcdefghijklm")

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout


def _is_database(name: str) -> bool:
    return int(name.rpartition("-")[2]) % 5 == 0


def _manifest(name: str, label: str) -> str:
    is_database = name[-1].isdigit() and _is_database(name)
    kind, spec = ("SQLDatabase", {"instanceRef": {"external": INSTANCES[0]}}) if is_database else _bucket()
    group = "sql" if is_database else "storage"
    labels = {} if is_database else {"labels": {"team": label}}
    metadata = {"name": name, "annotations": {"cnrm.cloud.google.com/project-id": PROJECT}, **labels}
    document = {"apiVersion": f"{group}.cnrm.cloud.google.com/v1beta1", "kind": kind, "metadata": metadata}
    return orjson.dumps({**document, "spec": spec}, option=orjson.OPT_INDENT_2).decode() + "\n"


def _bucket() -> tuple[str, dict[str, Any]]:
    return "StorageBucket", {"location": "EU"}


# --- The world --------------------------------------------------------------------------------------------------------


def _wanted(declared: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The objects that a version declares, each with its label."""
    return {
        f"d/{INSTANCES[0]}/{name}" if _is_database(name) else f"b/{name}": "" if _is_database(name) else label
        for name, (label, _) in declared.items()
    }


def _objects(cloud: SoakCloud) -> dict[str, str]:
    buckets = {
        f"b/{name}": str(one.resource.get("labels", {}).get("team", ""))
        for name, one in cloud.storage.state.buckets.items()
    }
    return {name: buckets.get(name, "") for name in cloud.objects()}


@dataclass(slots=True)
class CommitSoak:
    """One run: the repository, the process, the cloud, and what was found."""

    plan: CommitPlan
    repository: Repository
    process: Process
    cloud: SoakCloud
    say: Callable[[str], None]
    wrong: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: {"good": 0, "bad": 0, "killed": 0})
    slowest: float = 0.0

    async def run(self) -> None:
        """All commits, each followed until the world is that of the last good one."""
        await self.process.start()
        await self._followed(lambda one: one.state == "current", "the first commit")
        for number in range(self.plan.commits):
            await self._commit(number)
            if self.wrong:
                return
        await self.process.stop()

    async def _commit(self, number: int) -> None:
        draw, repository = self.repository.draw, self.repository
        is_bad = draw.random() < self.plan.bad
        declared, extra = repository.bad() if is_bad else (repository.good(), {})
        after = repository.declared if is_bad else declared
        # What stays declared must never be deleted meanwhile.
        self.cloud.wanted = set(_wanted(repository.declared)) & set(_wanted(after))
        begun = time.monotonic()
        commit = repository.commit(declared, extra)
        repository.declared = after
        if draw.random() < self.plan.kills:
            await asyncio.sleep(draw.random() * 1.5)
            await self.process.kill()
            self.counts["killed"] += 1
            await self.process.start()
        state = "failed" if is_bad else "current"
        await self._followed(
            lambda one: one.state == state and commit == (one.failed_revision if is_bad else one.revision),
            f"commit {number + 1}, {'bad' if is_bad else 'good'}, {commit[:12]}",
        )
        self.counts["bad" if is_bad else "good"] += 1
        self.slowest = max(self.slowest, time.monotonic() - begun)

    async def _followed(self, is_done: Callable[[Any], bool], what: str) -> None:
        """Waits until the set is in that state and the world is as declared; or that is wrong."""
        wanted, end = _wanted(self.repository.declared), time.monotonic() + _CONVERGED_SECONDS
        last: Any = None
        while time.monotonic() < end:
            last, names = await self._on_record()
            is_same = _objects(self.cloud) == wanted and names == set(self.repository.declared)
            if last is not None and is_done(last) and is_same:
                self.say(f"{what}: {len(wanted)} resources as declared")
                self.wrong += self.cloud.effects.wrong
                return
            await asyncio.sleep(0.2)
        found = _objects(self.cloud)
        missing, more = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
        self.wrong.append(f"{what}: not followed: {last}; missing {missing[:5]}, left over {more[:5]}")

    async def _on_record(self) -> tuple[Any, set[str]]:
        if not self.process.store.exists():
            return None, set()
        async with Session(AppSettings(self.process.url)) as session:
            found = {one.name: one for one in await session.sets()}
            return found.get(SET), {one.ref.name for one in await session.list()}


async def run_commits(plan: CommitPlan, folder: Path, say: Callable[[str], None]) -> CommitSoak:
    """The whole soak; what is wrong is in its result."""
    async with SoakCloud() as cloud:
        make_instances(cloud)
        repository = Repository(folder / "repository", random.Random(plan.seed))
        repository.begin(plan.resources)
        source = f"{repository.folder}@main:{FOLDER}"
        process = Process(folder, cloud.url, ("--git", source, "--set", SET, "--poll", _POLL))
        run = CommitSoak(plan, repository, process, cloud, say)
        begun = time.monotonic()
        try:
            await run.run()
        finally:
            await process.end()
        say(f"{run.counts}, {time.monotonic() - begun:.0f} s in all, the slowest commit {run.slowest:.1f} s")
        return run
