"""What else one could use. Each package is imported only when it is to be measured: `make check` has none of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module, metadata
from types import ModuleType
from typing import Final, Protocol, TypeAlias

from benchmarks.measuring import Contestant
from setpoint.core.values.json_types import Json, JsonObject

# Where a value stands: names of members, positions in lists.
Route: TypeAlias = tuple[str | int, ...]


class OpponentMissing(Exception):
    """A package to measure against is not installed."""


@dataclass(frozen=True, slots=True)
class Canonicalizer:
    """A package that writes RFC 8785."""

    name: str
    dumps: Callable[[Json], bytes]


@dataclass(frozen=True, slots=True)
class Differ:
    """A package that compares two trees: what it finds is falsy when they are equal.

    `routes` are the places that differ; `carry` takes last, live and generated, and repeats on the third
    what happened between the first two.
    """

    name: str
    compare: Callable[[Json, Json], object]
    routes: Callable[[Json, Json], list[Route]]
    carry: Callable[[Json, Json, Json], Json]


@dataclass(frozen=True, slots=True)
class Operator:
    """A package that keeps resources: `no_op` gives its ways to handle an event about each of these documents.

    The events bring nothing that it has not seen to before.
    """

    name: str
    no_op: Callable[[Sequence[JsonObject]], AbstractContextManager[tuple[Contestant, ...]]]


class ClusterClient(Protocol):
    """A client of a cluster, and of one kind there. It gives objects in whatever form it likes best."""

    async def get(self, name: str) -> object:
        """The object."""
        ...

    async def list(self) -> Sequence[object]:
        """All of them."""
        ...

    async def watch(self) -> Sequence[object]:
        """The objects of all events, until the stream ends."""
        ...

    async def close(self) -> None:
        """Lets go of the connections."""
        ...


@dataclass(frozen=True, slots=True)
class Connector:
    """A package that has a client of clusters: `connect` gives one for the cluster at an address."""

    name: str
    connect: Callable[[str], ClusterClient]


@dataclass(frozen=True, slots=True)
class Keeper:
    """A package that can have all of a cluster's resources in mind: `module` has its ways to do so.

    They are called in a process of their own. `start` hears of everything, `storm` of what happens afterwards.
    """

    name: str
    module: str


@dataclass(frozen=True, slots=True)
class Opponents:
    """The packages to measure against."""

    canonicalizers: tuple[Canonicalizer, ...]
    differs: tuple[Differ, ...]
    # Packages that are commands as well.
    commands: tuple[str, ...] = ()
    operators: tuple[Operator, ...] = ()
    clusters: tuple[Connector, ...] = ()
    keepers: tuple[Keeper, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """Who takes part, by version: our own foundation first."""
        canonicalizers = [one.name for one in self.canonicalizers]
        differs = [one.name for one in self.differs]
        operators = [one.name for one in self.operators]
        clusters = [*(one.name for one in self.clusters), *(one.name for one in self.keepers)]
        names = ("msgspec", "orjson", *canonicalizers, *differs, *self.commands, *operators, *clusters)
        return {name: metadata.version(name) for name in names}


NOBODY: Final = Opponents((), ())
_COMMANDS: Final = ("kopf",)
_KEEPERS: Final = (
    Keeper("kubernetes_asyncio", "benchmarks.cluster_kubernetes_asyncio"),
    Keeper("lightkube", "benchmarks.cluster_lightkube"),
    Keeper("kopf", "benchmarks.cluster_kopf"),
)


def all_opponents() -> Opponents:
    """Every opponent; OpponentMissing when one is not installed."""
    canonicalizers = (
        Canonicalizer("rfc8785", _package("rfc8785").dumps),
        Canonicalizer("jcs", _package("jcs").canonicalize),
    )
    differs = (_deepdiff(), _jsondiff(), _jsonpatch(), _dictdiffer())
    return Opponents(canonicalizers, differs, _COMMANDS, (_kopf(),), _clusters(), _KEEPERS)


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise OpponentMissing(
            f"{name} is not installed: run `make bench`, or measure ours alone with --alone"
        ) from error


def _deepdiff() -> Differ:
    package = _package("deepdiff")
    return Differ(
        "deepdiff",
        package.DeepDiff,
        lambda a, b: [tuple(package.parse_path(text)) for text in package.DeepDiff(a, b).affected_paths],
        lambda last, live, generated: generated + package.Delta(package.DeepDiff(last, live), raise_errors=True),
    )


def _jsondiff() -> Differ:
    package = _package("jsondiff")
    return Differ(
        "jsondiff",
        package.diff,
        lambda a, b: list(_routes_into(package.diff(a, b))),
        lambda last, live, generated: package.patch(generated, package.diff(last, live)),
    )


def _routes_into(found: object) -> Iterator[Route]:
    """The ends of jsondiff's nested objects: their keys are names and positions."""
    if not isinstance(found, dict):
        yield ()
        return
    for step, below in found.items():
        yield from ((step, *route) for route in _routes_into(below))


def _jsonpatch() -> Differ:
    package = _package("jsonpatch")
    return Differ(
        "jsonpatch",
        package.make_patch,
        lambda a, b: [_route_of(operation["path"]) for operation in package.make_patch(a, b)],
        lambda last, live, generated: package.make_patch(last, live).apply(generated),
    )


def _route_of(pointer: str) -> Route:
    return tuple(int(part) if part.isdigit() else part for part in pointer.split("/")[1:])


def _dictdiffer() -> Differ:
    package = _package("dictdiffer")

    def compare(a: Json, b: Json) -> list[tuple[str, list[str | int], object]]:
        return list(package.diff(a, b, dot_notation=False))

    return Differ(
        "dictdiffer",
        compare,
        lambda a, b: [tuple(steps) for _, steps, _ in compare(a, b)],
        lambda last, live, generated: package.patch(compare(last, live), generated),
    )


def _kopf() -> Operator:
    _package("kopf")
    return Operator("kopf", _package("benchmarks.kopf_opponent").contestants)


def _clusters() -> tuple[Connector, ...]:
    for name in ("kubernetes_asyncio", "lightkube"):
        _package(name)
    package = _package("benchmarks.kube_opponents")
    return (
        Connector("kubernetes_asyncio", package.KubernetesAsyncio),
        Connector("lightkube", package.Lightkube),
    )
