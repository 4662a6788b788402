"""The collections of the catalogue, and which of their methods a path is.

The version in a path is not compared: an object is the same one in each version of its API.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Final, TypeAlias
from urllib.parse import unquote

from setpoint.catalogue.index import kinds_by_group
from setpoint.catalogue.rows import KindFacts, MethodFacts, rows_of
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud.google.filled_members import FILLED_MEMBERS
from setpoint.localcloud.google.members import ApiMember, MemberType, object_of, with_filled

# A path without its variables' names: None stands for any one segment.
PathTemplate: TypeAlias = tuple[str | None, ...]

_PREFIX: Final = re.compile(r"/?(?:([a-z]+)/)?(v\d+\w*|alpha|beta)/(.*)")
_VARIABLE: Final = re.compile(r"\{\+?(\w+)[^}]*\}")
_REGION: Final = re.compile(r"^[a-z]+-[a-z]+\d+-|^(?:us|eu)-")
# Served by hand-written parts of the local cloud, which know more than a row.
_HAND_WRITTEN: Final = frozenset({"SQLDatabase", "SQLInstance", "SQLUser", "StorageBucket", "StorageFolder"})
# APIs whose objects have the id as their name, and whose errors have a list of reasons.
SHORT_NAMES: Final = frozenset({"apigee", "bigquery", "compute", "container", "dns", "logging", "storage"})
_SET_BY_SERVICE: Final = ("name", "kind", "id", "selfLink", "etag")
# Members that only the service sets, and that the rows do not have.
_OUTPUTS: Final[Mapping[str, tuple[str, ...]]] = {"Project": ("createTime", "lifecycleState", "projectNumber")}

# A client asks for the same objects again and again: what their paths lead to is kept for so many of them.
_KEPT_PATHS: Final = 4_096


@dataclass(frozen=True, slots=True)
class ApiPath:
    """A path in its parts: the API's prefix (`compute`), the version, and the rest, decoded."""

    prefix: str
    version: str
    segments: tuple[str, ...]
    # The rest as it was sent.
    raw: str = ""

    @property
    def name(self) -> str:
        """The rest as one text: the relative name of an object or collection."""
        return "/".join(self.segments)


@dataclass(frozen=True, slots=True)
class ApiCollection:
    """A collection of an API: where its objects are, what they hold, and its methods."""

    api: str
    host: str
    # The kinds of the rows that describe it; the first one decides where they differ.
    kinds: tuple[str, ...]
    templates: tuple[PathTemplate, ...]
    shape: ApiMember
    row: KindFacts
    methods: Mapping[str, MethodFacts]
    # The variable of the id: `subnetwork`.
    singular: str

    @property
    def plural(self) -> str:
        """The last literal part of its path: `subnetworks`."""
        return next(part for part in reversed(self.templates[0]) if part is not None)

    @property
    def list_key(self) -> str:
        """The member of a list response that holds the objects."""
        listed = self.methods.get("list")
        return (listed.items if listed is not None else "") or self.plural

    @property
    def has_short_names(self) -> bool:
        """Whether the member `name` of an object is its id alone."""
        return self.api in SHORT_NAMES and self.row.id.where != "query"

    @property
    def is_single(self) -> bool:
        """Whether there is one object in each parent, which always exists."""
        return "create" not in self.methods and self.templates[0][-1] is not None


@dataclass(frozen=True, slots=True)
class MethodRoute:
    """A verb and a path template, and the method of a collection that they are."""

    verb: str
    prefix: str
    version: str
    template: PathTemplate
    # What follows a colon in the last segment.
    custom: str
    method: str
    collection: ApiCollection

    def score(self, verb: str, path: ApiPath, custom: str) -> int:
        """How well a request matches, by the segments that are literal; 0 when it does not."""
        if (verb, custom, path.prefix, len(path.segments)) != (
            self.verb,
            self.custom,
            self.prefix,
            len(self.template),
        ):
            return 0
        for part, segment in zip(self.template, path.segments, strict=True):
            if part is not None and part != segment:
                return 0
        literal = sum(part is not None for part in self.template)
        return 1 + 2 * literal + (path.version == self.version)


@lru_cache(_KEPT_PATHS)
def parse_path(path: str) -> ApiPath | None:
    """The parts of a path, or None when it has no version."""
    found = _PREFIX.fullmatch(path)
    if found is None:
        return None
    return ApiPath(found[1] or "", found[2], tuple(unquote(part) for part in found[3].split("/")), found[3])


def api_of_host(host: str) -> str | None:
    """The API that a host serves, as the catalogue calls it; None for another host."""
    label = host.partition(".")[0]
    return next((one for one in (label, _REGION.sub("", label)) if one in _services()), None)


def routes_of(api: str | None) -> Sequence[MethodRoute]:
    """The routes of an API, or those of all of them."""
    return _all_routes() if api is None else _routes(api)


@lru_cache(_KEPT_PATHS)
def best_routes(api: str | None, verb: str, path: ApiPath) -> Sequence[MethodRoute]:
    """The routes that match best; more than one when several APIs have the same path."""
    plain = [(one.score(verb, path, ""), one) for one in _candidates(api, verb, len(path.segments), "")]
    last, _, custom = path.segments[-1].rpartition(":")
    if custom and last:
        cut = ApiPath(path.prefix, path.version, (*path.segments[:-1], last))
        named = _candidates(api, verb, len(path.segments), custom)
        plain = [(one.score(verb, cut, custom) * 100, one) for one in named] + plain
    best = max((score for score, _ in plain), default=0)
    return tuple(one for score, one in plain if score == best and best)


@lru_cache(_KEPT_PATHS)
def collection_of(api: str | None, path: ApiPath) -> ApiCollection | None:
    """The collection that the object with this path is in; None when there is none, or more than one."""
    found = {
        (one.api, one.kinds): one
        for one in chain.from_iterable(_collections(each) for each in ([api] if api else sorted(_services())))
        if any(_fits(template, path.segments) for template in one.templates)
    }
    return next(iter(found.values())) if len(found) == 1 else None


def collections_of(api: str) -> Sequence[ApiCollection]:
    """The collections of an API."""
    return _collections(api)


def _fits(template: PathTemplate, segments: Sequence[str]) -> bool:
    return len(template) == len(segments) and all(
        part is None or part == segment for part, segment in zip(template, segments, strict=True)
    )


@cache
def _services() -> frozenset[str]:
    return frozenset(kinds_by_group().values()) - {"sqladmin"}


@cache
def _all_routes() -> Sequence[MethodRoute]:
    return [route for service in sorted(_services()) for route in _routes(service)]


@cache
def _index(api: str | None) -> Mapping[tuple[str, int, str], list[MethodRoute]]:
    index: defaultdict[tuple[str, int, str], list[MethodRoute]] = defaultdict(list)
    for route in routes_of(api):
        index[route.verb, len(route.template), route.custom].append(route)
    return index


def _candidates(api: str | None, verb: str, length: int, custom: str) -> list[MethodRoute]:
    return _index(api).get((verb, length, custom), [])


@cache
def _routes(api: str) -> Sequence[MethodRoute]:
    return [route for collection in _collections(api) for route in _collection_routes(collection)]


def _collection_routes(collection: ApiCollection) -> Iterator[MethodRoute]:
    for name, method in collection.methods.items():
        path = parse_path(method.path)
        if path is None:
            continue
        last, _, custom = path.segments[-1].partition(":")
        cut = _template((*path.segments[:-1], last))
        creating = (one for one in collection.row.create_methods.values() if one not in collection.methods)
        customs = (custom, *creating) if name == "create" else (custom,)
        for template in dict.fromkeys(_placed(collection.row, collection.templates[0], cut)):
            for each in dict.fromkeys(customs):
                yield MethodRoute(method.verb, path.prefix, path.version, template, each, name, collection)


@cache
def _collections(api: str) -> Sequence[ApiCollection]:
    by_template: defaultdict[PathTemplate, list[KindFacts]] = defaultdict(list)
    for kind, row in rows_of(api).items():
        template = _object_template(row)
        if template is not None and kind not in _HAND_WRITTEN:
            by_template[template].append(row)
    return [_collection(api, template, rows) for template, rows in by_template.items()]


def _collection(api: str, template: PathTemplate, rows: list[KindFacts]) -> ApiCollection:
    rows = sorted(rows, key=lambda row: (row.inside is not None, "create" not in row.methods))
    methods: dict[str, MethodFacts] = {}
    for row in rows:
        methods = {**row.other_methods, **row.methods, **methods}
    first, shape = rows[0], object_of(rows)
    plural = next(part for part in reversed(template) if part is not None)
    templates = dict.fromkeys(one for row in rows for one in _placed(row, template, template))
    return ApiCollection(
        api=api,
        host=first.host,
        kinds=tuple(row.kind for row in rows),
        templates=tuple(templates),
        shape=with_filled(_with_service_members(shape, first), FILLED_MEMBERS.get(f"{api}/{plural}", {})),
        row=first,
        methods=methods,
        singular=_singular(first, template),
    )


def _with_service_members(shape: ApiMember, row: KindFacts) -> ApiMember:
    output = ApiMember(MemberType.ANY, output_only=True)
    root = row.id.name.partition(".")[0] if row.id.where == "body" else ""
    places = ("region", "zone") if row.api == "compute" else ()
    names = (*_SET_BY_SERVICE, *_OUTPUTS.get(row.kind, ()), *places, root)
    added = {name: output for name in names if name and name not in shape.members}
    return ApiMember(MemberType.OBJECT, members={**shape.members, **added})


def _object_template(row: KindFacts) -> PathTemplate | None:
    for name in ("get", "patch", "delete", "update"):
        method = row.methods.get(name)
        path = parse_path(method.path) if method is not None else None
        if path is not None and ":" not in path.segments[-1]:
            return _template(path.segments)
    listed = row.methods.get("list")
    path = parse_path(listed.path) if listed is not None else None
    return None if path is None else (*_template(path.segments), None)


def _template(segments: Iterable[str]) -> PathTemplate:
    return tuple(None if _VARIABLE.fullmatch(part) else part for part in segments)


def _placed(row: KindFacts, own: PathTemplate, template: PathTemplate) -> Iterator[PathTemplate]:
    """The template itself, and those of the other places that the objects of the row may be in."""
    yield template
    for place in row.places:
        other = _template(place.split("/"))
        if template == own[:-1]:
            yield other[:-1]
        elif template[: len(own)] == own:
            yield (*other, *template[len(own) :])


def _singular(row: KindFacts, template: PathTemplate) -> str:
    found = _VARIABLE.findall(row.name)
    return found[-1] if found and template[-1] is None else next(part for part in reversed(template) if part)
