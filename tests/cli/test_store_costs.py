"""What an apply costs the SQLite store: transactions committed, and statements that read resources."""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from setpoint.engine.context import EngineContext
from setpoint.engine.step.outcomes import Settled
from setpoint.engine.step.reconcile import step
from setpoint.stores.sqlite import store
from setpoint.stores.sqlite.database_file import connect_to_read, connect_to_write
from tests.cli.trustees import trustee
from tests.cli.workspace import Workspace, bucket
from tests.engine.clock import FakeClock
from tests.engine.gadget_fixture import gadget
from tests.engine.gadgets import GadgetKind, Service, gadget_ref


@dataclass(slots=True)
class _Costs:
    """Transactions committed by the writer; statements by which resources are read."""

    commits: int = 0
    reads: int = 0

    def count_commit(self, statement: str) -> None:
        """Counts a statement of the writer; what it reads in its transactions is part of them."""
        self.commits += statement == "COMMIT"

    def count_read(self, statement: str) -> None:
        """Counts a statement of a reader."""
        self.reads += "FROM resources r" in statement


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> _Costs:
    """What the store costs from here on."""
    costs = _Costs()
    monkeypatch.setattr(store, "connect_to_write", _traced(connect_to_write, costs.count_commit))
    monkeypatch.setattr(store, "connect_to_read", _traced(connect_to_read, costs.count_read))
    return costs


def _traced(
    connect: Callable[[Path], sqlite3.Connection], count: Callable[[str], None]
) -> Callable[[Path], sqlite3.Connection]:
    def traced(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(count)
        return connection

    return traced


def test_a_new_bucket_takes_at_most_four_commits_and_four_reads(workspace: Workspace, costs: _Costs) -> None:
    workspace.write(bucket("new-bucket"))

    code, lines = workspace.run_in_process("apply")

    assert (code, lines) == (0, ["StorageBucket default/new-bucket created", "created 1"])
    assert 1 <= costs.commits <= 4
    # One of them for all claims of live objects, however many resources are new.
    assert 1 <= costs.reads <= 4


def test_a_new_trustee_takes_at_most_ten_commits_and_ten_reads(workspace: Workspace, costs: _Costs) -> None:
    workspace.environment["OPERATOR_IMAGE_NAME"] = "operator:1"
    workspace.write(trustee())

    _, lines = workspace.run_in_process("apply")

    assert [line.partition(",")[0] for line in lines] == [
        "KbsConfig default/trustee-kbs-config created",
        "TrusteeConfig default/trustee created",
        "created 2",
    ]
    assert 1 <= costs.commits <= 10
    assert 1 <= costs.reads <= 10


def test_a_step_that_creates_takes_two_commits_one_that_updates_one_and_one_that_finds_nothing_none(
    tmp_path: Path, costs: _Costs
) -> None:
    async def main() -> list[int]:
        kind = GadgetKind(Service())
        opened = await store.open_sqlite(tmp_path / "state.db", FakeClock(), lambda: "uid-1")
        engine, found = EngineContext(opened, FakeClock(), {(kind.group, kind.name): kind}), list[int]()
        for size in (1, 2, 2):
            await opened.apply(gadget("one", {"size": size}))
            before = costs.commits
            assert isinstance(await step(gadget_ref("one"), engine), Settled)
            found.append(costs.commits - before)
        await opened.close()
        return found

    assert asyncio.run(main()) == [2, 1, 0]
