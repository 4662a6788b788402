"""The socket of the process that owns a store: its path, and its owner."""

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from setpoint.clients.admin_api import MAX_SOCKET_PATH, find_socket, prepare_socket, remove_socket, socket_link
from setpoint.errors import StoreError


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def _store(folder: Path, name: str = "state.db") -> Path:
    store = folder / name
    store.touch()
    return store


@contextmanager
def listening(store: Path, **environment: str) -> Iterator[Path]:
    """The address of a process that listens for the store."""
    address = prepare_socket(store, environment)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        yield address


@pytest.mark.parametrize("left", ["socket", "file", "link"])
def test_the_socket_of_a_killed_process_is_replaced(folder: Path, left: str) -> None:
    store, killed = _store(folder), socket.socket(socket.AF_UNIX)
    with killed:
        if left == "socket":
            killed.bind(str(socket_link(store)))
        elif left == "file":
            socket_link(store).touch()
        else:
            socket_link(store).symlink_to(folder / "nowhere")

    with listening(store), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(socket_link(store)))


@pytest.mark.parametrize("runtime", ["runtime", "nowhere"])
def test_a_long_path_is_a_link_to_a_short_one(folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: str) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    (folder / "runtime").mkdir()
    deep = folder / ("d" * 100)
    deep.mkdir()
    store = _store(deep)

    with listening(store, XDG_RUNTIME_DIR=str(folder / runtime)) as address:
        found = find_socket(store)
    remove_socket(store)

    above = folder / runtime if runtime == "runtime" else folder
    assert found == address
    assert address.parent == above / f"setpoint-{os.geteuid()}"
    assert stat.S_IMODE(address.parent.stat().st_mode) == 0o700
    assert len(str(address)) <= MAX_SOCKET_PATH < len(str(socket_link(store)))
    assert [one.name for one in (*deep.iterdir(), *address.parent.iterdir())] == ["state.db"]


def test_a_folder_that_another_user_can_write_to_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    (folder / f"setpoint-{os.geteuid()}").mkdir()
    (folder / f"setpoint-{os.geteuid()}").chmod(0o777)
    (folder / ("d" * 100)).mkdir()

    with pytest.raises(StoreError, match="is not this user's alone"):
        prepare_socket(_store(folder / ("d" * 100)), {})


def test_a_path_that_cannot_be_removed_is_a_store_error(folder: Path) -> None:
    store = _store(folder)
    socket_link(store).mkdir()

    with pytest.raises(StoreError, match="cannot listen on"):
        prepare_socket(store, {})


@pytest.mark.parametrize("there", ["nothing", "file"])
def test_no_process_is_found_where_there_is_no_socket(folder: Path, there: str) -> None:
    store = _store(folder)
    if there == "file":
        socket_link(store).touch()

    assert find_socket(store) is None


def test_a_socket_of_another_user_is_not_connected_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = _store(folder)
    seen = Path.lstat

    def as_another_users(path: Path) -> os.stat_result:
        found = list(seen(path))
        found[stat.ST_UID] = 65534
        return os.stat_result(found)

    with listening(store):
        ours = find_socket(store)
        monkeypatch.setattr(Path, "lstat", as_another_users)

        assert (ours, find_socket(store)) == (socket_link(store), None)
