"""The spec of functions and procedures, what is read of a live one, and how both are written in one way."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.kind import Between, Default, Int64, Json, JsonObject, Mark, Matches, Maybe, SpecStruct
from setpoint_postgresql.catalogs import Catalog
from setpoint_postgresql.connection import NAME, DatabaseReference, RoleReference, SchemaReference
from setpoint_postgresql.database_objects import CascadingDeletion
from setpoint_postgresql.grant_specs import TYPE_NAME, catalog_type
from setpoint_postgresql.routines.expressions import ExpressionForm
from setpoint_postgresql.routines.recreation import REFUSE, RecreatableSpec
from setpoint_postgresql.settings import SettingsMap
from setpoint_postgresql.statements import TYPE_FORM

FUNCTION: Final = "FUNCTION"
PROCEDURE: Final = "PROCEDURE"
VOID: Final = "void"
DEFAULTS: Final = "argumentDefaults"
_SETOF: Final = "SETOF "
_RESULT: Final = Matches(f"(?:[Ss][Ee][Tt][Oo][Ff] )?{TYPE_FORM.pattern}", "a type, or SETOF and a type", 160)
# What a function has and a procedure has not.
OF_FUNCTIONS: Final = ("returns", "returnsTable", "volatility", "parallel", "strict", "cost", "rows")


class FunctionArgument(SpecStruct, frozen=True):
    """An argument of a function."""

    type: Annotated[str, TYPE_NAME]
    """Its type; one that is not PostgreSQL's own with its schema."""
    name: Annotated[Maybe[str], NAME] = UNSET
    """Its name."""
    mode: Maybe[Literal["IN", "OUT", "INOUT", "VARIADIC"]] = UNSET
    """How it is passed; IN, when left out."""
    default: Maybe[str] = UNSET
    """The expression of SQL that stands for it where a call leaves it out. It can change, and cannot be taken away."""


class FunctionColumn(SpecStruct, frozen=True):
    """A column of the table that a function returns."""

    name: Annotated[str, NAME]
    """Its name."""
    type: Annotated[str, TYPE_NAME]
    """Its type."""


class PostgresFunctionSpec(RecreatableSpec, frozen=True, kw_only=True):
    """The spec of a PostgresFunction."""

    databaseRef: Annotated[DatabaseReference, Mark.IMMUTABLE]
    """The database that it is in."""
    schemaRef: Annotated[SchemaReference, Mark.IMMUTABLE]
    """The schema that it is in."""
    ownerRef: Annotated[Maybe[RoleReference], Mark.CHOSEN] = UNSET
    """Its owner; the role that logs in, when left out."""
    kind: Annotated[Maybe[Literal["FUNCTION", "PROCEDURE"]], Default(FUNCTION)] = UNSET
    """Whether it is a function, or a procedure. Fixed: see onChange."""
    arguments: Maybe[list[FunctionArgument]] = UNSET
    """Its arguments. Together with the name, the types of those that are passed in tell it apart from others. All but
    the defaults are fixed: see onChange."""
    returns: Annotated[Maybe[str], _RESULT, Mark.CHOSEN] = UNSET
    """The type of its result, or `SETOF` and the type of each row; `void` when left out, and no argument is OUT. Fixed:
    see onChange."""
    returnsTable: Maybe[list[FunctionColumn]] = UNSET
    """The columns of the rows that it returns (RETURNS TABLE). Fixed: see onChange."""
    language: Annotated[Maybe[str], NAME, Default("plpgsql")] = UNSET
    """The language of its body."""
    body: str
    """Its body: what stands between the dollar quotes in SQL."""
    volatility: Annotated[Maybe[Literal["VOLATILE", "STABLE", "IMMUTABLE"]], Default("VOLATILE")] = UNSET
    """Whether its result depends on more than its arguments."""
    parallel: Annotated[Maybe[Literal["UNSAFE", "RESTRICTED", "SAFE"]], Default("UNSAFE")] = UNSET
    """Whether it can run in a parallel query."""
    strict: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it returns NULL, and is not called, where an argument is NULL."""
    securityDefiner: Annotated[Maybe[bool], Default(False)] = UNSET
    """Whether it runs with the privileges of its owner."""
    cost: Annotated[Maybe[Int64], Between(1, 2**31), Mark.CHOSEN] = UNSET
    """What a call costs, in units of cpu_operator_cost."""
    rows: Annotated[Maybe[Int64], Between(0, 2**31), Mark.CHOSEN] = UNSET
    """How many rows a function is expected to return that returns a set."""
    searchPath: Maybe[list[Annotated[str, NAME]]] = UNSET
    """The schemas in which it looks for names (SET search_path)."""
    settings: Maybe[SettingsMap] = UNSET
    """Parameters while it runs (SET)."""
    comment: Annotated[Maybe[str], Default("")] = UNSET
    """Its comment."""
    onDelete: Maybe[CascadingDeletion] = UNSET
    """How it is dropped."""


class FunctionOutputs(Struct, frozen=True):
    """What the status shows of a function."""

    argumentDefaults: list[ExpressionForm] = []
    """The defaults as declared, and as the server spells them: another spelling is drift."""


class LiveArgument(Struct, frozen=True):
    """An argument of a live function."""

    type: str
    name: str = ""
    mode: str = "IN"
    default: str | None = None

    @property
    def shown(self) -> dict[str, Json]:
        """The argument in the terms of the spec; what is as by default is left out."""
        found: dict[str, Json] = {"type": self.type}
        found |= {"name": self.name} if self.name else {}
        found |= {"mode": self.mode} if self.mode != "IN" else {}
        return found if self.default is None else {**found, "default": self.default}


class LiveFunction(Struct, frozen=True):
    """The live function, or procedure."""

    name: str
    owner: str
    kind: str
    language: str
    body: str
    volatility: str
    parallel: str
    strict: bool
    securityDefiner: bool
    cost: int
    rows: int
    arguments: list[LiveArgument] = []
    returns: str | UnsetType | None = UNSET
    returnsTable: list[dict[str, str]] = []
    settings: list[str] = []
    comment: str = ""
    onChange: str = REFUSE


_ALL_ARGUMENTS: Final = "unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a(type, n)"
# Key: the schema, the name, and the types of what is passed in, in parentheses.
FUNCTIONS: Final = Catalog(
    "functions",
    {
        0: f"""
SELECT k.key, json_build_object(
    'version', current_setting('server_version_num')::int, 'name', p.proname, 'owner', pg_get_userbyid(p.proowner),
    'kind', CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
    'arguments', (
        SELECT coalesce(json_agg(json_build_object(
            'name', coalesce(p.proargnames[a.n], ''), 'type', format_type(a.type, NULL),
            'mode', CASE p.proargmodes[a.n] WHEN 'o' THEN 'OUT' WHEN 'b' THEN 'INOUT' WHEN 'v' THEN 'VARIADIC'
                ELSE 'IN' END,
            'default', pg_get_function_arg_default(p.oid, a.n::int)) ORDER BY a.n), '[]')
        FROM {_ALL_ARGUMENTS} WHERE p.proargmodes[a.n] IS DISTINCT FROM 't'),
    'returns', CASE WHEN 't' = ANY(p.proargmodes) THEN NULL ELSE pg_get_function_result(p.oid) END,
    'returnsTable', (
        SELECT coalesce(json_agg(json_build_object(
            'name', p.proargnames[a.n], 'type', format_type(a.type, NULL)) ORDER BY a.n), '[]')
        FROM {_ALL_ARGUMENTS} WHERE p.proargmodes[a.n] = 't'),
    'language', l.lanname, 'body', p.prosrc,
    'volatility', CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
    'parallel', CASE p.proparallel WHEN 's' THEN 'SAFE' WHEN 'r' THEN 'RESTRICTED' ELSE 'UNSAFE' END,
    'strict', p.proisstrict, 'securityDefiner', p.prosecdef, 'cost', p.procost::bigint, 'rows', p.prorows::bigint,
    'settings', coalesce(to_json(p.proconfig), '[]'), 'comment', coalesce(obj_description(p.oid, 'pg_proc'), '')
    )::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_namespace n ON n.nspname = (k.key::json->>0)
    JOIN pg_proc p ON p.pronamespace = n.oid AND p.proname = (k.key::json->>1) AND p.prokind IN ('f', 'p')
        AND '(' || oidvectortypes(p.proargtypes) || ')' = (k.key::json->>2)
    JOIN pg_language l ON l.oid = p.prolang"""
    },
)
DECODER: Final = msgspec.json.Decoder(LiveFunction)


# --- One way to write it ----------------------------------------------------------------------------------------------


def signature(spec: PostgresFunctionSpec) -> str:
    """The types of what is passed in, as the catalog writes them, in parentheses."""
    types = [catalog_type(one.type) for one in spec.arguments or () if one.mode != "OUT"]
    return f"({', '.join(types)})"


def normalized(spec: PostgresFunctionSpec) -> dict[str, Json]:
    """The fields that have more than one way to be written, in that of the catalog."""
    found: dict[str, Json] = {}
    arguments = [_argument(one) for one in spec.arguments or ()]
    if arguments:
        found["arguments"] = [*arguments]
    if spec.returnsTable:
        found["returnsTable"] = [{"name": one.name, "type": catalog_type(one.type)} for one in spec.returnsTable]
    elif spec.returns:
        is_set = spec.returns[: len(_SETOF)].upper() == _SETOF
        found["returns"] = (
            f"{_SETOF}{catalog_type(spec.returns[len(_SETOF) :])}" if is_set else catalog_type(spec.returns)
        )
    elif spec.kind != PROCEDURE and not any(one.mode in ("OUT", "INOUT") for one in spec.arguments or ()):
        found["returns"] = VOID
    return found


def _argument(argument: FunctionArgument) -> dict[str, Json]:
    default = argument.default if isinstance(argument.default, str) else None
    return LiveArgument(catalog_type(argument.type), argument.name or "", argument.mode or "IN", default).shown


def declared_defaults(spec: JsonObject) -> dict[str, str]:
    """The expressions of defaults, by the number of the argument."""
    return {
        str(number): str(one["default"])
        for number, one in enumerate(arguments_in(spec), 1)
        if isinstance(one.get("default"), str)
    }


def arguments_in(spec: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The arguments in a tree."""
    found = spec.get("arguments")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def is_replaceable(before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    """Whether CREATE OR REPLACE can make one of the other: it cannot change what callers rely on."""
    if any(before.get(name) != after.get(name) for name in ("kind", "returns", "returnsTable") if name in after):
        return False
    was, wanted = arguments_in(before), arguments_in(after)
    return len(was) == len(wanted) and all(
        {**old, "default": None} == {**new, "default": None} and ("default" in new or "default" not in old)
        for old, new in zip(was, wanted, strict=True)
    )
