"""`setpoint run` as a replica: identity and shards, without a cluster."""

from typing import Any

import pytest

from setpoint.app import OpenedEngine
from setpoint.cli.commands.run import RunOptions
from setpoint.clients.ratelimit.limiter import QuotaBudgets
from setpoint.engine.context import EngineContext
from setpoint.errors import UserError
from setpoint.library.controller import ControllerOptions, replica_for
from setpoint.stores.memory import MemoryStore
from tests.engine.clock import FakeClock

OPTIONS = {
    "kinds": "",
    "concurrency": 20,
    "metrics": None,
    "log_format": "auto",
    "log_level": "info",
    "grace": "25s",
    "live": False,
    "shards": 8,
    "identity": "pod-1",
    "audit": None,
    "dashboard": None,
    "allow_actions": False,
    "dashboard_peers": (),
    "notify": (),
    "notify_secret_file": None,
    "plan": True,
    "allowed_addresses": (),
    "denied_addresses": (),
    "folders": (),
    "repositories": (),
    "set_name": None,
    "adopt": False,
    "allow_empty": False,
}


def opened(*, shared: bool) -> OpenedEngine:
    clock = FakeClock()
    return OpenedEngine(EngineContext(MemoryStore(clock, lambda: "uid"), clock, {}), QuotaBudgets(), shared=shared)


def run_options(**options: Any) -> ControllerOptions:
    return RunOptions.of({**OPTIONS, **options}).controller


def test_a_process_on_a_shared_store_is_a_replica_with_an_identity() -> None:
    replica = replica_for(opened(shared=True), run_options())

    assert replica is not None
    assert replica.shard_count == 8
    assert replica.identity.startswith("pod-1-")


def test_the_default_identity_is_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node-7")

    assert run_options(identity=None).identity.startswith("node-7-")


def test_a_store_for_a_single_process_refuses_shards() -> None:
    assert replica_for(opened(shared=False), run_options(shards=1)) is None
    with pytest.raises(UserError, match=r"^--shards 8: one process at a time writes to this store"):
        replica_for(opened(shared=False), run_options())
