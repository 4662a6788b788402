"""Settings of roles and databases (ALTER … SET): how they are declared, read from the catalog, and set."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final, TypeAlias

from setpoint.kind import Json, Matches, Maybe, Resource, SpecStruct, field_invalid
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.connection import NAME, text_setting

SEARCH_PATH: Final = "search_path"
_PARAMETER: Final = Matches("[A-Za-z_][A-Za-z0-9_$]*(?:\\.[A-Za-z_][A-Za-z0-9_$]*)?", "the name of a parameter", 128)
# Values as they would stand after the equals sign. Names count in lower case: PostgreSQL does not tell them apart.
SettingsMap: TypeAlias = dict[Annotated[str, _PARAMETER], str]


class DatabaseSettings(SpecStruct, frozen=True):
    """Parameters of a role's sessions in one database."""

    database: Annotated[str, NAME]
    """The database."""
    settings: SettingsMap
    """The parameters."""


def check_settings(resource: Resource, field: str, settings: Maybe[SettingsMap]) -> None:
    """ManifestInvalid for a parameter twice, or for one that has a field of its own."""
    names = [name.lower() for name in settings or {}]
    if SEARCH_PATH in names:
        raise field_invalid(resource, field, ": search_path is a list of names: write it as spec.searchPath")
    if len(set(names)) < len(names):
        raise field_invalid(resource, field, " has a parameter twice: names are the same in upper and lower case")


def normalized_settings(spec: dict[str, Json]) -> dict[str, Json]:
    """The spec with the names of parameters in lower case."""
    found = dict(spec)
    if isinstance(settings := found.get("settings"), Mapping):
        found["settings"] = _lower(settings)
    if isinstance(databases := found.get("databaseSettings"), list):
        found["databaseSettings"] = [
            {**one, "settings": _lower(one.get("settings"))} if isinstance(one, Mapping) else one for one in databases
        ]
    return found


def _lower(settings: Json) -> dict[str, Json]:
    return {name.lower(): value for name, value in settings.items()} if isinstance(settings, Mapping) else {}


def settings_view(configs: Iterable[tuple[str, Sequence[str]]]) -> dict[str, Json]:
    """What the catalog has, as `searchPath`, `settings` and `databaseSettings`; a part that is empty is left out."""
    everywhere: dict[str, Json] = {}
    databases: list[Json] = []
    search_path: list[Json] = []
    for database, entries in configs:
        pairs = {name.lower(): value for name, value in map(ddl.split_setting, entries)}
        if database:
            databases.append({"database": database, "settings": dict(pairs)})
            continue
        if SEARCH_PATH in pairs:
            search_path = [*ddl.parse_names(pairs.pop(SEARCH_PATH))]
        everywhere = {**pairs}
    found: dict[str, Json] = {"searchPath": search_path, "settings": everywhere, "databaseSettings": databases}
    return {name: value for name, value in found.items() if value}


def setting_statements(
    before: Mapping[str, Json], after: Mapping[str, Json], subject: Callable[[str], ddl.Statement]
) -> list[ddl.Statement]:
    """ALTER … SET and RESET for what differs; `subject` is of a database, or of all with an empty name."""
    found = _map_statements(before.get("settings"), after.get("settings"), subject(""))
    path = after.get("searchPath")
    if (before.get("searchPath") or []) != (path or []):
        names = [str(one) for one in path] if isinstance(path, list) and path else None
        found.append(ddl.set_parameter(subject(""), SEARCH_PATH, names))
    was, wanted = _by_database(before), _by_database(after)
    for database in dict.fromkeys((*was, *wanted)):
        found += _map_statements(was.get(database), wanted.get(database), subject(database))
    return found


def _map_statements(before: Json, after: Json, subject: ddl.Statement) -> list[ddl.Statement]:
    was = before if isinstance(before, Mapping) else {}
    wanted = after if isinstance(after, Mapping) else {}
    reset = [ddl.set_parameter(subject, name, None) for name in was if name not in wanted]
    return reset + [
        ddl.set_parameter(subject, name, _values(name, text_setting(value)))
        for name, value in wanted.items()
        if was.get(name) != value
    ]


def _values(name: str, value: str) -> str | list[str]:
    """The value, or its names for a parameter that is a list: as one text it would be one name."""
    return ddl.parse_names(value) if name in ddl.LIST_SETTINGS else value


def _by_database(spec: Mapping[str, Json]) -> dict[str, Json]:
    listed = spec.get("databaseSettings")
    found = listed if isinstance(listed, list) else []
    return {str(one["database"]): one.get("settings") for one in found if isinstance(one, Mapping)}
