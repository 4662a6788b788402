"""Objects that can have a security label: how each is named in a spec, in a statement and in the catalogs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET
from psycopg import sql

from setpoint.kind import Maybe, Resource, SpecStruct, field_invalid
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.catalogs import VERSION_COLUMN, Catalog
from setpoint_postgresql.connection import NAME, SchemaReference
from setpoint_postgresql.grant_specs import TYPE_NAME
from setpoint_postgresql.statements import TYPE_FORM

# By type: the kinds of relation, as pg_class has them.
_RELATIONS: Final[Mapping[str, str]] = {
    "TABLE": "'r', 'p'",
    "VIEW": "'v'",
    "MATERIALIZED VIEW": "'m'",
    "FOREIGN TABLE": "'f'",
    "SEQUENCE": "'S'",
}
# By type: the kinds of routine, as pg_proc has them.
ROUTINES: Final[Mapping[str, str]] = {"FUNCTION": "'f', 'w'", "PROCEDURE": "'p'", "AGGREGATE": "'a'"}
_TYPES: Final[Mapping[str, str]] = {"TYPE": "t.typtype <> 'd'", "DOMAIN": "t.typtype = 'd'"}
# What is in no schema: the catalog, and the column with the name. The last three belong to the whole server.
_PLAIN: Final[Mapping[str, tuple[str, str]]] = {
    "SCHEMA": ("pg_namespace", "nspname"),
    "LANGUAGE": ("pg_language", "lanname"),
    "EVENT TRIGGER": ("pg_event_trigger", "evtname"),
    "PUBLICATION": ("pg_publication", "pubname"),
    "DATABASE": ("pg_database", "datname"),
    "ROLE": ("pg_authid", "rolname"),
    "TABLESPACE": ("pg_tablespace", "spcname"),
}
_COLUMN: Final = "COLUMN"
SHARED: Final = ("DATABASE", "ROLE", "TABLESPACE")
IN_SCHEMA: Final = (*_RELATIONS, _COLUMN, *ROUTINES, *_TYPES)


class LabelledObject(SpecStruct, frozen=True):
    """An object that can have a security label."""

    type: Literal[
        "TABLE", "VIEW", "MATERIALIZED VIEW", "FOREIGN TABLE", "SEQUENCE", "COLUMN", "FUNCTION", "PROCEDURE",
        "AGGREGATE", "TYPE", "DOMAIN", "SCHEMA", "LANGUAGE", "EVENT TRIGGER", "PUBLICATION", "DATABASE", "ROLE",
        "TABLESPACE",
    ]  # fmt: skip
    """The type of object."""
    name: Annotated[str, NAME]
    """Its name; of a column, that of its table."""
    schemaRef: Maybe[SchemaReference] = UNSET
    """The schema that it is in."""
    column: Annotated[Maybe[str], NAME] = UNSET
    """The name of a column."""
    arguments: Maybe[list[Annotated[str, TYPE_NAME]]] = UNSET
    """The types of the arguments of a function, procedure or aggregate."""

    __unit__: ClassVar = True


def check_labelled(resource: Resource, what: LabelledObject) -> None:
    """ManifestInvalid for an object that is not named, or too much of it."""
    problem = ""
    if bool(what.schemaRef) != (what.type in IN_SCHEMA):
        problem = f".schemaRef is for what is in a schema, and they need it: {', '.join(IN_SCHEMA)}"
    elif bool(what.column) != (what.type == _COLUMN):
        problem = ".column is for a COLUMN, which needs it"
    elif what.arguments and what.type not in ROUTINES:
        problem = f".arguments are for {', '.join(ROUTINES)}"
    elif not all(map(TYPE_FORM.fullmatch, what.arguments or ())):
        problem = ".arguments: write names of types, such as integer or text[]"
    if problem:
        raise field_invalid(resource, "spec.object", problem)


def labelled_target(kind: str, names: Sequence[str], arguments: Sequence[str]) -> ddl.Statement:
    """What follows ON: the type and the name; of a routine, with the types of its arguments."""
    target = sql.SQL(f"{kind} {{}}").format(ddl.name(*names))
    return target + sql.SQL(f"({', '.join(arguments)})") if kind in ROUTINES else target


# --- Catalogs: the key of an object is its names, from the outermost on, and the provider -----------------------------


def _label(object_: str, catalog: str, *, oid: str, column: str = "0", provider: int = 1) -> str:
    shared = catalog in ("pg_database", "pg_authid", "pg_tablespace")
    labels, part = ("pg_shseclabel", "") if shared else ("pg_seclabel", f"AND l.objsubid = {column}")
    return f"""
SELECT k.key, json_build_object('version', {VERSION_COLUMN}, 'label', l.label)::text
FROM unnest(%s::text[]) AS k(key) {object_}
    JOIN {labels} l ON l.objoid = {oid} AND l.classoid = '{catalog}'::regclass {part}
        AND l.provider = (k.key::json->>{provider})"""


_NAMESPACE: Final = "JOIN pg_namespace n ON n.nspname = (k.key::json->>0)"
_CLASS: Final = f"{_NAMESPACE} JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = (k.key::json->>1)"
_ATTRIBUTE: Final = (
    f"{_CLASS} JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = (k.key::json->>2) AND NOT a.attisdropped"
)
_PROC: Final = (
    f"{_NAMESPACE} JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = (k.key::json->>1) "
    "AND oidvectortypes(p.proargtypes) = (k.key::json->>2)"
)
_TYPE: Final = f"{_NAMESPACE} JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = (k.key::json->>1)"


def _texts() -> Mapping[str, str]:
    found = {
        kind: _label(f"{_CLASS} AND c.relkind IN ({kinds})", "pg_class", oid="c.oid", provider=2)
        for kind, kinds in _RELATIONS.items()
    }
    found[_COLUMN] = _label(_ATTRIBUTE, "pg_class", oid="c.oid", column="a.attnum", provider=3)
    for kind, kinds in ROUTINES.items():
        found[kind] = _label(f"{_PROC} AND p.prokind IN ({kinds})", "pg_proc", oid="p.oid", provider=3)
    for kind, which in _TYPES.items():
        found[kind] = _label(f"{_TYPE} AND {which}", "pg_type", oid="t.oid", provider=2)
    for kind, (catalog, column) in _PLAIN.items():
        # pg_authid is for superusers alone; pg_roles has the same names and ids.
        readable = "pg_roles" if catalog == "pg_authid" else catalog
        object_ = f"JOIN {readable} o ON o.{column} = (k.key::json->>0)"
        found[kind] = _label(object_, catalog, oid="o.oid")
    return found


LABELS: Final[Mapping[str, Catalog]] = {
    kind: Catalog(f"labels of {kind}", {0: text}) for kind, text in _texts().items()
}
