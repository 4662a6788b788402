"""A real API server for tests, as a plugin of pytest: fixtures, a marker, and a loud word when there is none."""

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NoReturn, Protocol, TypeAlias

import pytest

from tests.cluster.access import Access
from tests.cluster.assets import Assets, Missing, are_there
from tests.cluster.children import last_lines
from tests.cluster.server import Cluster, Settings
from tests.cluster.shared_server import Guest, Host, Sharing

NEEDS_CLUSTER: Final = "needs_cluster"
_ROOT_FIXTURES: Final = frozenset({"cluster_assets", "api_server"})
_SHARING: Final = pytest.StashKey[Sharing]()
_ADDRESS: Final = "cluster_host"
_HAS_PROGRAMS: Final = "cluster_has_programs"

NewApiServer: TypeAlias = Callable[[Settings], Cluster]


class WorkerNode(Protocol):
    """A process that will run tests, as pytest-xdist tells of it before it starts; it has no types of its own."""

    config: pytest.Config
    workerinput: dict[str, object]


@pytest.fixture(scope="session")
def cluster_assets(pytestconfig: pytest.Config) -> Assets:
    """The programs of a real API server."""
    found = pytestconfig.stash[_SHARING].assets()
    if isinstance(found, Missing):
        _do_without(found.reason)
    return found


@pytest.fixture(scope="session")
def api_server(pytestconfig: pytest.Config) -> Access:
    """The API server that all tests share, with its controllers if there are any: a test keeps to its namespace."""
    found = pytestconfig.stash[_SHARING].server()
    if isinstance(found, Missing):
        _do_without(found.reason)
    return found


@pytest.fixture
def namespace(api_server: Access) -> str:
    """The name of a namespace of the shared API server that is this test's own.

    It goes with the server: to empty it takes a hundred requests and more, one for each kind of object that there is.
    """
    return api_server.new_namespace()


@pytest.fixture
def new_api_server(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewApiServer]:
    """Starts an API server of the test's own, set as it likes."""
    with ExitStack() as running:
        yield lambda settings: running.enter_context(
            Cluster(cluster_assets, tmp_path_factory.mktemp("cluster"), settings)
        )


@pytest.fixture
def own_api_server(new_api_server: NewApiServer) -> Cluster:
    """An API server of the test's own, to be ended, frozen and started again; it remembers what it was told."""
    return new_api_server(Settings(fsync=True))


def is_required(environment: Mapping[str, str]) -> bool:
    """Whether a test that finds no API server has failed: where a skip would go unnoticed."""
    return any(
        environment.get(name, "0").lower() not in ("", "0", "false") for name in ("CI", "SETPOINT_REQUIRE_CLUSTER")
    )


def pytest_configure(config: pytest.Config) -> None:
    """Decides who finds the programs and runs the shared server: this process, or the one that started it."""
    config.addinivalue_line("markers", f"{NEEDS_CLUSTER}: runs on a real API server; set for tests that use one")
    address = getattr(config, "workerinput", {}).get(_ADDRESS)
    config.stash[_SHARING] = Guest(address) if address else Host(lambda line: _tell(config, line))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    """Tells a process that will run tests whom to ask."""
    host = node.config.stash[_SHARING]
    assert isinstance(host, Host)
    node.workerinput[_ADDRESS] = host.invite()
    node.workerinput[_HAS_PROGRAMS] = are_there(os.environ)


def has_programs(config: pytest.Config) -> bool:
    """Whether the programs are there already, and need not be built: the same in all processes that run tests."""
    return bool(getattr(config, "workerinput", {}).get(_HAS_PROGRAMS))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks who needs an API server, and puts them last: until then the programs may be built."""
    for item in items:
        if _ROOT_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(NEEDS_CLUSTER)
    items.sort(key=lambda item: item.get_closest_marker(NEEDS_CLUSTER) is not None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begins to look for the programs, if any test that is left to run needs them."""
    if session.config.option.collectonly:
        return
    if any(item.get_closest_marker(NEEDS_CLUSTER) for item in session.items):
        session.config.stash[_SHARING].begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure brings along what the servers said last."""
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            access = value.access if isinstance(value, Cluster) else value
            if isinstance(access, Access):
                report.sections += [(log.name, last_lines(log)) for log in sorted(access.folder.glob("*.log"))]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Says how many tests did not run for want of an API server: at the very end, where it is not overlooked."""
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
    """After Ctrl-C the programs are not needed any more; a process that waits for them would be waited for itself."""
    sharing = session.config.stash[_SHARING]
    if isinstance(sharing, Host):
        sharing.call_off()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends what was started for all tests."""
    sharing = config.stash.get(_SHARING, None)
    if isinstance(sharing, Host):
        sharing.close()


@pytest.fixture(scope="session")
def kubectl_program(cluster_assets: Assets) -> Path:
    """The program kubectl."""
    if cluster_assets.kubectl is None:
        _do_without("there is no kubectl: put one on the PATH")
    return cluster_assets.kubectl


@pytest.fixture(scope="session")
def controllers(api_server: Access) -> None:
    """A controller manager empties deleted namespaces, collects objects without owners, and aggregates roles.

    Sets of programs for tests mostly come without: then a skip is said at the end, also where a server is required.
    """
    require_controllers(api_server)


def require_controllers(server: Access) -> None:
    """Skips where there is no controller manager."""
    if not server.has_controllers:
        pytest.skip("there is no kube-controller-manager beside the API server")


def _do_without(reason: str) -> NoReturn:
    if is_required(os.environ):
        pytest.fail(f"an API server is required here: {reason}", pytrace=False)
    pytest.skip(reason)


def _tell(config: pytest.Config, line: str) -> None:
    if config.pluginmanager.has_plugin("terminalreporter"):
        writer = config.get_terminal_writer()
        # The dots of tests that have run may stand there.
        if writer.width_of_current_line:
            writer.line()
        writer.line(line)
        writer.flush()
