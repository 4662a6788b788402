"""The specs of grants: which privileges of which role on which object, and what no grant can be."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal

from msgspec import UNSET

from setpoint.kind import Default, Json, Keyed, Mark, Matches, Maybe, Resource, SpecStruct, field_invalid
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import COLUMN_PRIVILEGES, AclChange
from setpoint_postgresql.connection import NAME, DatabaseReference, PostgresSpec, RoleReference, SchemaReference
from setpoint_postgresql.privileges import LivePrivilege, ThirdGrant
from setpoint_postgresql.server import ObjectAddress, Server, render_location

# Types of arguments stand in statements as they are: nothing but the name of a type may get there.
TYPE_NAME: Final = Matches(ddl.TYPE_FORM.pattern, "the name of a type, such as integer or text[]", 128)
# Other names of types, and what the catalog calls them.
_TYPE_NAMES: Final[Mapping[str, str]] = {
    **{"int": "integer", "int4": "integer", "int8": "bigint", "int2": "smallint", "bool": "boolean"},
    **{"varchar": "character varying", "char": "character", "float8": "double precision", "float4": "real"},
    **{"timestamptz": "timestamp with time zone", "timestamp": "timestamp without time zone"},
    **{"timetz": "time with time zone", "time": "time without time zone", "decimal": "numeric"},
}
IN_SCHEMA: Final = ("TABLE", "SEQUENCE", "FUNCTION", "TYPE")
ALL_OF_SCHEMA: Final[Mapping[str, str]] = {
    "TABLE": "ALL TABLES",
    "SEQUENCE": "ALL SEQUENCES",
    "FUNCTION": "ALL ROUTINES",
}
PrivilegeName = Literal[
    "ALL", "SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN", "EXECUTE", "USAGE",
    "CREATE", "CONNECT", "TEMPORARY",
]  # fmt: skip


class GrantedPrivilege(SpecStruct, frozen=True):
    """A privilege, on an object or on some columns of a table."""

    privilege: PrivilegeName
    """The privilege; ALL for every one that the type of object has."""
    grantOption: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the grantee may grant it on."""
    columns: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The columns of a table, for SELECT, INSERT, UPDATE and REFERENCES; left out: the whole table."""


class PrivilegesSpec(PostgresSpec, frozen=True, kw_only=True):
    """What both kinds of grants have."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that has the objects."""
    roleRef: Annotated[RoleReference, Mark.IMMUTABLE]
    """The role that gets the privileges; `external: public` for all roles."""
    otherPrivileges: Maybe[Literal["Keep", "Revoke"]] = UNSET
    """What becomes of other privileges of the role on the same object: kept, by default, or revoked."""


class GrantObject(SpecStruct, frozen=True):
    """What the privileges are for."""

    type: Literal[
        "TABLE", "SEQUENCE", "FUNCTION", "DATABASE", "SCHEMA", "TYPE", "LANGUAGE", "FOREIGN DATA WRAPPER",
        "FOREIGN SERVER",
    ]  # fmt: skip
    """The type of object. Views are tables; procedures and aggregates are functions."""
    schemaRef: Maybe[SchemaReference] = UNSET
    """The schema that the object is in, or that the privileges are for."""
    name: Annotated[Maybe[str], NAME] = UNSET
    """Its name; left out for a database or schema, which a reference names, and for all objects of a schema."""
    allInSchema: Maybe[bool] = UNSET
    """Whether all tables, sequences or functions are meant that are in the schema at the time."""
    arguments: Maybe[list[Annotated[str, TYPE_NAME]]] = UNSET
    """The types of the arguments of a function."""


class PostgresGrantSpec(PrivilegesSpec, frozen=True, kw_only=True):
    """The spec of a PostgresGrant."""

    object: Annotated[GrantObject, Mark.IMMUTABLE]
    """What the privileges are for."""
    privileges: Annotated[list[GrantedPrivilege], Keyed("privilege")]
    """The privileges."""


class PostgresDefaultPrivilegesSpec(PrivilegesSpec, frozen=True, kw_only=True):
    """The spec of PostgresDefaultPrivileges."""

    ownerRef: Annotated[RoleReference, Mark.IMMUTABLE]
    """The role that will create the objects."""
    schemaRef: Annotated[Maybe[SchemaReference], Mark.IMMUTABLE] = UNSET
    """The schema that the objects will be in; any, when left out."""
    objectType: Annotated[Literal["TABLE", "SEQUENCE", "FUNCTION", "TYPE", "SCHEMA"], Mark.IMMUTABLE]
    """The type of the objects."""
    privileges: list[PrivilegeName]
    """The privileges; ALL for every one that the type of object has."""
    grantOption: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether the role may grant them on."""


# --- What no grant can be ---------------------------------------------------------------------------------------------


def check_object(resource: Resource, what: GrantObject) -> None:
    """ManifestInvalid for an object that is not named, or too much of it."""
    problem = _naming_problem(what) or _argument_problem(what)
    if problem:
        raise field_invalid(resource, "spec.object", problem)


def _naming_problem(what: GrantObject) -> str:
    is_many = bool(what.allInSchema)
    if is_many and what.type not in ALL_OF_SCHEMA:
        return f".allInSchema is for {', '.join(ALL_OF_SCHEMA)}: name the object instead"
    if bool(what.schemaRef) != (what.type in (*IN_SCHEMA, "SCHEMA")):
        return f".schemaRef is for {', '.join(IN_SCHEMA)} and SCHEMA, and they need it"
    if bool(what.name) != (not is_many and what.type not in ("DATABASE", "SCHEMA")):
        return ".name is for one object in a schema: a database or schema is named by its reference"
    return ""


def _argument_problem(what: GrantObject) -> str:
    if what.arguments and (what.type != "FUNCTION" or what.allInSchema):
        return ".arguments are for one function"
    if not all(map(ddl.TYPE_FORM.fullmatch, what.arguments or ())):
        return ".arguments: write names of types, such as integer or text[]"
    return ""


def check_columns(resource: Resource, spec: PostgresGrantSpec) -> None:
    """ManifestInvalid for columns where there are none."""
    is_table = spec.object.type == "TABLE" and not spec.object.allInSchema
    for one in spec.privileges:
        if one.columns and (one.privilege not in COLUMN_PRIVILEGES or not is_table):
            problem = f": columns are for {', '.join(COLUMN_PRIVILEGES)} on one table: leave them out"
            raise field_invalid(resource, "spec.privileges", problem)


# --- As it is compared ------------------------------------------------------------------------------------------------


def granted(one: GrantedPrivilege) -> LivePrivilege:
    """A declared privilege as it would be held."""
    columns = sorted(set(one.columns)) if one.columns else UNSET
    return LivePrivilege(one.privilege, bool(one.grantOption), columns)


def privilege_tree(one: LivePrivilege) -> Json:
    """A privilege in the terms of the spec."""
    found: dict[str, Json] = {"privilege": one.privilege, "grantOption": one.grantOption}
    return found if one.columns is UNSET else {**found, "columns": [*one.columns]}


def argument_types(arguments: Sequence[str]) -> str:
    """The types as the catalog writes them."""
    return ", ".join(catalog_type(one) for one in arguments)


def catalog_type(text: str) -> str:
    """The name of a type as the catalog has it."""
    plain = text.removesuffix("[]")
    dimensions = "[]" if plain != text else ""
    return _TYPE_NAMES.get(plain.lower(), plain) + dimensions


# --- What other roles than the owner granted --------------------------------------------------------------------------


def third_statements(
    third: Iterable[ThirdGrant], kind: str, parts: Sequence[str], change: AclChange
) -> list[ddl.Statement]:
    """The revocations of a change that are up to other roles than the owner, each made as that role.

    One object after the other: a role without any privilege on an object is refused to name it.
    """
    found: list[ddl.Statement] = []
    for one in third:
        name, *arguments = object_names(one.object_name)
        names = (parts[5], name) if kind in IN_SCHEMA else (name,)
        types = [text for text in ", ".join(arguments).split(", ") if text]
        target = ddl.object_target(kind, names, types)
        found += ddl.as_role(one.grantor, ddl.grant_statements(target, parts[3], one.part_of(change)))
    return found


# --- Which grants overlap ---------------------------------------------------------------------------------------------


def object_type_in(address: ObjectAddress) -> str:
    """The type of object that the location of a grant names."""
    words = {words: kind for kind, words in ALL_OF_SCHEMA.items()}
    return words.get(address.parts[4], address.parts[4])


def object_names(text: str) -> Sequence[str]:
    """The names of an object within its schema, as a catalog has them: of a routine, with its arguments."""
    return [str(one) for one in json.loads(text)] if text.startswith("[") else [text]


def overlapping(address: ObjectAddress, objects: Sequence[Sequence[str]]) -> list[str]:
    """The locations of grants that may be about the same object: all of its schema, or each of these objects."""
    server, kind = Server(address.host, address.port), object_type_in(address)
    before, schema = address.parts[:4], address.parts[5]
    if kind not in ALL_OF_SCHEMA:
        return []
    if address.parts[4] == kind:
        return [render_location(server, *before, ALL_OF_SCHEMA[kind], schema)]
    return [render_location(server, *before, kind, schema, *names) for names in objects]
