"""API discovery: which kinds a cluster serves, cached, and asked again while a kind is missing."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.http import HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient, decode_response
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.errors import KindNotServed, RemoteUnavailable

# All kinds in one answer, from a server that can; else one answer for each group and version.
_ALL_AT_ONCE: Final = ";as=APIGroupDiscoveryList"
_ACCEPT: Final = {
    "Accept": (
        f"application/json;g=apidiscovery.k8s.io;v=v2{_ALL_AT_ONCE},"
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1{_ALL_AT_ONCE},application/json"
    )
}
_PLAIN: Final = {"Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind that the cluster serves in one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """As it stands in a manifest."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def endpoint(self, namespace: str | None = None, name: str | None = None) -> Endpoint:
        """Where its objects are. A kind without namespaces has none, whatever is asked for."""
        return Endpoint(self.group, self.version, self.plural, namespace if self.namespaced else None, name)


class Discovery:
    """The kinds of one cluster. Many may ask at once: one of them finds out, and the others wait for it."""

    def __init__(self, client: KubernetesClient, clock: MonotonicClock | None = None) -> None:
        self._client = client
        self._clock = clock or EventLoopClock()
        self._known: dict[tuple[str, str], ApiResource] = {}
        self._looked_at: defaultdict[str, float] = defaultdict(lambda: -inf)
        self._one_at_a_time: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def find(self, api_version: str, kind: str) -> ApiResource:
        """The kind in that version; KindNotServed when there is none, also after a look of this very moment."""
        found = self._known.get((api_version, kind))
        if found is None:
            await self._look(api_version, kind)
            found = self._known.get((api_version, kind))
        if found is None:
            raise KindNotServed(
                f"the cluster serves no {kind} in {api_version}: apply its CRD, or check apiVersion and kind"
            )
        return found

    async def preferred(self, kind: str, group: str | None = None) -> ApiResource:
        """The kind in the version that the cluster prefers; without `group`, of the first group with such a kind."""
        served, silent = await self.everything()
        for one in served:
            if one.kind == kind and group in (None, one.group):
                return one
        if group in silent or (group is None and silent):
            raise RemoteUnavailable(
                f"whether the cluster serves {kind} cannot be told: nobody answers for {', '.join(sorted(silent))}"
            )
        where = "any group" if group is None else group or "the core group"
        raise KindNotServed(f"the cluster serves no {kind} in {where}: apply its CRD, or check the name")

    async def everything(self) -> tuple[Sequence[ApiResource], frozenset[str]]:
        """All kinds in all versions, in the cluster's own order; and the groups whose own server did not answer."""
        served: list[ApiResource] = []
        silent: set[str] = set()
        for root in ("/api", "/apis"):
            answer = await self._client.read(root, _ACCEPT)
            if _ALL_AT_ONCE in answer.headers.get("Content-Type", "").replace(" ", ""):
                groups = decode_response(_groups, answer.body, f"GET {root}").items
                served.extend(one for group in groups for one in group.served())
                silent |= {group.metadata.name for group in groups if group.is_silent()}
            else:
                for api_version in _api_versions(root, answer):
                    try:
                        served.extend(await self._ask(api_version))
                    except RemoteUnavailable:
                        silent.add(api_version.rpartition("/")[0])
        return served, frozenset(silent)

    def forget(self, api_version: str) -> None:
        """What was known of it is not to be relied on: a call has just shown that."""
        self._known = {key: one for key, one in self._known.items() if key[0] != api_version}

    async def _look(self, api_version: str, kind: str) -> None:
        began = self._clock.monotonic()
        async with self._one_at_a_time[api_version]:
            # A look that began after we asked, or that has found it, is as good as our own.
            if self._looked_at[api_version] < began and (api_version, kind) not in self._known:
                looked_at = self._clock.monotonic()
                for one in await self._ask(api_version):
                    self._known[api_version, one.kind] = one
                self._looked_at[api_version] = looked_at

    async def _ask(self, api_version: str) -> Sequence[ApiResource]:
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{api_version}" if group else f"/api/{api_version}"
        try:
            answer = await self._client.read(path, _PLAIN)
        except KindNotServed:
            return ()
        return tuple(_served(group, version, decode_response(_resources, answer.body, f"GET {path}").resources))


# --- All at once ------------------------------------------------------------------------------------------------------


class _Kind(Struct):
    kind: str = ""


class _Subresource(Struct):
    subresource: str


class _Resource(Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    verbs: frozenset[str] = frozenset()
    subresources: tuple[_Subresource, ...] = ()


class _Version(Struct):
    version: str
    resources: tuple[_Resource, ...] = ()
    freshness: str = "Current"


class _Name(Struct, frozen=True):
    name: str = ""


class _Group(Struct):
    metadata: _Name = _Name()
    versions: tuple[_Version, ...] = ()

    def served(self) -> Iterator[ApiResource]:
        group = self.metadata.name
        for version in self.versions:
            for one in version.resources:
                # What has no kind is a subresource of something that is not there itself.
                if one.response_kind is not None and one.response_kind.kind:
                    kind, below = one.response_kind.kind, frozenset(sub.subresource for sub in one.subresources)
                    namespaced = one.scope == "Namespaced"
                    yield ApiResource(group, version.version, kind, one.resource, namespaced, one.verbs, below)

    def is_silent(self) -> bool:
        return any(version.freshness == "Stale" for version in self.versions)


class _Groups(Struct):
    items: tuple[_Group, ...] = ()


_groups: Final = msgspec.json.Decoder(_Groups)


# --- One after the other ----------------------------------------------------------------------------------------------


class _PlainResource(Struct):
    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: frozenset[str] = frozenset()


class _Resources(Struct):
    resources: tuple[_PlainResource, ...] = ()


class _PlainVersion(Struct, rename="camel"):
    group_version: str


class _PlainGroup(Struct, rename="camel"):
    versions: tuple[_PlainVersion, ...] = ()
    preferred_version: _PlainVersion | None = None


class _Roots(Struct):
    versions: tuple[str, ...] = ()
    groups: tuple[_PlainGroup, ...] = ()


_resources: Final = msgspec.json.Decoder(_Resources)
_roots: Final = msgspec.json.Decoder(_Roots)


def _served(group: str, version: str, resources: Sequence[_PlainResource]) -> Iterator[ApiResource]:
    below: defaultdict[str, set[str]] = defaultdict(set)
    for one in resources:
        plural, slash, subresource = one.name.partition("/")
        if slash:
            below[plural].add(subresource)
    for one in resources:
        if "/" not in one.name:
            yield ApiResource(group, version, one.kind, one.name, one.namespaced, one.verbs, frozenset(below[one.name]))


def _api_versions(root: str, answer: HttpResponse) -> Iterator[str]:
    """All versions of all groups; of each group the one that the cluster prefers first."""
    found = decode_response(_roots, answer.body, f"GET {root}")
    yield from found.versions
    for group in found.groups:
        preferred = () if group.preferred_version is None else (group.preferred_version.group_version,)
        yield from dict.fromkeys((*preferred, *(one.group_version for one in group.versions)))
