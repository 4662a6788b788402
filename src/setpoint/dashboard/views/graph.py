"""The graph of the page: what depends on what, what flows along each edge, and what a blocked resource waits for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Final, Literal, TypeAlias, assert_never

import orjson

from setpoint.core.redaction import redact_untyped
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.wait.outputs import Null, from_data
from setpoint.dashboard.access.viewer import Scope, Viewer
from setpoint.dashboard.api.models import Edge, Graph, GraphNodeModel
from setpoint.dashboard.views.cycles import Cycles, cycles_in
from setpoint.dashboard.views.fleet import FleetRows
from setpoint.dashboard.views.rows import id_of, sort_key
from setpoint.dashboard.views.visibility import Visibility, visibility_of
from setpoint.engine.context import EngineContext
from setpoint.engine.kind import Dependency, Reference, SecretKeyReference, ValueReference, dependency_target
from setpoint.engine.references import DEPENDS_ON, OUTPUT, output_value
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import Blocked, DependencyNotReady, UserError

# So many nodes a page can lay out; more are cut off, the list has them all.
MAX_NODES: Final = 5_000
# The values of so many edges are read; of more, only whether they are there.
_MAX_VALUES: Final = 500
_MAX_VALUE_TEXT: Final = 200
EdgeState: TypeAlias = Literal["known", "unknown", "null", "ready", "notReady", "missing"]


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """The part of the graph that is asked for: a namespace, or the surroundings of one resource."""

    namespace: str | None = None
    focus: ResourceRef | None = None
    depth: int = 2


@dataclass(frozen=True, slots=True)
class _Link:
    """One dependency of a resource, or its owner."""

    dependant: ResourceRef
    needed: ResourceRef
    dependency: Dependency | None = None


@dataclass(slots=True)
class GraphBuilder:
    """Makes the graph of what one viewer may see."""

    engine: EngineContext
    rows: FleetRows
    viewer: Viewer
    # Resources that were read for their values.
    _read: dict[ResourceRef, Resource | None] = field(default_factory=dict)

    async def build(self, query: GraphQuery) -> Graph:
        """The nodes and edges that are asked for; a link to what may not be seen is left out, with its other end."""
        links = list(_links(self.rows))
        scopes = {*self.rows.scopes, *(Scope.of(link.needed) for link in links)}
        visible = await visibility_of(self.viewer, scopes)
        links = [link for link in links if visible.sees(link.dependant) and visible.sees(link.needed)]
        refs = self._chosen(query, links, visible)
        is_cut, kept = len(refs) > MAX_NODES, set(sorted(refs, key=sort_key)[:MAX_NODES])
        links = [link for link in links if link.dependant in kept and link.needed in kept]
        await self._read_sources(links, kept)
        cycles = cycles_in([(link.dependant, link.needed) for link in links if link.dependency is not None])
        return Graph(
            nodes=tuple([self._node(ref) for ref in sorted(kept, key=sort_key)]),
            edges=tuple(self._edge(link, cycles) for link in links),
            cycle=cycles.words,
            is_cut=is_cut,
        )

    def _chosen(self, query: GraphQuery, links: Sequence[_Link], visible: Visibility) -> set[ResourceRef]:
        if query.focus is not None:
            return _surroundings(query.focus, links, query.depth) if visible.sees(query.focus) else set()
        own = {ref for ref in self.rows if visible.sees(ref) and query.namespace in (None, ref.namespace)}
        return own | {link.needed for link in links if link.dependant in own}

    async def _read_sources(self, links: Sequence[_Link], kept: Iterable[ResourceRef]) -> None:
        """Reads what values are taken from, and what is not in the list: whether it exists is known then."""
        sources = {link.needed for link in links if isinstance(link.dependency, ValueReference)}
        wanted = [ref for ref in kept if ref not in self.rows]
        wanted += [ref for ref in sources if ref in self.rows][:_MAX_VALUES]
        found = await self.engine.store.get_many(wanted)
        self._read = dict(zip(wanted, found, strict=True))

    def _node(self, ref: ResourceRef) -> GraphNodeModel:
        row = self.rows.get(ref)
        exists = row is not None or self._read.get(ref) is not None
        return GraphNodeModel(
            id=id_of(ref),
            kind=ref.kind,
            namespace=ref.namespace,
            name=ref.name,
            state=row.row.state if row is not None else "ready" if exists else "unknown",
            exists=exists,
        )

    def _edge(self, link: _Link, cycles: Cycles) -> Edge:
        state, value = self._flow(link)
        dependant = self.rows.get(link.dependant)
        is_blocked = dependant is not None and dependant.row.state == "blocked"
        type_, path, output = _described(link.dependency)
        return Edge(
            from_=id_of(link.dependant),
            to=id_of(link.needed),
            type=type_,
            path=path,
            output=output,
            state=state,
            value=value,
            is_blocking=is_blocked and state not in ("known", "ready"),
            is_in_cycle=link.dependency is not None and cycles.has(link.dependant, link.needed),
        )

    def _flow(self, link: _Link) -> tuple[EdgeState, Json]:
        """What flows along an edge."""
        row = self.rows.get(link.needed)
        if row is None and self._read.get(link.needed) is None:
            return "missing", None
        is_ready = row is None or row.is_ready
        match link.dependency:
            case ValueReference() as dependency if (source := self._read.get(link.needed)) is not None:
                return self._value(dependency, source, link.dependant)
            case ValueReference():
                return ("known" if is_ready else "unknown"), None
            case SecretKeyReference():
                return "known", None
            case Reference(must_be_ready=False):
                return "ready", None
            case _:
                return ("ready" if is_ready else "notReady"), None

    def _value(self, dependency: ValueReference, source: Resource, dependant: ResourceRef) -> tuple[EdgeState, Json]:
        # Before the first step of the source there is no output: one may come.
        if dependency.is_awaited and OUTPUT in source.status and isinstance(from_data(source.status[OUTPUT]), Null):
            return "null", None
        type_ = self.engine.resource_types.get(source.ref.group_kind)
        is_foreign = self.engine.is_foreign(source.ref, dependant)
        try:
            found = output_value(dependency, source, dependant, type_=type_, is_foreign=is_foreign)
        except (Blocked, DependencyNotReady):
            return "unknown", None
        except UserError:
            # It is secret, or there never will be one.
            return "null", None
        return "known", short_value(found)


def short_value(value: Json) -> Json:
    """A value for a label: without what sounds secret, as text when it is long."""
    redacted = redact_untyped(value)
    text = redacted if isinstance(redacted, str) else orjson.dumps(redacted, default=str).decode()
    return redacted if len(text) <= _MAX_VALUE_TEXT else f"{text[: _MAX_VALUE_TEXT - 1]}…"


def needed_by(ref: ResourceRef, rows: FleetRows) -> tuple[ResourceRef, ...]:
    """What a resource depends on itself."""
    found = rows.get(ref)
    return () if found is None else tuple(dict.fromkeys(map(dependency_target, found.needs)))


def dependants_of(ref: ResourceRef, rows: FleetRows) -> tuple[ResourceRef, ...]:
    """What depends on a resource itself."""
    return tuple(sorted({link.dependant for link in _links(rows) if link.needed == ref and link.dependency}))


def children_of(ref: ResourceRef, rows: FleetRows) -> tuple[ResourceRef, ...]:
    """The resources that an owner controls."""
    return tuple(sorted(one for one in rows if (row := rows.get(one)) is not None and row.owner == ref))


def _links(rows: FleetRows) -> Iterator[_Link]:
    for ref in rows:
        row = rows.get(ref)
        if row is None:
            continue
        for dependency in row.needs:
            yield _Link(ref, dependency_target(dependency), dependency)
        if row.owner is not None and row.owner in rows:
            yield _Link(ref, row.owner)


def _surroundings(focus: ResourceRef, links: Sequence[_Link], depth: int) -> set[ResourceRef]:
    """What is up to `depth` edges away, in either direction."""
    near: dict[ResourceRef, set[ResourceRef]] = {}
    for link in links:
        near.setdefault(link.dependant, set()).add(link.needed)
        near.setdefault(link.needed, set()).add(link.dependant)
    found, edge = {focus}, {focus}
    for _ in range(depth):
        edge = {other for ref in edge for other in near.get(ref, ())} - found
        found |= edge
    return found


def _described(
    dependency: Dependency | None,
) -> tuple[Literal["reference", "value", "order", "owner", "secret"], str | None, str | None]:
    """The type of an edge, the field of the dependant, and what of the other resource is used."""
    match dependency:
        case None:
            return "owner", None, None
        case ValueReference(field=path, path=output):
            return "value", path, str(output)
        case SecretKeyReference(field=path, key=key):
            return "secret", path, key
        case Reference(field=path) if path.startswith(DEPENDS_ON):
            return "order", None, None
        case Reference(field=path):
            return "reference", path, None
        case _:
            assert_never(dependency)
