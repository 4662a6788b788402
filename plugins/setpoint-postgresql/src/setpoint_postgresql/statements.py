"""Statements: from what is wanted to SQL, with every name and value quoted by psycopg. Pure.

Names become identifiers, values become literals, and words of SQL come from closed sets: nothing that an author
writes is ever part of a statement by itself.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from psycopg import sql

from setpoint.kind import ManifestInvalid
from setpoint_postgresql.acl import PUBLIC, AclChange

Statement = sql.Composed
# The name of a type: words, with a schema, and brackets for an array.
TYPE_FORM: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[ .][A-Za-z_][A-Za-z0-9_]*)*(?:\[\])*")
# An attribute of a role, as the spec calls it, and its two words.
ROLE_FLAGS: Final[Mapping[str, tuple[str, str]]] = {
    "superuser": ("SUPERUSER", "NOSUPERUSER"),
    "createDatabase": ("CREATEDB", "NOCREATEDB"),
    "createRole": ("CREATEROLE", "NOCREATEROLE"),
    "inherit": ("INHERIT", "NOINHERIT"),
    "login": ("LOGIN", "NOLOGIN"),
    "replication": ("REPLICATION", "NOREPLICATION"),
    "bypassRowSecurity": ("BYPASSRLS", "NOBYPASSRLS"),
}
# The words after ON, by the type of object.
_ON: Final[Mapping[str, str]] = {
    "TABLE": "TABLE",
    "SEQUENCE": "SEQUENCE",
    # Procedures and aggregates, too.
    "FUNCTION": "ROUTINE",
    "DATABASE": "DATABASE",
    "SCHEMA": "SCHEMA",
    "TYPE": "TYPE",
    "LANGUAGE": "LANGUAGE",
    "FOREIGN DATA WRAPPER": "FOREIGN DATA WRAPPER",
    "FOREIGN SERVER": "FOREIGN SERVER",
}
_DEFAULT_ON: Final[Mapping[str, str]] = {
    "TABLE": "TABLES",
    "SEQUENCE": "SEQUENCES",
    "FUNCTION": "FUNCTIONS",
    "TYPE": "TYPES",
    "SCHEMA": "SCHEMAS",
}
# Settings whose value is a list of identifiers: each is quoted by itself.
LIST_SETTINGS: Final = frozenset(
    {"search_path", "session_preload_libraries", "local_preload_libraries", "temp_tablespaces"}
)


def name(*parts: str) -> sql.Identifier:
    """A name, qualified where there are several parts."""
    return sql.Identifier(*parts)


def grantee(role: str) -> sql.Composable:
    """A role to grant to; PUBLIC is a word, and no name."""
    return sql.SQL("PUBLIC") if role == PUBLIC else name(role)


def _words(template: str, **parts: sql.Composable) -> Statement:
    return sql.SQL(template).format(**parts)


def _listed(parts: Iterable[sql.Composable]) -> sql.Composable:
    return sql.SQL(", ").join(parts)


def rendered(statement: sql.Composable) -> str:
    """The statement as text, for tests and records of those without secrets."""
    return statement.as_string(None)


# --- Roles -----------------------------------------------------------------------------------------------------------


def create_role(role: str, options: Mapping[str, object], verifier: str | None) -> Statement:
    """CREATE ROLE with these attributes; the password as a verifier."""
    return _words("CREATE ROLE {role}{options}", role=name(role), options=_role_options(options, verifier))


def alter_role(role: str, options: Mapping[str, object], verifier: str | None) -> list[Statement]:
    """ALTER ROLE for the attributes given; none for none."""
    if not options and verifier is None:
        return []
    return [_words("ALTER ROLE {role}{options}", role=name(role), options=_role_options(options, verifier))]


def _role_options(options: Mapping[str, object], verifier: str | None) -> sql.Composable:
    found: list[sql.Composable] = []
    for option, (on, off) in ROLE_FLAGS.items():
        if option in options:
            found.append(sql.SQL(f" {on if options[option] else off}"))
    if "connectionLimit" in options:
        found.append(_words(" CONNECTION LIMIT {limit}", limit=sql.Literal(options["connectionLimit"])))
    if "validUntil" in options:
        until = options["validUntil"]
        found.append(_words(" VALID UNTIL {until}", until=sql.Literal("infinity" if until is None else until)))
    if verifier is not None:
        found.append(_words(" PASSWORD {verifier}", verifier=sql.Literal(verifier)))
    return sql.Composed(found)


def grant_membership(role: str, member: str, options: Mapping[str, bool], version: int) -> Statement:
    """GRANT of one role to another; `inherit` and `set` where the server has them."""
    words = [f"{key.upper()} {'TRUE' if value else 'FALSE'}" for key, value in options.items() if key != "admin"]
    if version >= 160000:
        words = [f"ADMIN {'TRUE' if options.get('admin') else 'FALSE'}", *words]
        suffix = f" WITH {', '.join(words)}"
    else:
        suffix = " WITH ADMIN OPTION" if options.get("admin") else ""
    return _words("GRANT {role} TO {member}{suffix}", role=name(role), member=name(member), suffix=sql.SQL(suffix))


def revoke_membership(role: str, member: str) -> Statement:
    """REVOKE of a membership as a whole."""
    return _words("REVOKE {role} FROM {member}", role=name(role), member=name(member))


def revoke_admin(role: str, member: str) -> Statement:
    """REVOKE of the admin option alone."""
    return _words("REVOKE ADMIN OPTION FOR {role} FROM {member}", role=name(role), member=name(member))


def reassign_owned(role: str, to: str) -> Statement:
    """Gives another owner to all objects of a role in the connected database."""
    return _words("REASSIGN OWNED BY {role} TO {to}", role=name(role), to=name(to))


def drop_owned(role: str) -> Statement:
    """Drops the objects of a role in the connected database, and revokes the privileges that it holds."""
    return _words("DROP OWNED BY {role}", role=name(role))


def drop(kind: str, *names: str, cascade: bool = False) -> Statement:
    """DROP of an object that may be gone already."""
    words = f"DROP {kind} IF EXISTS {{name}}{' CASCADE' if cascade else ''}"
    return _words(words, name=name(*names))


def comment(kind: str, names: Sequence[str], text: str) -> Statement:
    """COMMENT ON an object; an empty text takes it away."""
    return _words(f"COMMENT ON {kind} {{name}} IS {{text}}", name=name(*names), text=sql.Literal(text or None))


# --- Settings --------------------------------------------------------------------------------------------------------


def set_parameter(subject: sql.Composable, parameter: str, value: str | Sequence[str] | None) -> Statement:
    """ALTER ROLE or DATABASE … SET; None resets. `subject` is all between ALTER and SET."""
    what = _parameter(parameter)
    if value is None:
        return _words("ALTER {subject} RESET {parameter}", subject=subject, parameter=what)
    values = [value] if isinstance(value, str) else value
    return _words(
        "ALTER {subject} SET {parameter} = {value}",
        subject=subject,
        parameter=what,
        value=_listed(sql.Literal(one) for one in values) if values else sql.Literal(""),
    )


def role_subject(role: str, database: str = "") -> Statement:
    """A role, in one database or in all."""
    if not database:
        return _words("ROLE {role}", role=name(role))
    return _words("ROLE {role} IN DATABASE {database}", role=name(role), database=name(database))


def database_subject(database: str) -> Statement:
    """A database."""
    return _words("DATABASE {database}", database=name(database))


def _parameter(parameter: str) -> sql.Composable:
    """A parameter, whose extension is a part of its name: `pg_stat_statements.track`."""
    return name(*parameter.split("."))


def split_setting(text: str) -> tuple[str, str]:
    """Name and value of an entry of setconfig."""
    parameter, _, value = text.partition("=")
    return parameter, value


def parse_names(text: str) -> list[str]:
    """The names in the value of a setting that is a list of identifiers."""
    found: list[str] = []
    current, in_quotes, at, was_quoted = "", False, 0, False
    while at < len(text):
        char = text[at]
        if char == '"':
            if in_quotes and text[at + 1 : at + 2] == '"':
                current += char
                at += 1
            else:
                in_quotes, was_quoted = not in_quotes, True
        elif char == "," and not in_quotes:
            found.append(current if was_quoted else current.strip())
            current, was_quoted = "", False
        elif in_quotes or not char.isspace():
            current += char
        at += 1
    if current or was_quoted:
        found.append(current)
    return found


# --- Databases, schemas, extensions -----------------------------------------------------------------------------------

# The options of CREATE DATABASE, as the spec calls them, in the order of the statement.
DATABASE_NAMES: Final = {"owner": "OWNER", "template": "TEMPLATE", "tablespace": "TABLESPACE"}
DATABASE_TEXTS: Final = {"encoding": "ENCODING", "collation": "LC_COLLATE", "characterType": "LC_CTYPE"}


def create_database(database: str, options: Mapping[str, object]) -> Statement:
    """CREATE DATABASE with these options."""
    found: list[sql.Composable] = []
    for option, word in DATABASE_NAMES.items():
        if option in options:
            found.append(_words(f" {word} {{name}}", name=name(str(options[option]))))
    for option, word in DATABASE_TEXTS.items():
        if option in options:
            found.append(_words(f" {word} {{text}}", text=sql.Literal(options[option])))
    if "localeProvider" in options:
        found.append(_words(" LOCALE_PROVIDER {text}", text=name(str(options["localeProvider"]))))
    if options.get("locale"):
        word = "BUILTIN_LOCALE" if options.get("localeProvider") == "builtin" else "ICU_LOCALE"
        found.append(_words(f" {word} {{text}}", text=sql.Literal(options["locale"])))
    found.extend(_database_flags(options))
    return _words("CREATE DATABASE {database}{options}", database=name(database), options=sql.Composed(found))


def alter_database(database: str, options: Mapping[str, object]) -> list[Statement]:
    """ALTER DATABASE for its flags and its limit; none for none."""
    flags = _database_flags(options)
    if not flags:
        return []
    return [_words("ALTER DATABASE {database} WITH{flags}", database=name(database), flags=sql.Composed(flags))]


def _database_flags(options: Mapping[str, object]) -> list[sql.Composable]:
    found: list[sql.Composable] = []
    for option, word in (("isTemplate", "IS_TEMPLATE"), ("allowConnections", "ALLOW_CONNECTIONS")):
        if option in options:
            found.append(sql.SQL(f" {word} {'true' if options[option] else 'false'}"))
    if "connectionLimit" in options:
        found.append(_words(" CONNECTION LIMIT {limit}", limit=sql.Literal(options["connectionLimit"])))
    return found


def move_database(database: str, tablespace: str) -> Statement:
    """Moves a database to another tablespace: no transaction can contain it."""
    return _words(
        "ALTER DATABASE {database} SET TABLESPACE {tablespace}", database=name(database), tablespace=name(tablespace)
    )


def drop_database(database: str, *, force: bool) -> Statement:
    """DROP DATABASE; `force` ends the sessions of others."""
    return _words(f"DROP DATABASE IF EXISTS {{database}}{' WITH (FORCE)' if force else ''}", database=name(database))


def owned_by(kind: str, names: Sequence[str], owner: str) -> Statement:
    """Gives an object another owner."""
    return _words(f"ALTER {kind} {{name}} OWNER TO {{owner}}", name=name(*names), owner=name(owner))


def create_schema(schema: str, owner: str | None) -> Statement:
    """CREATE SCHEMA, owned by the role that logs in unless another is named."""
    if owner is None:
        return _words("CREATE SCHEMA {schema}", schema=name(schema))
    return _words("CREATE SCHEMA {schema} AUTHORIZATION {owner}", schema=name(schema), owner=name(owner))


def create_extension(extension: str, schema: str | None, version: str | None, *, cascade: bool) -> list[Statement]:
    """CREATE EXTENSION; without a schema, in the one that it names itself, else in `public`."""
    options: list[sql.Composable] = []
    if schema is not None:
        options.append(_words(" SCHEMA {schema}", schema=name(schema)))
    if version is not None:
        options.append(_words(" VERSION {version}", version=sql.Literal(version)))
    if cascade:
        options.append(sql.SQL(" CASCADE"))
    return [
        sql.Composed([sql.SQL("SET LOCAL search_path TO public")]),
        _words("CREATE EXTENSION {extension}{options}", extension=name(extension), options=sql.Composed(options)),
    ]


def update_extension(extension: str, version: str) -> Statement:
    """ALTER EXTENSION … UPDATE to a version."""
    return _words(
        "ALTER EXTENSION {extension} UPDATE TO {version}", extension=name(extension), version=sql.Literal(version)
    )


def move_extension(extension: str, schema: str) -> Statement:
    """ALTER EXTENSION … SET SCHEMA."""
    return _words("ALTER EXTENSION {extension} SET SCHEMA {schema}", extension=name(extension), schema=name(schema))


# --- Privileges ------------------------------------------------------------------------------------------------------


def object_target(object_type: str, names: Sequence[str], arguments: Sequence[str] = ()) -> Statement:
    """What follows ON: the type and the name; of a routine, with the types of its arguments.

    Types are no identifiers, and cannot be quoted: ManifestInvalid for a text that is no name of a type.
    """
    for one in arguments:
        if TYPE_FORM.fullmatch(one) is None:
            raise ManifestInvalid(f"{one!r} is no name of a type: write one such as integer or text[]")
    target = _words(f"{_ON[object_type]} {{name}}", name=name(*names))
    if object_type != "FUNCTION":
        return target
    return target + sql.SQL(f"({', '.join(arguments)})")


def all_target(words: str, schema: str) -> Statement:
    """What follows ON for all objects of a schema."""
    return _words(f"{words} IN SCHEMA {{schema}}", schema=name(schema))


def grant_statements(
    target: sql.Composable, role: str, change: AclChange, columns: Sequence[str] = ()
) -> list[Statement]:
    """GRANT and REVOKE for a change of what a grantee holds, on an object or on some of its columns.

    A revocation takes back what the grantee itself has granted on.
    """
    found: list[Statement] = []
    parts: tuple[tuple[frozenset[str], str], ...] = (
        (change.revoke, "REVOKE {privileges} ON {target} FROM {role} CASCADE"),
        (change.revoke_option, "REVOKE GRANT OPTION FOR {privileges} ON {target} FROM {role} CASCADE"),
        (change.grant, "GRANT {privileges} ON {target} TO {role}"),
        (change.grant_with_option, "GRANT {privileges} ON {target} TO {role} WITH GRANT OPTION"),
    )
    for privileges, words in parts:
        if privileges:
            listed = _privileges(privileges, columns)
            found.append(_words(words, privileges=listed, target=target, role=grantee(role)))
    return found


def as_role(role: str, statements: Sequence[Statement]) -> list[Statement]:
    """The statements as another role executes them, in a transaction; none for none."""
    back = sql.Composed([sql.SQL("SET LOCAL ROLE NONE")])
    return [_words("SET LOCAL ROLE {role}", role=name(role)), *statements, back] if statements else []


def default_privilege_statements(
    owner: str, schema: str, object_type: str, *, role: str, change: AclChange
) -> list[Statement]:
    """ALTER DEFAULT PRIVILEGES for objects that `owner` will create, in one schema or in all."""
    where = _words("FOR ROLE {owner}", owner=name(owner))
    if schema:
        where = where + _words(" IN SCHEMA {schema}", schema=name(schema))
    prefix = _words("ALTER DEFAULT PRIVILEGES {where} ", where=where)
    target = sql.SQL(_DEFAULT_ON[object_type])
    return [prefix + statement for statement in grant_statements(target, role, change)]


def _privileges(privileges: Iterable[str], columns: Sequence[str]) -> sql.Composable:
    """The privileges, sorted; on columns where these are named."""
    of = _words(" ({columns})", columns=_listed(name(one) for one in columns)) if columns else sql.SQL("")
    return _listed(sql.SQL(one) + of for one in sorted(privileges))
