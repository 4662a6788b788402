"""What is read from the system catalogs: one query for many objects, each row an object's key and the object as JSON.

A key is the name of an object, or a JSON array of names. The keys are a parameter of the query, and come back as they
were sent. Where versions of PostgreSQL differ, a query has a variant for each version from which on it is valid.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Catalog:
    """A query by the version of the server from which on it is valid."""

    name: str
    texts: Mapping[int, str]


def key_of(*names: str) -> str:
    """The key of an object with more than one name."""
    return json.dumps(names, ensure_ascii=False)


VERSION_COLUMN: Final = "current_setting('server_version_num')::int"
# PostgreSQL writes times in UTC as the spec does.
_UNTIL: Final = """CASE WHEN r.rolvaliduntil = 'infinity' THEN 'infinity'
    ELSE to_char(r.rolvaliduntil AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') END"""

# --- Roles -----------------------------------------------------------------------------------------------------------


def _roles(options: str) -> str:
    """`options`: the columns of a membership beside its admin option. A role may hold one from several grantors."""
    return f"""
SELECT k.key, json_build_object(
    'version', {VERSION_COLUMN}, 'name', r.rolname, 'superuser', r.rolsuper, 'createDatabase', r.rolcreatedb,
    'createRole', r.rolcreaterole, 'inherit', r.rolinherit, 'login', r.rolcanlogin,
    'replication', r.rolreplication, 'bypassRowSecurity', r.rolbypassrls, 'connectionLimit', r.rolconnlimit,
    'validUntil', {_UNTIL},
    'comment', coalesce(shobj_description(r.oid, 'pg_authid'), ''),
    'memberOf', (
        SELECT coalesce(json_agg(json_build_object('role', m.role, 'admin', m.admin{options}) ORDER BY m.role), '[]')
        FROM (
            SELECT g.rolname AS role, bool_or(m.admin_option) AS admin {_or_options(options)}
            FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid GROUP BY g.rolname
        ) m),
    'settings', (
        SELECT coalesce(json_agg(json_build_array(coalesce(d.datname, ''), s.setconfig)), '[]')
        FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase WHERE s.setrole = r.oid)
    )::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_roles r ON r.rolname = k.key"""


def _or_options(options: str) -> str:
    return ", bool_or(m.inherit_option) AS inherit, bool_or(m.set_option) AS set" if options else ""


ROLES: Final = Catalog(
    "roles",
    {0: _roles(""), 160000: _roles(", 'inherit', m.inherit, 'set', m.set")},
)

# The databases in which something depends on a role: objects that it owns, privileges that it holds. Key: the role.
ROLE_DATABASES: Final = Catalog(
    "databases that depend on roles",
    {
        0: """
SELECT k.key, coalesce(json_agg(DISTINCT d.datname) FILTER (WHERE d.datallowconn), '[]')::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_roles r ON r.rolname = k.key
    JOIN pg_shdepend s ON s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
    LEFT JOIN pg_database d ON d.oid = s.dbid OR (s.dbid = 0 AND d.datname = current_database())
GROUP BY k.key"""
    },
)

# --- Databases, schemas, extensions -----------------------------------------------------------------------------------


def _databases(locale: str) -> str:
    """`locale`: the columns of the locale that this version has."""
    return f"""
SELECT k.key, json_build_object(
    'version', {VERSION_COLUMN}, 'name', d.datname, 'owner', pg_get_userbyid(d.datdba),
    'encoding', pg_encoding_to_char(d.encoding), {locale},
    'tablespace', t.spcname, 'isTemplate', d.datistemplate, 'allowConnections', d.datallowconn,
    'connectionLimit', d.datconnlimit, 'comment', coalesce(shobj_description(d.oid, 'pg_database'), ''),
    'settings', coalesce((
        SELECT to_json(s.setconfig) FROM pg_db_role_setting s WHERE s.setdatabase = d.oid AND s.setrole = 0), '[]')
    )::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_database d ON d.datname = k.key
    JOIN pg_tablespace t ON t.oid = d.dattablespace"""


_LIBC: Final = "'collation', d.datcollate, 'characterType', d.datctype"
_PROVIDER: Final = "'localeProvider', CASE d.datlocprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END"
DATABASES: Final = Catalog(
    "databases",
    {
        0: _databases(_LIBC),
        150000: _databases(f"{_LIBC}, {_PROVIDER}, 'locale', coalesce(d.daticulocale, '')"),
        170000: _databases(f"{_LIBC}, {_PROVIDER}, 'locale', coalesce(d.datlocale, '')"),
    },
)
SCHEMAS: Final = Catalog(
    "schemas",
    {
        0: f"""
SELECT k.key, json_build_object(
    'version', {VERSION_COLUMN}, 'name', n.nspname, 'owner', pg_get_userbyid(n.nspowner),
    'comment', coalesce(obj_description(n.oid, 'pg_namespace'), ''))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_namespace n ON n.nspname = k.key"""
    },
)
EXTENSIONS: Final = Catalog(
    "extensions",
    {
        0: f"""
SELECT k.key, json_build_object(
    'version', {VERSION_COLUMN}, 'name', e.extname, 'extensionVersion', e.extversion, 'schema', n.nspname,
    'owner', pg_get_userbyid(e.extowner), 'relocatable', e.extrelocatable,
    'defaultVersion', (SELECT a.default_version FROM pg_available_extensions a WHERE a.name = e.extname),
    'comment', coalesce(obj_description(e.oid, 'pg_extension'), ''))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_extension e ON e.extname = k.key
    JOIN pg_namespace n ON n.oid = e.extnamespace"""
    },
)

# --- Access control lists: each row has the list of every object that the key names -----------------------------------


def _acl(objects: str, join: str, columns: str = "'{}'::json") -> Catalog:
    """`objects`: the name, list and owner of an object. `join`: the objects of a key; `columns`: lists of columns."""
    name, acl, default, owner = objects.split(" | ")
    return Catalog(
        f"privileges of {join}",
        {
            0: f"""
SELECT k.key, json_build_object('version', {VERSION_COLUMN}, 'objects', json_agg(json_build_array(
    {name}, to_json(coalesce({acl}, acldefault('{default}', {owner}))::text[]), {columns}, pg_get_userbyid({owner})
    ) ORDER BY {name}))::text
FROM unnest(%s::text[]) AS k(key) {join} GROUP BY k.key"""
        },
    )


_NAMESPACE: Final = "JOIN pg_namespace n ON n.nspname = (k.key::json->>0)"
_TABLES: Final = "c.relkind IN ('r', 'p', 'v', 'm', 'f')"
_COLUMNS: Final = """(
    SELECT coalesce(json_object_agg(a.attname, to_json(a.attacl::text[])), '{}') FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attacl IS NOT NULL)"""
_RELATION: Final = "c.relname | c.relacl | r | c.relowner"
_SEQUENCE: Final = "c.relname | c.relacl | s | c.relowner"
_ROUTINE: Final = "json_build_array(p.proname, oidvectortypes(p.proargtypes))::text | p.proacl | f | p.proowner"


def _named(kind: str, name: str, namespace: str) -> str:
    return f"{_NAMESPACE} JOIN {kind} ON {namespace} = n.oid AND {name} = (k.key::json->>1)"


# By the type of object, and whether all of a schema are meant. Key: the names, from the outermost on.
ACLS: Final[Mapping[tuple[str, bool], Catalog]] = {
    ("TABLE", False): _acl(
        _RELATION,
        f"{_named('pg_class c', 'c.relname', 'c.relnamespace')} AND {_TABLES}",
        _COLUMNS,
    ),
    ("TABLE", True): _acl(
        _RELATION,
        f"{_NAMESPACE} JOIN pg_class c ON c.relnamespace = n.oid AND {_TABLES}",
        _COLUMNS,
    ),
    ("SEQUENCE", False): _acl(
        _SEQUENCE,
        f"{_named('pg_class c', 'c.relname', 'c.relnamespace')} AND c.relkind = 'S'",
    ),
    ("SEQUENCE", True): _acl(
        _SEQUENCE,
        f"{_NAMESPACE} JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'S'",
    ),
    ("FUNCTION", False): _acl(
        _ROUTINE,
        f"{_named('pg_proc p', 'p.proname', 'p.pronamespace')} AND oidvectortypes(p.proargtypes) = (k.key::json->>2)",
    ),
    ("FUNCTION", True): _acl(_ROUTINE, f"{_NAMESPACE} JOIN pg_proc p ON p.pronamespace = n.oid"),
    ("TYPE", False): _acl("t.typname | t.typacl | T | t.typowner", _named("pg_type t", "t.typname", "t.typnamespace")),
    ("DATABASE", False): _acl(
        "d.datname | d.datacl | d | d.datdba",
        "JOIN pg_database d ON d.datname = (k.key::json->>0)",
    ),
    ("SCHEMA", False): _acl("n.nspname | n.nspacl | n | n.nspowner", _NAMESPACE),
    ("LANGUAGE", False): _acl(
        "l.lanname | l.lanacl | l | l.lanowner", "JOIN pg_language l ON l.lanname = (k.key::json->>0)"
    ),
    ("FOREIGN DATA WRAPPER", False): _acl(
        "w.fdwname | w.fdwacl | F | w.fdwowner", "JOIN pg_foreign_data_wrapper w ON w.fdwname = (k.key::json->>0)"
    ),
    ("FOREIGN SERVER", False): _acl(
        "s.srvname | s.srvacl | S | s.srvowner", "JOIN pg_foreign_server s ON s.srvname = (k.key::json->>0)"
    ),
}
# Which schemas there are, so that one without tables is told apart from one that does not exist. Key: the schema.
SCHEMA_EXISTS: Final = Catalog(
    "names of schemas",
    {0: "SELECT k.key, '{}' FROM unnest(%s::text[]) AS k(key) JOIN pg_namespace n ON n.nspname = (k.key::json->>0)"},
)

# The roles that the session may act as (SET ROLE). Key: the role.
_ACTS_AS: Final = "SELECT k.key, '{}' FROM unnest(%s::text[]) AS k(key) JOIN pg_roles r ON r.rolname = k.key"
ACTORS: Final = Catalog(
    "roles to act as",
    {
        0: f"{_ACTS_AS} WHERE pg_has_role(r.oid, 'MEMBER')",
        160000: f"{_ACTS_AS} WHERE pg_has_role(r.oid, 'SET')",
    },
)

# --- Default privileges -----------------------------------------------------------------------------------------------

# The letter of each type of object in pg_default_acl, and in acldefault.
DEFAULT_ACL_LETTERS: Final[Mapping[str, tuple[str, str]]] = {
    "TABLE": ("r", "r"),
    "SEQUENCE": ("S", "s"),
    "FUNCTION": ("f", "f"),
    "TYPE": ("T", "T"),
    "SCHEMA": ("n", "n"),
}
# Key: owner, schema (empty for all), both letters. A row that is not there means PostgreSQL's own defaults; those of
# one schema only add to those of all schemas.
DEFAULT_ACLS: Final = Catalog(
    "default privileges",
    {
        0: f"""
SELECT k.key, json_build_object('version', {VERSION_COLUMN}, 'objects', json_build_array(json_build_array(
    r.rolname, to_json(coalesce(a.defaclacl, CASE WHEN (k.key::json->>1) = '' THEN
        acldefault((k.key::json->>3)::"char", r.oid) ELSE '{{}}'::aclitem[] END)::text[]), '{{}}'::json, r.rolname
    )))::text
FROM unnest(%s::text[]) AS k(key) JOIN pg_roles r ON r.rolname = (k.key::json->>0)
    LEFT JOIN pg_namespace n ON n.nspname = (k.key::json->>1)
    LEFT JOIN pg_default_acl a ON a.defaclrole = r.oid AND a.defaclobjtype = (k.key::json->>2)::"char"
        AND a.defaclnamespace = coalesce(n.oid, 0)
WHERE (k.key::json->>1) = '' OR n.oid IS NOT NULL"""
    },
)
