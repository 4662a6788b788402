"""Peer packages to compare with. Each is imported only when it is measured: `make check` installs none of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module, metadata
from types import ModuleType
from typing import Final, Protocol, TypeAlias

from benchmarks.comparison import Candidate
from setpoint.core.values.json_types import Json, JsonObject

# The position of a value in a tree: names of members, indices in lists.
IndexPath: TypeAlias = tuple[str | int, ...]


class PeerMissing(Exception):
    """A peer package is not installed."""


@dataclass(frozen=True, slots=True)
class Canonicalizer:
    """A package that writes RFC 8785."""

    name: str
    dumps: Callable[[Json], bytes]


@dataclass(frozen=True, slots=True)
class Differ:
    """A package that compares two trees: `compare` returns a falsy value when they are equal.

    `index_paths` are the positions that differ; `merge` takes last, live and generated, and applies the difference
    between the first two to the third.
    """

    name: str
    compare: Callable[[Json, Json], object]
    index_paths: Callable[[Json, Json], list[IndexPath]]
    merge: Callable[[Json, Json, Json], Json]


@dataclass(frozen=True, slots=True)
class OperatorFramework:
    """A framework for operators: `noop_candidates` are its ways to process an event for each of these documents.

    The events leave the framework nothing to do: it has processed the same objects before.
    """

    name: str
    noop_candidates: Callable[[Sequence[JsonObject]], AbstractContextManager[tuple[Candidate, ...]]]


class ClusterClient(Protocol):
    """A client of a cluster for one kind. Objects have the form that is cheapest for the client."""

    async def get(self, name: str) -> object:
        """The object."""
        ...

    async def list(self) -> Sequence[object]:
        """All objects."""
        ...

    async def watch(self) -> Sequence[object]:
        """The objects of all events, until the stream ends."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterClientFactory:
    """A package with a Kubernetes client: `connect` returns one for the cluster at an address."""

    name: str
    connect: Callable[[str], ClusterClient]


@dataclass(frozen=True, slots=True)
class CachingClient:
    """A package that can list, watch and cache all resources of a cluster.

    Two functions of `module` run in processes of their own: `start` lists and caches all resources, `watch_and_cache`
    receives the events after that.
    """

    name: str
    module: str


@dataclass(frozen=True, slots=True)
class Peers:
    """The peer packages of a run."""

    canonicalizers: tuple[Canonicalizer, ...]
    differs: tuple[Differ, ...]
    # Packages that have a command.
    commands: tuple[str, ...] = ()
    operator_frameworks: tuple[OperatorFramework, ...] = ()
    cluster_clients: tuple[ClusterClientFactory, ...] = ()
    caching_clients: tuple[CachingClient, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package in the run, starting with those that setpoint is built on."""
        canonicalizers = [peer.name for peer in self.canonicalizers]
        differs = [peer.name for peer in self.differs]
        operator_frameworks = [peer.name for peer in self.operator_frameworks]
        cluster_clients = [*(peer.name for peer in self.cluster_clients), *(peer.name for peer in self.caching_clients)]
        names = ("msgspec", "orjson", *canonicalizers, *differs, *self.commands, *operator_frameworks, *cluster_clients)
        return {name: metadata.version(name) for name in names}


NO_PEERS: Final = Peers((), ())
_COMMANDS: Final = ("kopf",)
_CACHING_CLIENTS: Final = (
    CachingClient("kubernetes_asyncio", "benchmarks.list_watch_kubernetes_asyncio"),
    CachingClient("lightkube", "benchmarks.list_watch_lightkube"),
    CachingClient("kopf", "benchmarks.list_watch_kopf"),
)


def all_peers() -> Peers:
    """Every peer; PeerMissing when one is not installed."""
    canonicalizers = (
        Canonicalizer("rfc8785", _package("rfc8785").dumps),
        Canonicalizer("jcs", _package("jcs").canonicalize),
    )
    differs = (_deepdiff(), _jsondiff(), _jsonpatch(), _dictdiffer())
    return Peers(canonicalizers, differs, _COMMANDS, (_kopf(),), _cluster_clients(), _CACHING_CLIENTS)


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise PeerMissing(f"{name} is not installed: run `make bench`, or measure ours alone with --alone") from error


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
        lambda a, b: list(_index_paths_in(package.diff(a, b))),
        lambda last, live, generated: package.patch(generated, package.diff(last, live)),
    )


def _index_paths_in(difference: object) -> Iterator[IndexPath]:
    """The leaves of jsondiff's nested objects: their keys are names and indices."""
    if not isinstance(difference, dict):
        yield ()
        return
    for step, nested in difference.items():
        yield from ((step, *index_path) for index_path in _index_paths_in(nested))


def _jsonpatch() -> Differ:
    package = _package("jsonpatch")
    return Differ(
        "jsonpatch",
        package.make_patch,
        lambda a, b: [_index_path_of(operation["path"]) for operation in package.make_patch(a, b)],
        lambda last, live, generated: package.make_patch(last, live).apply(generated),
    )


def _index_path_of(pointer: str) -> IndexPath:
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


def _kopf() -> OperatorFramework:
    _package("kopf")
    return OperatorFramework("kopf", _package("benchmarks.kopf_noop_events").candidates)


def _cluster_clients() -> tuple[ClusterClientFactory, ...]:
    for name in ("kubernetes_asyncio", "lightkube"):
        _package(name)
    package = _package("benchmarks.kubernetes_peer_clients")
    return (
        ClusterClientFactory("kubernetes_asyncio", package.KubernetesAsyncio),
        ClusterClientFactory("lightkube", package.Lightkube),
    )
