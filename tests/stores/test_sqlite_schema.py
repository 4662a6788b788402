"""Migrations from an older version of the file."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from setpoint.errors import StoreError
from setpoint.stores.sqlite.schema import MIGRATIONS, SCRUB, SEAL, Migration, migrate, require_readable

PATH = Path("state.db")
FIRST: Migration = ("CREATE TABLE numbers (n)", "INSERT INTO numbers VALUES (1)")
SECOND: Migration = ("ALTER TABLE numbers ADD COLUMN m", "UPDATE numbers SET m = n + 1")
BROKEN: Migration = ("CREATE TABLE more (n)", "INSERT INTO nowhere VALUES (1)")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        yield opened


def version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def test_a_file_gets_the_missing_migrations(connection: sqlite3.Connection) -> None:
    migrate(connection, PATH, [FIRST])
    migrate(connection, PATH, [FIRST, SECOND])

    assert connection.execute("SELECT n, m FROM numbers").fetchall() == [(1, 2)]
    assert version_of(connection) == 2


def test_a_file_that_is_up_to_date_is_left_as_it_is(connection: sqlite3.Connection) -> None:
    migrate(connection, PATH, [FIRST])
    migrate(connection, PATH, [FIRST])

    assert connection.execute("SELECT n FROM numbers").fetchall() == [(1,)]


def test_a_failed_migration_rolls_back_all_of_them(connection: sqlite3.Connection) -> None:
    migrate(connection, PATH, [FIRST])

    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
        migrate(connection, PATH, [FIRST, SECOND, BROKEN])

    assert version_of(connection) == 1
    assert connection.execute("SELECT * FROM numbers").fetchall() == [(1,)]
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)


@pytest.fixture
def sealed(connection: sqlite3.Connection) -> list[tuple[int, bool]]:
    """The version at which values were encrypted, and whether in a transaction."""
    return []


def seal_into(sealed: list[tuple[int, bool]], connection: sqlite3.Connection) -> Callable[[], None]:
    return lambda: sealed.append((version_of(connection), connection.in_transaction))


def test_a_new_file_has_nothing_to_encrypt(connection: sqlite3.Connection, sealed: list[tuple[int, bool]]) -> None:
    migrate(connection, PATH, [FIRST, SEAL, SCRUB, SECOND], seal=seal_into(sealed, connection))

    assert (sealed, version_of(connection)) == ([], 4)


def test_an_older_file_is_encrypted_once_together_with_what_is_missing(
    connection: sqlite3.Connection, sealed: list[tuple[int, bool]]
) -> None:
    migrate(connection, PATH, [FIRST])
    for _ in range(2):
        migrate(connection, PATH, [FIRST, SEAL, SCRUB, SECOND], seal=seal_into(sealed, connection))

    assert sealed == [(1, True)]
    assert connection.execute("SELECT n, m FROM numbers").fetchall() == [(1, 2)]
    assert version_of(connection) == 4


def test_a_file_that_cannot_be_encrypted_is_left_as_it_is(connection: sqlite3.Connection) -> None:
    def fail() -> None:
        connection.execute("DELETE FROM numbers")
        raise StoreError("the key is missing")

    migrate(connection, PATH, [FIRST])
    with pytest.raises(StoreError, match="the key is missing"):
        migrate(connection, PATH, [FIRST, SEAL, SCRUB], seal=fail)

    assert connection.execute("SELECT n FROM numbers").fetchall() == [(1,)]
    assert (version_of(connection), connection.in_transaction) == (1, False)


def test_the_error_of_a_reader_of_an_older_file_says_how_to_migrate_it(connection: sqlite3.Connection) -> None:
    migrate(connection, PATH, [FIRST])

    with pytest.raises(StoreError, match=r"^state\.db has version 1, and this setpoint reads version 2: any command"):
        require_readable(connection, PATH, [FIRST, SECOND], oldest=2)


def test_a_new_file_has_every_table(connection: sqlite3.Connection) -> None:
    migrate(connection, PATH)

    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    assert [name for (name,) in tables] == ["bodies", "history", "journal", "leases", "notes", "resources", "sets"]
    assert version_of(connection) == len(MIGRATIONS)
