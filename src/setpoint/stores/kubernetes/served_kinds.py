"""The kinds of a cluster that a store serves, their endpoints, and the namespaces it is limited to."""

import logging
from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import field, replace
from typing import Final

from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.clients.kubernetes.requests import Endpoint, ObjectSelector, Representation
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.ports import ResourceQuery, not_served
from setpoint.engine.resource import ResourceRef
from setpoint.engine.tenancy.tenants import NAMESPACE
from setpoint.errors import KindNotServed, ManifestInvalid
from setpoint.stores.manifest_types import ANY_TYPE, ManifestTypes

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind in the version that is written, and the form in which it is read: whole, or metadata only.

    Objects of a kind that is not `listed` are only read by name: there may be many that setpoint does not manage.
    A kind that is not `namespaced` is cluster-scoped. One that `is_optional` is empty until its CRD is installed.
    `status_fields` are the members of its status that the engine relies on. One that `is_discovered` is listed once
    the cluster is found to serve it: there are many of that sort, and a cluster serves few.
    """

    group: str
    version: str
    kind: str
    plural: str
    form: Representation = Representation.WHOLE
    listed: bool = True
    namespaced: bool = True
    is_optional: bool = False
    status_fields: tuple[str, ...] = ()
    is_discovered: bool = False

    @property
    def name(self) -> GroupKind:
        """Group and kind."""
        return self.group, self.kind

    @property
    def api_version(self) -> str:
        """The apiVersion of manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def all_in(self, namespace: str | None) -> Endpoint:
        """The endpoint of all objects, in a namespace or everywhere."""
        return Endpoint(self.group, self.version, self.plural, namespace if self.namespaced else None)

    def one(self, ref: ResourceRef) -> Endpoint:
        """The endpoint of one object."""
        return self.all_in(ref.namespace).named(ref.name)


@dataclass(frozen=True, slots=True)
class ClusterScope:
    """What a store serves: these kinds, everywhere or in one namespace; and the namespace of its leases.

    `others` are namespaces in which leases of other controllers are read as well.
    """

    kinds: MutableMapping[GroupKind, ServedKind]
    leases: str
    namespace: str | None = None
    others: tuple[str, ...] = ()
    # What manifests of these kinds are.
    types: ManifestTypes = field(default_factory=lambda: ANY_TYPE)
    # Kinds that this process could handle and does not, by apiVersion: the cluster did not serve them when it started.
    unhandled: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def cached(self) -> frozenset[GroupKind]:
        """The kinds that a cache holds: those that are listed and read whole; and Namespaces, of which metadata is all.

        A Namespace is looked at in each step.
        """
        return frozenset(
            name
            for name, kind in self.kinds.items()
            if kind.listed and (kind.form is Representation.WHOLE or name == NAMESPACE)
        )

    def kinds_for(self, query: ResourceQuery) -> tuple[ServedKind, ...]:
        """The kinds that match a query, in order."""
        return tuple(
            kind
            for _, kind in sorted(self.kinds.items())
            if query.group in (None, kind.group)
            and (query.kind == kind.kind or (query.kind is None and kind.listed))
            and self._reaches(query, kind)
        )

    async def discover(self, query: ResourceQuery, discovery: Discovery, unserved: "UnservedKinds") -> None:
        """Lists the kinds from now on that the cluster is found to serve, if the query is about every kind."""
        waiting = {name: kind for name, kind in self.kinds.items() if kind.is_discovered}
        if query.kind is not None or not waiting:
            return
        served = await served_names(discovery)
        for name, kind in waiting.items():
            self.kinds[name] = replace(kind, is_discovered=False, listed=name in served)
            if name not in served:
                unserved.add(kind)

    def place(self, query: ResourceQuery) -> str | None:
        """The namespace to request; None for all of them."""
        return self.namespace if query.namespace is None else query.namespace

    def require(self, ref: ResourceRef) -> None:
        """ManifestInvalid for a resource outside of the namespace that the store is limited to."""
        if self.namespace not in (None, ref.namespace):
            raise ManifestInvalid(
                f"{ref}: this store is the namespace {self.namespace} alone: "
                f"write metadata.namespace: {self.namespace}, or leave ?namespace= out of the store",
                "metadata.namespace",
            )

    def _reaches(self, query: ResourceQuery, kind: ServedKind) -> bool:
        if not kind.namespaced:
            return query.namespace is None
        return self.namespace is None or query.namespace in (None, self.namespace)


@dataclass(frozen=True, slots=True)
class ClusterKinds:
    """Every kind that the cluster serves: references may be to any of them, and owners may make any."""

    scope: ClusterScope
    discovery: Discovery

    async def of(self, ref: ResourceRef) -> ServedKind | None:
        """The kind of `ref`, in the version that is preferred; None when the cluster serves no such kind."""
        ours = self.scope.kinds.get((ref.group, ref.kind))
        if ours is not None:
            return ours
        try:
            return _served(await self.discovery.preferred(ref.kind, ref.group))
        except KindNotServed:
            return None

    async def in_version(self, ref: ResourceRef, version: str) -> ServedKind:
        """The kind of `ref` in the version in which it is written; KindNotServed when the cluster does not serve it."""
        ours = self.scope.kinds.get((ref.group, ref.kind))
        if ours is not None:
            return replace(ours, version=version)
        return _served(await self.discovery.find(f"{ref.group}/{version}" if ref.group else version, ref.kind))


async def served_names(discovery: Discovery) -> frozenset[GroupKind]:
    """Group and kind of everything that the cluster serves beside the core group, by one request."""
    try:
        found, _ = await discovery.all_resources(("/apis",))
    except KindNotServed:
        return frozenset()
    return frozenset((one.group, one.kind) for one in found)


def _served(found: ApiResource) -> ServedKind:
    return ServedKind(found.group, found.version, found.kind, found.plural, namespaced=found.namespaced)


class UnservedKinds:
    """The kinds that the cluster does not serve, as last seen; a process that `is_watching` logs each of them once."""

    def __init__(self, *, is_watching: bool) -> None:
        self._is_watching = is_watching
        self._names: set[GroupKind] = set()

    @property
    def names(self) -> frozenset[GroupKind]:
        """Group and kind of each."""
        return frozenset(self._names)

    def add(self, kind: ServedKind) -> None:
        """The cluster has no CRD of this kind."""
        if self._is_watching and kind.name not in self._names:
            _log.warning("kind not served", extra={"kind": kind.kind, "why": str(not_served([kind.name]))})
        self._names.add(kind.name)

    def remove(self, kind: ServedKind) -> None:
        """The cluster serves this kind."""
        if self._is_watching and kind.name in self._names:
            _log.info("kind served", extra={"kind": kind.kind})
        self._names.discard(kind.name)


def selection_for(query: ResourceQuery, form: Representation) -> ObjectSelector:
    """The label selector of a query, and the form of the answer."""
    return ObjectSelector(",".join(f"{key}={text}" for key, text in query.labels.items()), representation=form)
