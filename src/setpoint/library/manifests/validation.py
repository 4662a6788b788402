"""Validation of manifests without any service or store: every mistake with its file and line."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.problems import MAX_PROBLEMS, problems_of
from setpoint.engine.context import EngineContext
from setpoint.errors import UserError
from setpoint.library.manifests.checks import in_order, manifest_problems, warn_about_manifests
from setpoint.library.manifests.reading import ReadManifests

_PLACE: Final = re.compile(r"(?P<source>.+?):(?P<line>[0-9]+): (?P<message>.*)", re.DOTALL)


class ProblemLevel(StrEnum):
    """Whether a problem makes a manifest invalid."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """One mistake in manifests: where it is, and what to do. Without a line it is about a file, or several of them."""

    level: ProblemLevel
    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return self.message
        return f"{self.file}: {self.message}" if self.line is None else f"{self.file}:{self.line}: {self.message}"

    def to_data(self) -> JsonObject:
        """The problem as JSON."""
        return {"level": self.level.value, "file": self.file, "line": self.line, "message": self.message}


@dataclass(frozen=True, slots=True)
class ManifestValidation:
    """What is wrong with manifests, in the order of files and lines; and how many manifests there are."""

    manifests: int
    problems: tuple[ManifestProblem, ...]

    @property
    def errors(self) -> Sequence[ManifestProblem]:
        """The problems that make a manifest invalid."""
        return [one for one in self.problems if one.level is ProblemLevel.ERROR]

    @property
    def is_valid(self) -> bool:
        """Whether all manifests can be applied, as far as no service has to be asked."""
        return not self.errors

    @property
    def is_cut(self) -> bool:
        """Whether there may be more errors than are told."""
        return len(self.errors) >= MAX_PROBLEMS


def validate_manifests(read: ReadManifests, engine: EngineContext) -> ManifestValidation:
    """What is wrong with the manifests, as far as it can be said without a service, a cluster or a store."""
    errors = [_problem(ProblemLevel.ERROR, str(one)) for one in _errors(read, engine)]
    warnings: list[ManifestProblem] = []
    warn_about_manifests(read.manifests, engine, lambda text: warnings.append(_problem(ProblemLevel.WARNING, text)))
    found = sorted([*errors[:MAX_PROBLEMS], *warnings], key=lambda one: (one.file or "", one.line or 0))
    return ManifestValidation(len(read.manifests), tuple(found))


def unreadable(error: UserError) -> ManifestValidation:
    """Of files without a manifest: why there is none."""
    return ManifestValidation(0, tuple(_problem(ProblemLevel.ERROR, str(one)) for one in problems_of(error)))


def _errors(read: ReadManifests, engine: EngineContext) -> Iterator[UserError]:
    yield from read.problems
    wrong = [one for manifest in read.manifests for one in manifest_problems(manifest, engine)]
    yield from wrong
    if not (read.problems or wrong):
        try:
            in_order(read.manifests, engine)
        except UserError as error:
            yield from problems_of(error)


def _problem(level: ProblemLevel, text: str) -> ManifestProblem:
    """The place is in front of a message, where it has one."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return ManifestProblem(level, text)
    return ManifestProblem(level, found["message"], found["source"], int(found["line"]))
