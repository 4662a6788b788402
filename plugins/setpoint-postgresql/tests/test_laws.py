"""Laws: no name breaks out of its statement, and access control lists survive their text."""

from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg import sql

from postgres_server import PostgresServer
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import (
    LETTERS,
    PUBLIC,
    AclChange,
    AclItem,
    HeldPrivileges,
    acl_change,
    applied,
    held_by,
    parse_item,
    render_item,
)
from setpoint_postgresql.catalogs import ACLS, key_of
from setpoint_postgresql.privileges import LivePrivilege, ObjectAcls, privilege_statements, read_acls
from setpoint_postgresql.server import Server, is_name, parse_location, render_location

pytestmark = pytest.mark.laws

# Any name that PostgreSQL takes: up to 63 bytes, with quotes, backslashes, dollars, semicolons, any Unicode.
_CHARACTERS = st.one_of(
    st.sampled_from("\"'`\\;-/*$%{}()= .,\n\tAZ_09ß€\U0001f600"),
    st.characters(exclude_characters="\0", codec="utf-8"),
)
NAMES = st.text(_CHARACTERS, min_size=1, max_size=63).filter(is_name)
ROLES = NAMES.filter(lambda name: name != PUBLIC)
PRIVILEGE_SETS = st.frozensets(st.sampled_from(sorted(LETTERS.values())))


@st.composite
def held(draw: st.DrawFn) -> HeldPrivileges:
    """Some privileges, and those of them that can be granted on."""
    privileges = draw(PRIVILEGE_SETS)
    return HeldPrivileges(
        privileges, draw(st.frozensets(st.sampled_from(sorted(privileges)))) if privileges else privileges
    )


@st.composite
def acl_items(draw: st.DrawFn) -> AclItem:
    """Any item of an access control list."""
    own = draw(held())
    return AclItem(draw(NAMES), own.privileges, own.grantable, draw(NAMES))


@given(acl_items())
@example(AclItem('a"b=/*c', frozenset(("SELECT",)), frozenset(), "x/y=z"))
@example(AclItem(PUBLIC, frozenset(("USAGE",)), frozenset(("USAGE",)), "o"))
def test_an_item_is_what_its_text_says(item: AclItem) -> None:
    assert parse_item(render_item(item)) == item


@given(held(), held())
def test_a_change_leads_from_what_is_held_to_what_is_wanted(before: HeldPrivileges, after: HeldPrivileges) -> None:
    assert applied(before, acl_change(before, after)) == after


@given(held())
def test_what_is_held_already_needs_no_change(before: HeldPrivileges) -> None:
    nothing = frozenset[str]()

    assert acl_change(before, before) == AclChange(nothing, nothing, nothing, nothing)


@given(st.lists(acl_items(), max_size=5), NAMES)
def test_a_grantee_holds_what_any_grantor_gave_it(items: Sequence[AclItem], grantee: str) -> None:
    found = held_by(grantee, items)

    assert found.privileges == {one for item in items if item.grantee == grantee for one in item.privileges}
    assert found.grantable <= found.privileges


@given(st.lists(NAMES, max_size=5))
def test_a_list_of_names_is_what_its_setting_says(names: list[str]) -> None:
    setting = ", ".join('"' + name.replace('"', '""') + '"' for name in names)

    assert ddl.parse_names(setting) == names


@given(NAMES, st.integers(1, 65535), st.lists(NAMES, min_size=1, max_size=6))
def test_a_location_has_the_names_that_it_was_made_from(host: str, port: int, names: list[str]) -> None:
    address = parse_location(render_location(Server(host, port), *names))

    assert address is not None
    assert (address.host, address.port, list(address.parts)) == (host, port, names)


# --- On the server: it decides what a statement says ------------------------------------------------------------------


@given(name=NAMES, text=st.text(_CHARACTERS, max_size=40))
@example(name='x"; DROP ROLE postgres; --', text="'; DROP ROLE postgres; --")
@example(name="$$; SELECT 1/0; $$", text="\\'; SELECT 1/0; --")
def test_the_server_reads_every_name_and_text_as_it_was_written(postgres: PostgresServer, name: str, text: str) -> None:
    statement = sql.SQL("SELECT {text} AS {name}").format(text=sql.Literal(text), name=ddl.name(name))
    cursor = postgres.session().execute(statement)

    assert [column.name for column in cursor.description or ()] == [name]
    assert cursor.fetchone() == (text,)


@given(
    role=ROLES.filter(lambda name: not name.startswith("pg_") and name != "none"),
    comment=st.text(_CHARACTERS, max_size=40),
)
@example(role='r" SUPERUSER; --', comment="'; ALTER ROLE postgres NOLOGIN; --")
def test_a_role_gets_exactly_its_name_its_comment_and_no_more(
    postgres: PostgresServer, role: str, comment: str
) -> None:
    with postgres.connect() as connection, connection.transaction(force_rollback=True):
        before = set(connection.execute("SELECT rolname FROM pg_roles").fetchall())
        if (role,) in before:
            return
        for statement in (ddl.create_role(role, {}, None), ddl.comment("ROLE", [role], comment)):
            connection.execute(statement)
        query = "SELECT rolname, rolsuper, coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles"
        after = set(connection.execute(query).fetchall())

    assert {one for one in after if (one[0],) not in before} == {(role, False, comment)}
    assert {(one[0],) for one in after} == {*before, (role,)}


@given(schema=NAMES.filter(lambda name: not name.startswith("pg_")), table=NAMES, column=NAMES, role=ROLES)
@example(schema='a"b', table="c.d", column='e", "f', role='g" WITH GRANT OPTION; --')
def test_a_grant_is_read_back_as_it_was_made(
    postgres: PostgresServer, schema: str, table: str, column: str, role: str
) -> None:
    wanted = [LivePrivilege("INSERT", True), LivePrivilege("SELECT", False, [column])]
    connection = postgres.session()
    # A name of the server itself, such as that of a system column, proves nothing.
    taken = (psycopg.errors.DuplicateSchema, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateColumn)
    try:
        with connection.transaction(force_rollback=True):
            found = _granted(connection, wanted, names=(schema, table), column=column, role=role)
    except (*taken, psycopg.errors.ReservedName):
        return

    (one,) = found.objects
    assert one.of(role) == HeldPrivileges(frozenset(("INSERT",)), frozenset(("INSERT",)))
    assert one.columns_with("SELECT", role) == {column: False}


def _granted(
    connection: "psycopg.Connection[tuple[object, ...]]",
    wanted: Sequence[LivePrivilege],
    *,
    names: tuple[str, str],
    column: str,
    role: str,
) -> ObjectAcls:
    connection.execute(ddl.create_role(role, {}, None))
    connection.execute(ddl.create_schema(names[0], None))
    table = sql.SQL("CREATE TABLE {} ({} integer)").format(ddl.name(*names), ddl.name(column))
    connection.execute(table)
    target = ddl.object_target("TABLE", names)
    statements = privilege_statements(
        [], wanted, lambda change, columns: ddl.grant_statements(target, role, change, columns)
    )
    for statement in statements:
        connection.execute(statement)
    catalog = ACLS["TABLE", False]
    keyed = connection.execute(catalog.texts[0].encode(), [[key_of(*names)]]).fetchall()
    assert [row[0] for row in keyed] == [key_of(*names)]
    return read_acls(str(keyed[0][1]).encode())
