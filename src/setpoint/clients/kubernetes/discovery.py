"""API discovery: which kinds a cluster serves, cached, and asked again while a kind is missing."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.clients.clock import EventLoopClock, MonotonicClock
from setpoint.clients.http import HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.requests import Endpoint, version_path
from setpoint.clients.response_bodies import decode_response
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.errors import KindNotServed, RemoteUnavailable

# Aggregated discovery, from a server that supports it; else one document per group and version.
_AGGREGATED: Final = ";as=APIGroupDiscoveryList"
_ACCEPT: Final = {
    "Accept": (
        f"application/json;g=apidiscovery.k8s.io;v=v2{_AGGREGATED},"
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1{_AGGREGATED},application/json"
    )
}
_PLAIN: Final = {"Accept": "application/json"}
# The name of a group, a version or a plural. The server is not trusted to name no other path.
_is_plain: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?").fullmatch
# Of one cluster: how large the documents may be whose kinds are kept, and how many versions of groups are asked for.
_MAX_KNOWN_BYTES: Final = 2**21
_MAX_VERSIONS: Final = 2_000


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind that the cluster serves in one version (APIResource)."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """As in a manifest."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def endpoint(self, namespace: str | None = None, name: str | None = None) -> Endpoint:
        """The endpoint of its objects. For a cluster-scoped kind `namespace` is ignored."""
        return Endpoint(self.group, self.version, self.plural, namespace if self.namespaced else None, name)


class Discovery:
    """The kinds of one cluster, cached. Concurrent callers share one request.

    The `assumed` ones are taken as served, without a request, until a call shows otherwise.
    """

    def __init__(
        self,
        client: KubernetesClient,
        clock: MonotonicClock | None = None,
        *,
        assumed: Mapping[tuple[str, str], ApiResource] | None = None,
    ) -> None:
        self._client = client
        self._assumed = {} if assumed is None else assumed
        # The versions of which nothing is assumed any more.
        self._doubted: set[str] = set()
        self._clock = clock or EventLoopClock()
        self._known: dict[tuple[str, str], ApiResource] = {}
        # How large the documents are that these come from.
        self._known_bytes = 0
        self._fetched_at: defaultdict[str, float] = defaultdict(lambda: -inf)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def find(self, api_version: str, kind: str) -> ApiResource:
        """The kind in that version; KindNotServed when a request of this moment does not list it either."""
        found = self.known(api_version, kind)
        if found is None:
            await self._refresh(api_version, kind)
            found = self._known.get((api_version, kind))
        if found is None:
            raise KindNotServed(
                f"the cluster serves no {kind} in {api_version}: apply its CRD, or check apiVersion and kind"
            )
        return found

    def known(self, api_version: str, kind: str) -> ApiResource | None:
        """The kind in that version, if it is known without a request."""
        found = self._known.get((api_version, kind))
        if found is None and api_version not in self._doubted:
            found = self._assumed.get((api_version, kind))
        return found

    async def preferred(self, kind: str, group: str | None = None) -> ApiResource:
        """The kind in the version that the cluster prefers; without `group`, of the first group with such a kind.

        KindNotServed when there is none; RemoteUnavailable when its group may be one that does not answer.
        """
        served, unavailable = await self.all_resources()
        for one in served:
            if one.kind == kind and group in (None, one.group):
                return one
        if group in unavailable or (group is None and unavailable):
            raise RemoteUnavailable(
                f"whether the cluster serves {kind} is unknown: there is no answer for {', '.join(sorted(unavailable))}"
            )
        where = "any group" if group is None else group or "the core group"
        raise KindNotServed(f"the cluster serves no {kind} in {where}: apply its CRD, or check the name")

    async def all_resources(
        self, roots: Sequence[str] = ("/api", "/apis")
    ) -> tuple[Sequence[ApiResource], frozenset[str]]:
        """All kinds in all versions, in the order of the cluster; and the groups of API servers that did not answer.

        With `/apis` as the only root, without those of the core group.
        """
        served: list[ApiResource] = []
        unavailable: set[str] = set()
        for root in roots:
            response = await self._client.read(root, _ACCEPT)
            if _AGGREGATED in response.headers.get("Content-Type", "").replace(" ", ""):
                groups = decode_response(_groups, response.body, f"GET {root}", MAX_LIST_VALUES).items
                served.extend(one for group in groups for one in group.served())
                unavailable |= {group.metadata.name for group in groups if group.is_stale()}
            else:
                for api_version in islice(_api_versions(root, response), _MAX_VERSIONS):
                    try:
                        served.extend((await self._fetch(api_version))[0])
                    except RemoteUnavailable:
                        unavailable.add(api_version.rpartition("/")[0])
        return served, frozenset(unavailable)

    def forget(self, api_version: str) -> None:
        """Drops what is cached or assumed of a version: a call has shown that it is out of date."""
        self._doubted.add(api_version)
        self._known = {key: one for key, one in self._known.items() if key[0] != api_version}

    async def _refresh(self, api_version: str, kind: str) -> None:
        began = self._clock.monotonic()
        async with self._locks[api_version]:
            # A request that began after this call did, or that found the kind, is as good as one of its own.
            if self._fetched_at[api_version] < began and (api_version, kind) not in self._known:
                fetched_at = self._clock.monotonic()
                served, size = await self._fetch(api_version)
                self._make_room(size)
                self._known.update({(api_version, one.kind): one for one in served})
                self._fetched_at[api_version] = fetched_at

    def _make_room(self, size: int) -> None:
        """Forgets all when it would be too much: a server that a tenant named may serve any number of kinds."""
        if self._known_bytes + size > _MAX_KNOWN_BYTES:
            self._known.clear()
            self._fetched_at.clear()
            self._known_bytes = 0
        self._known_bytes += size

    async def _fetch(self, api_version: str) -> tuple[Sequence[ApiResource], int]:
        """The kinds of a version, and the size of the document that lists them."""
        group, _, version = api_version.rpartition("/")
        path = version_path(group, version)
        try:
            response = await self._client.read(path, _PLAIN)
        except KindNotServed:
            return (), 0
        found = decode_response(_resources, response.body, f"GET {path}").resources
        return tuple(_served(group, version, found)), len(response.body)


# --- Aggregated discovery ---------------------------------------------------------------------------------------------


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
            if not (_is_plain(version.version) and (not group or _is_plain(group))):
                continue
            for one in version.resources:
                # Without a kind it only groups subresources.
                if one.response_kind is not None and one.response_kind.kind and _is_plain(one.resource):
                    kind, below = one.response_kind.kind, frozenset(sub.subresource for sub in one.subresources)
                    namespaced = one.scope == "Namespaced"
                    yield ApiResource(group, version.version, kind, one.resource, namespaced, one.verbs, below)

    def is_stale(self) -> bool:
        return any(version.freshness == "Stale" for version in self.versions)


class _Groups(Struct):
    items: tuple[_Group, ...] = ()


_groups: Final = msgspec.json.Decoder(_Groups)


# --- Discovery by group and version -----------------------------------------------------------------------------------


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
        if _is_plain(one.name):
            yield ApiResource(group, version, one.kind, one.name, one.namespaced, one.verbs, frozenset(below[one.name]))


def _api_versions(root: str, response: HttpResponse) -> Iterator[str]:
    """All versions of all groups; in each group the preferred one first."""
    found = decode_response(_roots, response.body, f"GET {root}")
    yield from filter(_is_plain, found.versions)
    for group in found.groups:
        preferred = () if group.preferred_version is None else (group.preferred_version.group_version,)
        names = dict.fromkeys((*preferred, *(one.group_version for one in group.versions)))
        yield from (name for name in names if all(map(_is_plain, name.split("/", 1))))
