"""A real API server for tests, as a pytest plugin: fixtures, a marker, and a summary of skipped tests."""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NoReturn, Protocol, TypeAlias, TypeVar

import pytest

from tests.cluster.access import Access, close_idle_connections
from tests.cluster.assets import Assets, Missing, are_there
from tests.cluster.children import last_lines
from tests.cluster.server import Cluster, Settings
from tests.cluster.shared_server import Coordinator, SharedServer, WorkerClient

NEEDS_CLUSTER: Final = "needs_cluster"
_ROOT_FIXTURES: Final = frozenset({"cluster_assets", "api_server", "other_api_server"})
_SHARED: Final = pytest.StashKey[SharedServer]()
_ADDRESS: Final = "cluster_coordinator"
_HAS_PROGRAMS: Final = "cluster_has_programs"

T = TypeVar("T")
NewApiServer: TypeAlias = Callable[[Settings], Cluster]


class WorkerNode(Protocol):
    """A worker of pytest-xdist before it starts; pytest-xdist has no types."""

    config: pytest.Config
    workerinput: dict[str, object]


@pytest.fixture(scope="session")
def cluster_assets(pytestconfig: pytest.Config) -> Assets:
    """The programs of a real API server."""
    return _required(pytestconfig.stash[_SHARED].assets())


@pytest.fixture(scope="session")
def api_server(pytestconfig: pytest.Config) -> Access:
    """The API server that all tests share, with a controller manager if there is one: use a namespace of your own."""
    return _required(pytestconfig.stash[_SHARED].server())


@pytest.fixture(scope="session")
def other_api_server(pytestconfig: pytest.Config) -> Access:
    """A second API server that tests share: another cluster, for tests that need two. It has no controller manager."""
    return _required(pytestconfig.stash[_SHARED].other_server())


@pytest.fixture
def namespace(api_server: Access) -> str:
    """The name of a new namespace of the shared API server.

    It is not deleted: that takes more than a hundred requests, one for each kind. It goes with the server.
    """
    return api_server.new_namespace()


@pytest.fixture
def new_api_server(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewApiServer]:
    """Starts an API server of the test's own with these settings."""
    with ExitStack() as running:
        yield lambda settings: running.enter_context(
            Cluster(cluster_assets, tmp_path_factory.mktemp("cluster"), settings)
        )


@pytest.fixture
def own_api_server(new_api_server: NewApiServer) -> Cluster:
    """An API server of the test's own, which it may kill, freeze and restart."""
    return new_api_server(Settings())


def is_required(environment: Mapping[str, str]) -> bool:
    """Whether a test that finds no API server has failed: where a skip would go unnoticed."""
    return any(
        environment.get(name, "0").lower() not in ("", "0", "false") for name in ("CI", "SETPOINT_REQUIRE_CLUSTER")
    )


def pytest_configure(config: pytest.Config) -> None:
    """The shared server is started by the process that was started first: xdist workers connect to it."""
    config.addinivalue_line("markers", f"{NEEDS_CLUSTER}: runs on a real API server; set for tests that use one")
    address = getattr(config, "workerinput", {}).get(_ADDRESS)
    shared = WorkerClient(address) if address else Coordinator(lambda line: _write_line(config, line))
    config.stash[_SHARED] = shared
    # Where kubectl keeps the kinds of a server by its port, which an earlier server may have had.
    os.environ["KUBECACHEDIR"] = str(shared.folder / "kubectl-cache")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    """Passes the address of the coordinator to a worker."""
    host = node.config.stash[_SHARED]
    assert isinstance(host, Coordinator)
    node.workerinput[_ADDRESS] = host.listen()
    node.workerinput[_HAS_PROGRAMS] = are_there(os.environ)


def has_programs(config: pytest.Config) -> bool:
    """Whether the programs are there without a build: the same in all workers."""
    return bool(getattr(config, "workerinput", {}).get(_HAS_PROGRAMS))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that need an API server and sorts them last: meanwhile the programs may be built."""
    for item in items:
        if _ROOT_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(NEEDS_CLUSTER)
    items.sort(key=lambda item: item.get_closest_marker(NEEDS_CLUSTER) is not None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts to find or build the programs, if any selected test needs them."""
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker(NEEDS_CLUSTER) for item in session.items):
        session.config.stash[_SHARED].begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a failure shows the last log lines of the servers."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            access = value.access if isinstance(value, Cluster) else value
            if isinstance(access, Access):
                report.sections += [(log.name, last_lines(log)) for log in sorted(access.folder.glob("*.log"))]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Prints how many tests were skipped for want of an API server, as the last lines."""
    yield
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if NEEDS_CLUSTER in report.keywords]
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.ensure_newline()
        terminalreporter.section("no API server", sep="!", red=True, bold=True)
    for reason, count in reasons.items():
        text = f"{count} tests on a real API server were skipped: {reason}"
        terminalreporter.write_line(text, red=True, bold=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Cancels a build, for instance after Ctrl-C: a worker that waits for it would block the end of the run."""
    shared = session.config.stash[_SHARED]
    if isinstance(shared, Coordinator):
        shared.cancel()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stops the shared servers."""
    close_idle_connections()
    shared = config.stash.get(_SHARED, None)
    if isinstance(shared, Coordinator):
        shared.close()


@pytest.fixture(scope="session")
def kubectl_program(cluster_assets: Assets) -> Path:
    """The program kubectl."""
    if cluster_assets.kubectl is None:
        _skip_or_fail("there is no kubectl: put one on the PATH")
    return cluster_assets.kubectl


@pytest.fixture(scope="session")
def controllers(api_server: Access) -> None:
    """A controller manager empties deleted namespaces, collects objects without owners, and aggregates roles.

    Assets for tests mostly come without one: such a test is skipped even where an API server is required.
    """
    require_controllers(api_server)


def require_controllers(server: Access) -> None:
    """Skips where there is no controller manager."""
    if not server.has_controllers:
        pytest.skip("there is no kube-controller-manager beside the API server")


def _required(found: T | Missing) -> T:
    if isinstance(found, Missing):
        _skip_or_fail(found.reason)
    return found


def _skip_or_fail(reason: str) -> NoReturn:
    if is_required(os.environ):
        pytest.fail(f"an API server is required here: {reason}", pytrace=False)
    pytest.skip(reason)


def _write_line(config: pytest.Config, line: str) -> None:
    if config.pluginmanager.has_plugin("terminalreporter"):
        writer = config.get_terminal_writer()
        # The line may already show the progress of tests.
        if writer.width_of_current_line:
            writer.line()
        writer.line(line)
        writer.flush()
