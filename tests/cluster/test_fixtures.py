"""The pytest plugin for tests that need an API server, run in a pytest process of its own."""

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
from tests.cluster.fake_go import GOOD_BUILD, write_go
from tests.cluster.fixtures import is_required
from tests.cluster.polling import until

_WITH_DEFAULT_SIGINT = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)
_NO_CLUSTER = "def test_something() -> None: ...\n"
_ONE_OF_EACH = f"""
def test_of_objects(api_server, namespace): ...
{_NO_CLUSTER}
def test_of_outages(own_api_server): ...
"""
_NEEDS_PROGRAMS = f"""
def test_programs(cluster_assets): assert cluster_assets.kube_apiserver.exists()
{_NO_CLUSTER}
"""
_SHARED = """
import pytest

@pytest.mark.parametrize("turn", range(4))
def test_url_and_worker(api_server, namespace, worker_id, turn):
    assert api_server.url == f"used by {worker_id}"
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for the files of a killed process, with a path that is short enough for sockets."""
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
def test_tests_are_skipped_without_an_api_server_and_the_summary_says_so(tmp_path: Path, processes: str) -> None:
    shown = _pytest(tmp_path, _ONE_OF_EACH, "-n", processes, **_without_programs(tmp_path))

    assert "1 passed, 2 skipped" in shown
    assert re.search(r"^!+ no API server !+\n2 tests on a real API server were skipped: there are no ", shown, re.M)


def test_tests_fail_where_an_api_server_is_required(tmp_path: Path) -> None:
    shown = _pytest(tmp_path, _ONE_OF_EACH, SETPOINT_REQUIRE_CLUSTER="1", **_without_programs(tmp_path))

    assert "1 passed, 2 errors" in shown
    assert "an API server is required here: there are no kube-apiserver and etcd, and no Go to build them" in shown


def test_the_summary_is_silent_when_no_test_needs_an_api_server(tmp_path: Path) -> None:
    assert "API server" not in _pytest(tmp_path, _NO_CLUSTER, **_without_programs(tmp_path))


def test_tests_that_need_an_api_server_are_marked_and_sorted_last(tmp_path: Path) -> None:
    collect = ("--collect-only", "--quiet")
    everything = _pytest(tmp_path, _ONE_OF_EACH, *collect)
    marked = _pytest(tmp_path, _ONE_OF_EACH, *collect, "-m", "needs_cluster")

    assert re.findall(r"::(\w+)", everything) == ["test_something", "test_of_objects", "test_of_outages"]
    assert re.findall(r"::(\w+)", marked) == ["test_of_objects", "test_of_outages"]


def test_all_workers_share_one_api_server_and_a_failure_shows_its_log(tmp_path: Path, cluster_assets: Assets) -> None:
    shown = _pytest(tmp_path, _SHARED, "-n", "2", KUBEBUILDER_ASSETS=str(cluster_assets.etcd.parent))

    assert len(set(re.findall(r"'(https://127\.0\.0\.1:\d+)' == 'used by gw\d'", shown))) == 1
    assert set(re.findall(r"used by (gw\d)'", shown)) == {"gw0", "gw1"}
    assert re.search(r"^-+ kube-apiserver\.log -+$", shown, re.M)


def test_tests_wait_until_the_programs_are_built(tmp_path: Path) -> None:
    go = write_go(tmp_path / "go", GOOD_BUILD)
    environment = _without_programs(tmp_path) | {"PATH": f"{go.parent}:/usr/bin:/bin"}
    shown = _pytest(tmp_path, _NEEDS_PROGRAMS, "-n", "2", **environment)

    assert "2 passed" in shown
    assert re.search(r"^Building Kubernetes (.|\n)+^Built Kubernetes ", shown, re.M)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_does_not_outlive_the_tests(tmp_path: Path, short_path: Path, number: signal.Signals) -> None:
    begun = tmp_path / "begun"
    go = write_go(tmp_path / "go", f"echo $$ > {begun}; mv {begun} {begun}.all; exec sleep 600")
    places = {"PATH": f"{go.parent}:/usr/bin:/bin", "TMPDIR": str(short_path)}
    environment = _environment(**_without_programs(tmp_path) | places)
    command = _command(tmp_path, _ONE_OF_EACH, "-n", "2")
    # A shell starts background jobs with SIGINT ignored, and their children inherit that.
    with_sigint = [sys.executable, "-c", _WITH_DEFAULT_SIGINT]
    with subprocess.Popen([*with_sigint, *command], stdout=subprocess.DEVNULL, env=environment) as running:
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
def test_an_api_server_is_required_in_ci_or_when_configured(environment: dict[str, str], required: bool) -> None:
    assert is_required(environment) is required
