"""What pytest does with tests that need an API server, seen from outside: in a pytest of its own."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.assets import Assets
from tests.cluster.children import GONE, state
from tests.cluster.fixtures import is_required
from tests.cluster.polling import until
from tests.cluster.fake_go import write_go

_HEAR_CTRL_C = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
_NOTHING = "def test_something() -> None: ...\n"
_ONE_OF_EACH = f"""
def test_of_objects(api_server, namespace): ...
{_NOTHING}
def test_of_outages(own_api_server): ...
"""
_SHARED = """
import pytest

@pytest.mark.parametrize("turn", range(4))
def test_who_runs_it_and_where(api_server, namespace, worker_id, turn):
    assert api_server.url == f"told by {worker_id}"
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for what a killed process leaves behind, its name short enough for sockets in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _command(folder: Path, tests: str, *arguments: str) -> list[str]:
    (folder / "test_given.py").write_text(tests, encoding="utf-8")
    settings = ["-c", str(Path("pyproject.toml").absolute()), "-p", "no:cacheprovider", "-p", "tests.cluster.fixtures"]
    return [sys.executable, "-m", "pytest", *settings, *arguments, str(folder)]


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "SETPOINT_REQUIRE_CLUSTER")}
    return {**kept, **more}


def _pytest(folder: Path, tests: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        _command(folder, tests, *arguments),
        capture_output=True,
        text=True,
        check=False,
        env=_environment(**environment),
    )
    return done.stdout + done.stderr


def _without_programs(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder), "XDG_CACHE_HOME": str(folder), "KUBEBUILDER_ASSETS": ""}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_they_are_skipped_where_there_is_none_and_the_end_says_so_loudly(tmp_path: Path, processes: str) -> None:
    shown = _pytest(tmp_path, _ONE_OF_EACH, "-n", processes, **_without_programs(tmp_path))

    assert "1 passed, 2 skipped" in shown
    assert re.search(r"^!+ no API server !+\n2 tests on a real API server were skipped: there are no ", shown, re.M)


def test_they_fail_where_one_is_required(tmp_path: Path) -> None:
    shown = _pytest(tmp_path, _ONE_OF_EACH, SETPOINT_REQUIRE_CLUSTER="1", **_without_programs(tmp_path))

    assert "1 passed, 2 errors" in shown
    assert "an API server is required here: there are no kube-apiserver and etcd, and no Go to build them" in shown


def test_nothing_is_said_when_no_test_needs_one(tmp_path: Path) -> None:
    assert "API server" not in _pytest(tmp_path, _NOTHING, **_without_programs(tmp_path))


def test_they_are_marked_and_come_last(tmp_path: Path) -> None:
    collect = ("--collect-only", "--quiet")
    everything = _pytest(tmp_path, _ONE_OF_EACH, *collect)
    marked = _pytest(tmp_path, _ONE_OF_EACH, *collect, "-m", "needs_cluster")

    assert re.findall(r"::(\w+)", everything) == ["test_something", "test_of_objects", "test_of_outages"]
    assert re.findall(r"::(\w+)", marked) == ["test_of_objects", "test_of_outages"]


def test_all_processes_share_one_server_and_a_failure_shows_what_it_said(
    tmp_path: Path, cluster_assets: Assets
) -> None:
    shown = _pytest(tmp_path, _SHARED, "-n", "2", KUBEBUILDER_ASSETS=str(cluster_assets.etcd.parent))

    assert len(set(re.findall(r"'(https://127\.0\.0\.1:\d+)' == 'told by gw\d'", shown))) == 1
    assert set(re.findall(r"told by (gw\d)'", shown)) == {"gw0", "gw1"}
    assert re.search(r"^-+ kube-apiserver\.log -+$", shown, re.M)


def test_they_wait_for_programs_that_have_to_be_built(tmp_path: Path, cluster_assets: Assets) -> None:
    copy = f"cp {cluster_assets.kube_apiserver} bin/; cp {cluster_assets.etcd} bin/server"
    go = write_go(tmp_path / "go", copy)
    environment = _without_programs(tmp_path) | {"PATH": f"{go.parent}:/usr/bin:/bin"}
    shown = _pytest(tmp_path, _ONE_OF_EACH, "-n", "2", **environment)

    assert "3 passed" in shown
    assert re.search(r"^Building Kubernetes (.|\n)+^Built Kubernetes ", shown, re.M)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_does_not_outlive_the_tests(tmp_path: Path, short_path: Path, number: signal.Signals) -> None:
    begun = tmp_path / "begun"
    go = write_go(tmp_path / "go", f"echo $$ > {begun}; mv {begun} {begun}.all; exec sleep 600")
    places = {"PATH": f"{go.parent}:/usr/bin:/bin", "TMPDIR": str(short_path)}
    environment = _environment(**_without_programs(tmp_path) | places)
    command = _command(tmp_path, _ONE_OF_EACH, "-n", "2")
    # A test run in the background ignores Ctrl-C, and so would all processes that it starts.
    hear = [sys.executable, "-c", _HEAR_CTRL_C]
    with subprocess.Popen([*hear, *command], stdout=subprocess.DEVNULL, env=environment) as running:
        until((tmp_path / "begun.all").exists)
        pid = int((tmp_path / "begun.all").read_text("utf-8"))
        running.send_signal(number)

    until(lambda: state(pid) in GONE)


@pytest.mark.parametrize(
    ("environment", "required"),
    [
        ({}, False),
        ({"CI": ""}, False),
        ({"CI": "false"}, False),
        ({"SETPOINT_REQUIRE_CLUSTER": "0"}, False),
        ({"CI": "true"}, True),
        ({"SETPOINT_REQUIRE_CLUSTER": "1"}, True),
    ],
)
def test_one_is_required_in_ci_or_when_configured(environment: dict[str, str], required: bool) -> None:
    assert is_required(environment) is required
