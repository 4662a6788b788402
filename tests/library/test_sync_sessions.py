"""A session without an event loop of the caller's: also where one is running, and with Ctrl-C."""

import asyncio
import inspect
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import setpoint
from setpoint import ResourceRef, ResultOutcome, Session, SyncSession
from setpoint.errors import StoreInUse, UserError
from setpoint.localcloud.server import LocalCloud
from tests.cli.workspace import Workspace, user_environment
from tests.library.worlds import bucket


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A local cloud in a thread."""
    with Workspace(tmp_path_factory.mktemp("cloud"), user_environment()) as workspace:
        yield workspace


@pytest.fixture
def cloud(shared: Workspace) -> Workspace:
    """The cloud, emptied."""
    shared.in_cloud(lambda cloud: cloud.reset())
    shared.in_cloud(lambda cloud: cloud.faults.clear())
    return shared


@contextmanager
def opened(cloud: Workspace, store: str | Path = "memory:") -> Iterator[SyncSession]:
    """A session on the cloud."""
    with setpoint.open_sync(store, environment=cloud.environment) as session:
        yield session


def test_it_goes_the_whole_way_from_a_plan_to_a_deletion(cloud: Workspace, tmp_path: Path) -> None:
    with opened(cloud, tmp_path / "state.db") as session:
        outcomes = [
            session.plan(bucket())[0].outcome,
            session.apply(bucket()).raise_for_failures()[0].outcome,
            session.reconcile("StorageBucket/logs")[0].outcome,
            session.wait("StorageBucket/logs")[0].outcome,
            session.delete("StorageBucket/logs")[0].outcome,
        ]

        assert outcomes == [
            *(ResultOutcome.CREATE, ResultOutcome.CREATED, ResultOutcome.UNCHANGED, ResultOutcome.UNCHANGED),
            ResultOutcome.DELETED,
        ]
        assert (len(session.list()), repr(session)) == (0, f"<session on sqlite:///{tmp_path}/state.db>")


def test_it_works_where_an_event_loop_is_running_as_in_a_notebook(cloud: Workspace) -> None:
    async def cell() -> bool:
        with opened(cloud) as session:
            session.apply(bucket())
            return session.get("StorageBucket/logs").is_ready

    assert asyncio.run(cell())


def test_it_has_every_method_of_a_session_with_the_same_arguments() -> None:
    left_out = {"reading", "preview_deletion", "is_running", "close"}
    for name, method in vars(Session).items():
        if name.startswith("_") or name in left_out:
            continue
        theirs, ours = inspect.signature(method).parameters, inspect.signature(getattr(SyncSession, name)).parameters

        assert set(theirs) - set(ours) <= {"stop"}, name
        assert {one: (ours[one].kind, ours[one].default) for one in ours} == {
            one: (theirs[one].kind, theirs[one].default) for one in ours
        }, name


def test_the_second_writer_gets_the_error_of_the_command(cloud: Workspace, tmp_path: Path) -> None:
    with opened(cloud, tmp_path / "state.db") as first, opened(cloud, tmp_path / "state.db") as second:
        first.apply(bucket())
        with pytest.raises(StoreInUse, match="is in use by process"):
            second.apply(bucket())


def test_a_closed_session_says_so_and_its_thread_has_ended(cloud: Workspace) -> None:
    before = set(threading.enumerate())
    with opened(cloud) as session:
        assert len(set(threading.enumerate()) - before) == 1
    session.close()

    assert set(threading.enumerate()) - before == set()
    with pytest.raises(UserError, match="the session is closed: open another one"):
        session.list()


class Interrupting(setpoint.CommandObserver):
    """Ctrl-C, as soon as a resource is being reconciled."""

    def expected(self, refs: Any) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_ctrl_c_cancels_the_call_and_a_later_one_goes_on(cloud: Workspace) -> None:
    cloud.hold_responses("/storage")
    with opened(cloud) as session:
        with pytest.raises(KeyboardInterrupt):
            session.apply(bucket(), observer=Interrupting())
        cloud.release()

        assert session.apply(bucket()).raise_for_failures().is_done


class Calling(setpoint.CommandObserver):
    """Calls its own session."""

    session: SyncSession

    def changed(self, ref: ResourceRef, state: Any) -> None:
        self.session.list()


def test_an_observer_that_calls_its_own_session_is_told_so(cloud: Workspace) -> None:
    with opened(cloud) as session:
        observer = Calling()
        observer.session = session
        with pytest.raises((UserError, ExceptionGroup)) as raised:
            session.apply(bucket(), observer=observer)

        assert "an observer cannot call its own session" in repr(raised.value) + str(
            getattr(raised.value, "exceptions", "")
        )


def test_a_watch_is_an_iterator_that_ends_with_the_session(cloud: Workspace) -> None:
    with opened(cloud) as session:
        session.apply(bucket("first"))
        since = session.list().revision
        session.apply(bucket())
        changes, seen = session.watch(since=since), list[str]()

        def watch() -> None:
            seen.extend(change.ref.name for change in changes)

        first = next(changes)
        watcher = threading.Thread(target=watch)
        watcher.start()
    watcher.join()

    assert (first.ref.name, set(seen)) == ("logs", {"logs"})


def test_controllers_run_until_another_thread_stops_them(cloud: Workspace) -> None:
    with opened(cloud) as session:
        runner = threading.Thread(target=session.run)
        runner.start()
        outcome = session.apply(bucket())[0].outcome
        while runner.is_alive():
            session.stop()
            runner.join(0.05)

        assert outcome is ResultOutcome.CREATED


def test_closing_cancels_the_calls_of_other_threads(cloud: Workspace) -> None:
    ended: list[BaseException] = []

    def run(session: SyncSession) -> None:
        try:
            session.run()
        except (CancelledError, UserError) as error:
            ended.append(error)

    with opened(cloud) as session:
        runner = threading.Thread(target=run, args=(session,))
        runner.start()
        session.apply(bucket())
    runner.join()

    assert len(ended) == 1


KILLED = """
import json, os, signal, sys
import setpoint

class Killing(setpoint.CommandObserver):
    def {moment}(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)

with setpoint.open_sync(sys.argv[1], environment=json.loads(sys.argv[2])) as session:
    session.apply(json.loads(sys.argv[3]), observer=Killing())
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["expected", "changed"])
def test_a_process_that_is_killed_in_an_apply_is_gone_on_with(cloud: Workspace, tmp_path: Path, moment: str) -> None:
    store, manifests = f"sqlite:///{tmp_path}/state.db", [bucket(), bucket("more")]
    arguments = [store, json.dumps(cloud.environment), json.dumps(manifests)]
    killed = subprocess.run([sys.executable, "-c", KILLED.format(moment=moment), *arguments], check=False)
    with opened(cloud, store) as session:
        declared, result = len(session.list()), session.apply(manifests)

        assert (killed.returncode, declared, result.is_done, session.plan().is_done) == (-9, 2, True, True)
    assert sorted(cloud.in_cloud(lambda cloud: [one["name"] for one in _buckets(cloud)])) == ["logs", "more"]


def _buckets(cloud: LocalCloud) -> Any:
    body: Any = cloud.call("GET", "/storage/v1/b?project=some-project").body
    return body["items"]
