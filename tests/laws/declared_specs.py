"""A kind with every type of field, and strategies for specs, live objects and field policies."""

from typing import Annotated

from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from setpoint.core.overlay import Declared
from setpoint.core.schema.policy import FieldPolicy, Rule
from setpoint.core.schema.shape import Default, Keyed, Mark, ObjectShape, shape_of
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.paths import Path, is_list_of_objects, key_of, selector

NAME = ("name",)
ROOT = Path()
SECRET = "hunter2-never-shown"


class Flag(Struct):
    name: str
    value: str | None | UnsetType = UNSET
    note: Annotated[str | None | UnsetType, Default("-")] = UNSET


class Backup(Struct):
    enabled: Annotated[bool | None | UnsetType, Mark.PROTECTED] = UNSET
    start: Annotated[str | None | UnsetType, Default("12:00")] = UNSET
    location: str | None | UnsetType = UNSET


class Settings(Struct):
    tier: str | None | UnsetType = UNSET
    size: int | None | UnsetType = UNSET
    resize: Annotated[bool | None | UnsetType, Default(True)] = UNSET
    edition: Annotated[str | None | UnsetType, Mark.PROTECTED] = UNSET
    flags: Annotated[list[Flag] | None | UnsetType, Keyed("name")] = UNSET
    networks: list[str] | None | UnsetType = UNSET
    backup: Backup | None | UnsetType = UNSET
    retention: Annotated[Backup | None | UnsetType, Mark.PROTECTED] = UNSET


class Spec(Struct):
    region: Annotated[str | None | UnsetType, Mark.IMMUTABLE] = UNSET
    password: Annotated[str | None | UnsetType, Mark.WRITE_ONLY] = UNSET
    address: Annotated[str | UnsetType, Mark.OUTPUT_ONLY] = UNSET
    settings: Settings | None | UnsetType = UNSET


class Metadata(Struct):
    labels: dict[str, str | None] | UnsetType = UNSET


class Database(Struct):
    spec: Spec | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


SHAPE: ObjectShape = shape_of(Database)
PASSWORD = Path.parse("spec.password")
LISTABLE = tuple(
    Path.parse(text)
    for text in (
        "spec",
        "spec.region",
        "spec.settings",
        "spec.settings.tier",
        "spec.settings.resize",
        "spec.settings.edition",
        "spec.settings.flags",
        "spec.settings.flags[name=x]",
        "spec.settings.flags[name=x].value",
        "spec.settings.networks",
        "spec.settings.backup",
        "spec.settings.backup.enabled",
        "spec.settings.backup.start",
        "metadata.labels",
        "metadata.labels.a",
    )
)

_words = st.sampled_from(("", "x", "y"))
_names = st.sampled_from(("x", "y", "z"))


def _tree(fields: dict[str, st.SearchStrategy[Json]], nulls: st.SearchStrategy[Json]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional={name: nulls | one for name, one in fields.items()})


def _flags(nulls: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    inside = _tree({"value": _words, "note": _words | st.just("-")}, nulls)
    flag = st.builds(lambda name, rest: {"name": name, **rest}, _names, inside)
    return st.lists(flag, max_size=3, unique_by=lambda one: str(one["name"]))


def _trees(nulls: st.SearchStrategy[Json], others: dict[str, st.SearchStrategy[Json]]) -> st.SearchStrategy[JsonObject]:
    booleans: st.SearchStrategy[Json] = st.booleans()
    backup = _tree({"enabled": booleans, "start": _words | st.just("12:00"), "location": _words}, nulls)
    settings = _tree(
        {
            "tier": _words,
            "size": st.integers(0, 2),
            "resize": booleans,
            "edition": _words,
            "flags": _flags(nulls),
            "networks": st.lists(_words, max_size=2),
            "backup": backup,
            "retention": backup,
        },
        nulls,
    )
    spec = _tree({"region": _words, "settings": settings, **others}, nulls)
    labels = _tree({"a": _words, "b": _words}, nulls)
    metadata = st.fixed_dictionaries({}, optional={"labels": labels})
    return st.fixed_dictionaries({}, optional={"spec": spec, "metadata": metadata})


_never: st.SearchStrategy[Json] = st.nothing()
written = _trees(st.none(), {"password": st.just(SECRET)})
live_objects = _trees(_never, {"address": _words})
_listed = st.lists(st.sampled_from(LISTABLE), max_size=2).map(tuple)
policies = st.builds(FieldPolicy, _listed, _listed, st.sampled_from((Rule.PRUNED, Rule.IGNORED)))
declared = st.builds(Declared, written, st.just(SHAPE), policies)


def as_the_service_shows_it(tree: JsonObject) -> JsonObject:
    """`tree` as a read would return it: without what is write-only."""
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return tree
    return {**tree, "spec": {name: value for name, value in spec.items() if name != "password"}}


def specified(node: Json, at: Path = ROOT) -> list[tuple[Path, Json]]:
    """Every leaf an author wrote, keyed elements followed, with its path; nulls are left out."""
    if isinstance(node, dict) and node:
        return [found for name, below in node.items() for found in specified(below, at / name)]
    if is_list_of_objects(node) and node:
        return [found for one in node for found in specified(dict(one), at / selector(NAME, key_of(one, NAME)))]
    return [] if node is None or node == {} else [(at, node)]
