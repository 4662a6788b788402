"""The controllers that are compared, as processes."""

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.peers.process_usage import ProcessTree
from benchmarks.peers.work_server import Work
from soak.fleet.process import SETPOINT
from tests.cluster.children import Child

SETPOINT_RUN: Final = "ours: setpoint run"
CONTROLLER_RUNTIME: Final = "controller-runtime"
KOPF: Final = "kopf"
KOPF_TUNED: Final = "kopf, tuned"
# Names a folder for profiles of `setpoint run`, a file for each process in their order. It takes twice as long then.
PROFILE_FOLDER: Final = "SETPOINT_BENCHMARK_PROFILE"
_ROOT: Final = Path(__file__).resolve().parents[2]
# How many resources are reconciled at once: the default of setpoint. kopf has no limit.
_CONCURRENCY: Final = 20


class Controller(Protocol):
    """A controller that can be started over some work."""

    @property
    def name(self) -> str:
        """Its name in the report."""
        ...

    @property
    def has_fleet(self) -> bool:
        """Whether it is measured with thousands of resources, too."""
        ...

    def command(self, work: Work, resync: float | None) -> Sequence[str]:
        """The command that starts it. Every resource is resynced after `resync` seconds; None for its default."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerRuntime:
    """The controller in Go, built by `build_controller`."""

    program: Path
    name: str = CONTROLLER_RUNTIME
    has_fleet: bool = True

    def command(self, work: Work, resync: float | None) -> Sequence[str]:
        """See Controller."""
        # The first resync of an informer comes after two periods: at the end of one, each listener is not quite due.
        resync_option = [] if resync is None else [f"-resync={resync / 2}s"]
        return (str(self.program), f"-watch-namespace={work.namespace}", f"-concurrency={_CONCURRENCY}", *resync_option)


@dataclass(frozen=True, slots=True)
class Kopf:
    """The operator in `kopf_controller.py`, as kopf's documentation has it; or tuned: see `kopf_operators.py`."""

    name: str = KOPF
    is_tuned: bool = False
    # After a restart with 5,000 it did not come to rest within seven minutes; no bar is about that.
    has_fleet: bool = False

    def command(self, work: Work, resync: float | None) -> Sequence[str]:
        """See Controller."""
        resync_option = [] if resync is None else [f"--resync={resync}"]
        options = ("--namespace", work.namespace, *(["--tuned"] if self.is_tuned else []), *resync_option)
        return (sys.executable, "-m", "benchmarks.peers.kopf_controller", *options)


@dataclass(frozen=True, slots=True)
class Setpoint:
    """`setpoint run` for one kind. An annotation of each resource says when it is resynced: `Work.request_resync`."""

    name: str = SETPOINT_RUN
    has_fleet: bool = True

    def command(self, work: Work, resync: float | None) -> Sequence[str]:
        """See Controller."""
        if resync is not None:
            work.request_resync(resync)
        store = ("--store", f"kubernetes?namespace={work.namespace}")
        return (*_interpreter(work), SETPOINT, "run", "--kinds", "KubernetesObject", *store)


def _interpreter(work: Work) -> Sequence[str]:
    """The beginning of the command, if its processes are profiled."""
    folder = os.environ.get(PROFILE_FOLDER)
    if folder is None:
        return ()
    number = len(list(Path(folder).glob("*.prof")))
    file = Path(folder).absolute() / f"{number:02}-{len(work.names)}-resources.prof"
    return (sys.executable, "-m", "benchmarks.peers.cpu_profile", str(file))


@contextmanager
def running(controller: Controller, work: Work, resync: float | None = None) -> Iterator[ProcessTree]:
    """The process of the controller, which was just started; it is stopped at the end of the block."""
    folder = work.kubeconfig.parent
    log = folder / f"{work.namespace}.log"
    child = Child(controller.command(work, resync), log, folder, environment(work, os.environ))
    child.start()
    pid = child.pid
    assert pid is not None, child.tail()
    try:
        yield ProcessTree(pid)
        if child.pid is None:
            raise AssertionError(f"{controller.name} ended with {child.code}\n{child.tail()}")
    finally:
        child.stop()


def environment(work: Work, surroundings: Mapping[str, str]) -> dict[str, str]:
    """The environment of a controller: nothing but the cluster, and where programs and packages are."""
    kept = {name: surroundings[name] for name in ("PATH",) if name in surroundings}
    return {
        **kept,
        "HOME": str(work.kubeconfig.parent),
        "KUBECONFIG": str(work.kubeconfig),
        "PYTHONPATH": str(_ROOT),
        "PYTHONUTF8": "1",
    }


def is_supported() -> bool:
    """Whether the kernel has the accounts that are read here."""
    return platform.system() == "Linux"
