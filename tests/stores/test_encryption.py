"""Encryption of Secrets at rest: bound to their resource, and lost without their key."""

import asyncio
import base64
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import StoreError
from setpoint.stores.sqlite.encryption import SecretCipher
from setpoint.stores.sqlite.store import OpenMode, SqliteStore, open_sqlite
from tests.engine.clock import FakeClock
from tests.stores.samples import SECRET_REF, instance, secret
from tests.stores.scratch import scratch_folder

PASSWORD = "correct horse battery staple"
OPENED = {"password": base64.b64encode(PASSWORD.encode()).decode()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def reopen(path: Path, loop: asyncio.Runner, clock: FakeClock, new_uid: Callable[[], str]) -> Callable[[], SqliteStore]:
    return lambda: loop.run(open_sqlite(path, clock, new_uid))


@pytest.fixture
def encrypted(reopen: Callable[[], SqliteStore], path: Path, loop: asyncio.Runner) -> Path:
    """A closed store with a Secret in it."""
    store = reopen()
    loop.run(store.apply(secret(stringData={"password": PASSWORD})))
    loop.run(store.close())
    return path


def key_of(path: Path) -> Path:
    return path.with_name("state.db.key")


def test_no_file_ever_holds_a_secret_in_plain_text(
    reopen: Callable[[], SqliteStore], path: Path, loop: asyncio.Runner
) -> None:
    store = reopen()
    created = loop.run(store.apply(secret(stringData={"password": PASSWORD})))
    loop.run(store.update_status(created, {"seen": True}))
    loop.run(store.apply(secret(stringData={"password": f"{PASSWORD}!"})))
    loop.run(store.delete(SECRET_REF))
    made = loop.run(store.create(secret(stringData={"password": PASSWORD})))
    loop.run(store.replace(made, secret(stringData={"password": f"{PASSWORD}?"})))
    loop.run(store.delete(SECRET_REF))
    loop.run(store.apply(secret(stringData={"password": PASSWORD})))
    while_open = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    loop.run(store.close())
    closed = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    assert {"state.db", "state.db-wal", "state.db.key"} <= set(while_open)
    for content in (*while_open.values(), *closed.values()):
        for clear in (PASSWORD.encode(), base64.b64encode(PASSWORD.encode())[:30], b"horse", b"password"):
            assert clear not in content


def test_an_encrypted_value_is_kept_when_the_store_is_reopened(
    encrypted: Path, reopen: Callable[[], SqliteStore], loop: asyncio.Runner
) -> None:
    store = reopen()

    found = loop.run(store.get(SECRET_REF))
    loop.run(store.close())

    assert found is not None
    assert found.document["data"] == OPENED


def test_the_key_is_accessible_to_its_owner_only_and_created_with_the_first_secret(
    reopen: Callable[[], SqliteStore], path: Path, loop: asyncio.Runner
) -> None:
    store = reopen()
    loop.run(store.apply(instance()))
    assert not key_of(path).exists()
    key_of(path).with_name("state.db.key.new").write_text("left by a process that was killed")

    loop.run(store.apply(secret(stringData={"a": "1"})))
    loop.run(store.close())

    assert (key_of(path).stat().st_mode & 0o777, key_of(path).stat().st_size) == (0o600, 32)
    assert not key_of(path).with_name("state.db.key.new").exists()


def test_a_key_that_is_readable_by_other_users_is_refused(encrypted: Path, reopen: Callable[[], SqliteStore]) -> None:
    key_of(encrypted).chmod(0o640)

    with pytest.raises(StoreError, match=r"state\.db\.key can be read by others \(mode 0640\): run chmod 600 on it"):
        reopen()


def test_a_missing_key_is_named(encrypted: Path, reopen: Callable[[], SqliteStore]) -> None:
    key_of(encrypted).unlink()

    with pytest.raises(StoreError, match=r"state\.db\.key is missing, and the store holds values encrypted with it"):
        reopen()


def test_another_store_s_key_is_refused(encrypted: Path, reopen: Callable[[], SqliteStore]) -> None:
    key_of(encrypted).write_bytes(bytes(32))

    with pytest.raises(StoreError, match=r"state\.db\.key is not the key of this store"):
        reopen()


def test_a_truncated_key_is_refused(encrypted: Path, reopen: Callable[[], SqliteStore]) -> None:
    key_of(encrypted).write_bytes(bytes(16))

    with pytest.raises(StoreError, match=r"state\.db\.key is no key: it has 16 bytes instead of 32"):
        reopen()


def test_a_reader_that_was_opened_before_the_key_was_created_decrypts_secrets(
    reopen: Callable[[], SqliteStore],
    path: Path,
    loop: asyncio.Runner,
    clock: FakeClock,
    new_uid: Callable[[], str],
) -> None:
    store = reopen()
    reader = loop.run(open_sqlite(path, clock, new_uid, OpenMode.READ))

    loop.run(store.apply(secret(stringData={"password": PASSWORD})))
    found = loop.run(reader.get(SECRET_REF))
    loop.run(reader.close())
    loop.run(store.close())

    assert found is not None
    assert found.document["data"] == OPENED


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE bodies SET sealed = (SELECT sealed FROM bodies ORDER BY id DESC LIMIT 1)",
        "UPDATE resources SET name = 'login' WHERE name = 'other'",
        "UPDATE resources SET uid = 'uid-9' WHERE name = 'other'",
    ],
)
def test_a_value_moved_to_another_resource_cannot_be_decrypted(
    reopen: Callable[[], SqliteStore], path: Path, loop: asyncio.Runner, tampering: str
) -> None:
    store = reopen()
    for name in ("first", "other"):
        loop.run(store.apply({**secret(stringData={"password": name}), "metadata": {"name": name}}))
    loop.run(store.close())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(tampering)
        connection.commit()

    store = reopen()
    with pytest.raises(StoreError, match="an encrypted value was changed on disk, or moved to another resource"):
        loop.run(store.list())
    loop.run(store.close())


@pytest.mark.laws
@given(st.binary(), st.binary(), st.binary())
def test_a_value_is_decrypted_with_its_associated_data_and_no_other(plain: bytes, bound: bytes, other: bytes) -> None:
    with scratch_folder() as folder:
        encrypted = SecretCipher(folder / "key").encrypt(plain, bound)
        again = SecretCipher(folder / "key")

        assert again.decrypt(encrypted, bound) == plain
        assert again.encrypt(plain, bound) != encrypted
        if other != bound:
            with pytest.raises(StoreError):
                again.decrypt(encrypted, other)


@pytest.mark.laws
@given(st.binary(min_size=1), st.data())
def test_no_byte_of_an_encrypted_value_can_change(plain: bytes, data: st.DataObject) -> None:
    with scratch_folder() as folder:
        cipher = SecretCipher(folder / "key")
        encrypted = bytearray(cipher.encrypt(plain, b"bound"))
        encrypted[data.draw(st.integers(0, len(encrypted) - 1))] ^= data.draw(st.integers(1, 255))

        with pytest.raises(StoreError):
            cipher.decrypt(bytes(encrypted), b"bound")
