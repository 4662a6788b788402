"""`setpoint verify-upgrade --install`: pip installs the version that is missing, or no environment is left.

New environments get a link to the pip of this one, except in one test, which has pip installed as a user has.
"""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from setpoint import __version__
from tests.cli.programs import DEADLINE
from tests.cli.test_verify_upgrade import CHANGED, VERIFY
from tests.cli.versions import command_with_linked_pip, wheel, wheel_of
from tests.cli.workspace import Workspace, bucket, user_environment
from tests.forking.processes import SETPOINT

PIP = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_COMPILE": "1", "PIP_RETRIES": "0"}
INSTALL = (*VERIFY, "--install", "--candidate")
FOREIGN = "import pathlib; pathlib.Path({trace!r}).touch()\n"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with a recorded world, and with a folder in which pip finds packages."""
    folder = tmp_path_factory.mktemp("workspace")
    with Workspace(folder, {**user_environment(), **PIP, "PIP_FIND_LINKS": str(folder / "packages")}) as workspace:
        workspace.apply(bucket("logs"))
        workspace.run("record", "--to", "world.gz")
        workspace.command = str(command_with_linked_pip(folder / "command"))
        yield workspace


@pytest.fixture
def world(shared: Workspace) -> Iterator[Workspace]:
    """The same, without the environments of the test before."""
    versions = shared.folder / "versions"
    yield shared
    if versions.exists():
        # A process that was killed may still write there for a moment.
        versions.rename(shared.folder / f"gone-{len(list(shared.folder.iterdir()))}")


def left(workspace: Workspace) -> list[str]:
    versions = workspace.folder / "versions"
    return sorted(path.name for path in versions.iterdir()) if versions.exists() else []


def add_unfinished(workspace: Workspace, name: str, *, age: float) -> None:
    folder = workspace.folder / "versions" / name
    (folder / "0.2.0" / "bin").mkdir(parents=True)
    now = folder.stat().st_mtime
    os.utime(folder, (now - age, now - age))


@contextmanager
def unresponsive_index() -> Iterator[tuple[str, socket.socket]]:
    """The address of a package index that never answers, and its socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/", server


def is_closed(connection: socket.socket) -> bool:
    """Whether the client has exited: a connection says so when its other end is closed."""
    connection.settimeout(DEADLINE)
    while connection.recv(65_536):
        pass
    return True


def test_two_concurrent_commands_install_a_version_and_compare_it(world: Workspace) -> None:
    wheel_of(world.folder / "packages", "0.2.0", dict([CHANGED]))
    add_unfinished(world, ".unfinished-old", age=90_000)
    add_unfinished(world, ".unfinished-new", age=60)

    both = [world.piped(*INSTALL, "0.2.0", "--baseline", "this", "-o", "json") for _ in range(2)]

    assert [one.end() for one in both] == [2, 2]
    for one in both:
        report = json.loads(one.written)
        assert (report["candidate"], report["verdict"]) == ("0.2.0", "new writes")
        assert report["resources"][0]["fields"] == ["spec.storageClass"]
    assert left(world) == [".unfinished-new", "0.2.0"]
    assert_installed_version_is_reused(world)


def assert_installed_version_is_reused(world: Workspace) -> None:
    again = world.run(*INSTALL, "0.2.0", "--baseline", "0.2.0,StorageBucket=stateless", PIP_FIND_LINKS="nowhere")
    version = world.run_program(str(world.folder / "versions" / "0.2.0" / "bin" / "setpoint"), "version")

    assert (again.returncode, again.stderr) == (0, "")
    assert version.stdout == "setpoint 0.2.0\n"


def test_a_version_that_pip_does_not_find_is_an_error_and_leaves_nothing(world: Workspace) -> None:
    wheel(world.folder / "packages", "9.8", {}, "")

    done = world.run_program(SETPOINT, *INSTALL, "this", "--baseline", "9.9")

    assert (done.returncode, done.stdout, left(world)) == (1, "", [])
    progress, error = done.stderr.splitlines()
    assert progress == "installing setpoint 9.9 into versions/9.9"
    assert error.startswith("error: 9.9: it cannot be installed: pip says: ERROR: Could not find a version that")
    assert "(from versions: " in error
    assert error.endswith(
        "9.8) ERROR: No matching distribution found for setpoint==9.9: name a version that pip finds, "
        "or make its environment by hand"
    )


def test_another_package_of_that_name_is_refused_before_any_of_its_code_is_run(world: Workspace) -> None:
    trace = world.folder / "trace"
    foreign = {"setpoint/__init__.py": "", "setpoint.pth": FOREIGN.format(trace=str(trace))}
    wheel(world.folder / "packages", "6.6", foreign, "[console_scripts]\nsetpoint = setpoint:main\n")

    done = world.run(*INSTALL, "6.6", "--baseline", "this")

    assert (done.returncode, done.stdout, left(world)) == (1, "", [])
    assert done.stderr.splitlines()[-1] == (
        "error: what pip installed is not setpoint 6.6: the command setpoint is not in it, so that it is another "
        "package of that name; it was not kept: check where pip takes its packages from"
    )
    assert not trace.exists()


def test_a_package_that_prints_another_version_is_not_kept(world: Workspace) -> None:
    wheel_of(world.folder / "packages", "7.7", {"__init__.py": (__version__, "7.6")})

    done = world.run(*INSTALL, "7.7", "--baseline", "this")

    assert (done.returncode, left(world)) == (1, [])
    assert "is not setpoint 7.7: it says that it is 7.6; it was not kept" in done.stderr


def test_ctrl_c_ends_pip_and_leaves_nothing(world: Workspace) -> None:
    with unresponsive_index() as (packages, server):
        command = world.terminal(*INSTALL, "5.5", "--baseline", "this", PIP_FIND_LINKS=packages)
        command.until_shown("installing setpoint 5.5 into versions/5.5")
        connection, _ = server.accept()
        command.interrupt()

        assert command.end() == 130
        with connection:
            assert is_closed(connection)
    assert left(world) == []


def test_a_killed_install_leaves_no_environment(world: Workspace) -> None:
    with unresponsive_index() as (packages, server):
        command = world.piped(*INSTALL, "5.5", "--baseline", "this", PIP_FIND_LINKS=packages)
        connection, _ = server.accept()
        command.send(signal.SIGKILL)
        command.end()
        connection.close()
    (rest,) = left(world)

    done = world.run(*VERIFY, "--baseline", "5.5")

    assert rest.startswith(".unfinished-")
    assert done.returncode == 1
    assert done.stderr.startswith("error: 5.5: neither a virtual environment nor a version in versions: add --install")


def test_only_versions_are_installed_and_nothing_is_overwritten(world: Workspace) -> None:
    place = Path(world.folder, "versions", "3.3")
    place.mkdir(parents=True)
    (place / "notes").touch()

    path = world.run(*INSTALL, "no/such", "--baseline", "8.8")
    taken = world.run(*INSTALL, "this", "--baseline", "3.3")

    assert path.stderr == "error: no/such: neither a virtual environment nor a version: name one of the two\n"
    assert taken.stderr.splitlines()[-1].endswith("versions/3.3 is there, and is no virtual environment: remove it")
    assert left(world) == ["3.3"]
