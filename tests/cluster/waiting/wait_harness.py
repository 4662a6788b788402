"""A namespace of a cluster, fake controllers, and the real `setpoint`, which uses a proxy."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from soak.fleet.process import SETPOINT, RunProcess, surroundings
from tests.cluster.access import Access
from tests.cluster.children import Child
from tests.cluster.polling import until
from tests.cluster.running.background_loop import BackgroundLoop
from tests.cluster.running.proxy import Asked, NetworkFault, Proxy
from tests.cluster.waiting.fake_controllers import FakeControllers
from tests.forking.processes import Start, run

# No command of these stories goes to a cloud.
_NOWHERE: Final = "http://127.0.0.1:9"
_PATIENCE: Final = 240.0


class Said(NamedTuple):
    """How a command ended, and what it printed, in which the namespace is called `here`."""

    code: int
    text: str


@dataclass(slots=True)
class WaitHarness:
    """Enter it to open it. `store` is the URL of the store; empty, it is a file in `folder`."""

    access: Access
    namespace: str
    folder: Path
    store: str = ""
    controllers: FakeControllers = field(init=False)
    proxy: Proxy = field(init=False)
    _backstage: BackgroundLoop = field(default_factory=BackgroundLoop)
    _running: ExitStack = field(default_factory=ExitStack)
    _count: int = 0

    def __enter__(self) -> Self:
        self.controllers, self.proxy = FakeControllers(self.access, self.namespace), Proxy(self.access)
        self._running.callback(self.controllers.close)
        self._running.enter_context(self._backstage)
        self._backstage.run(self.proxy.start())
        self._running.callback(lambda: self._backstage.run(self.proxy.stop()))
        self.proxy.write_kubeconfig(self.folder / "proxied.kubeconfig")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    # --- Commands -----------------------------------------------------------------------------------------------------

    def apply(self, *manifests: Any, timeout: str = "240s") -> Said:
        """`setpoint apply`, to its end."""
        return self.setpoint("apply", "-f", self._written(manifests), "--timeout", timeout)

    def begin_apply(self, *manifests: Any) -> "Applying":
        """`setpoint apply`, which goes on."""
        self._count += 1
        command = (SETPOINT, "apply", "-f", self._written(manifests), "--timeout", "240s")
        child = Child(command, self.folder / f"apply-{self._count}.log", self.folder, self._environment)
        self._running.callback(child.kill)
        child.start()
        return Applying(child, self.namespace)

    def plan(self, *manifests: Any) -> Said:
        """`setpoint plan`."""
        return self.setpoint("plan", "-f", self._written(manifests))

    def setpoint(self, *arguments: str) -> Said:
        """Any command, to its end."""
        done = run(Start((SETPOINT, *arguments), self.folder, self._environment), _PATIENCE)
        return Said(done.returncode, (done.stdout + done.stderr).replace(self.namespace, "here"))

    def keep(self) -> RunProcess:
        """`setpoint run`, at work; in the end it is asked to stop, and nothing may have gone wrong with it."""
        process = RunProcess("keeper", self.folder, self._environment)
        self._running.callback(_end, process)
        process.start()
        return process

    def status(self, name: str) -> Any:
        """The status of the KubernetesObject."""
        code, text = self.setpoint("get", f"KubernetesObject/{name}", "-n", self.namespace, "-o", "json")
        assert code == 0, text
        return json.loads(text)["status"]

    def output(self, name: str) -> Any:
        """What it offers to others."""
        return self.status(name)["output"]

    def ready(self, name: str) -> tuple[str, str]:
        """The reason and the message of its condition Ready."""
        (found,) = (one for one in self.status(name)["conditions"] if one["type"] == "Ready")
        return found["reason"], found["message"]

    @property
    def _environment(self) -> dict[str, str]:
        found = surroundings(self.folder / "proxied.kubeconfig", self.namespace, _NOWHERE, self.folder)
        return {**found, "SETPOINT_STORE": self.store or f"sqlite:///{self.folder}/state.db", "COLUMNS": "500"}

    def _written(self, manifests: Sequence[Any]) -> str:
        """The file that the manifests are in, in the namespace of the stage."""
        self._count += 1
        here = {"namespace": self.namespace}
        placed = [{**one, "metadata": {**one["metadata"], **here}} for one in manifests]
        file = self.folder / f"manifests-{self._count}.yaml"
        file.write_text("\n---\n".join(map(json.dumps, placed)), encoding="utf-8")
        return str(file)

    # --- The way to the cluster ---------------------------------------------------------------------------------------

    def asked(self) -> list[Asked]:
        """All that `setpoint` asked of the API server so far, leases apart."""
        return self._backstage.call(lambda: [one for one in self.proxy.asked if not one.is_about_leases])

    def writes(self, target: str = "") -> list[str]:
        """The verbs of all writes, rehearsals apart: to all objects, or to `KIND/NAME`."""
        path = self.controllers.path(target) if target else ""
        asked = (one for one in self.asked() if one.method != "GET" and "dryRun" not in one.query)
        return [one.method for one in asked if one.path == path or not path]

    def looks_at(self, target: str) -> int:
        """How often the object `KIND/NAME` was read."""
        path = self.controllers.path(target)
        return sum(one.method == "GET" and one.path == path for one in self.asked())

    def watches(self) -> int:
        """How many watches were begun."""
        return sum(one.is_watch for one in self.asked())

    def set_fault(self, fault: NetworkFault) -> None:
        """What becomes of requests from now on."""
        self._backstage.call(lambda: setattr(self.proxy, "fault", fault))

    def cut(self) -> int:
        """Cuts the connections that wait for something; how many."""
        return self._backstage.call(self.proxy.cut)


def _end(process: RunProcess) -> None:
    bugs = process.bugs()
    code = process.stop()
    assert (bugs, code) == ([], 0), process.child.tail()


@dataclass(frozen=True, slots=True)
class Applying:
    """An apply that goes on."""

    child: Child
    namespace: str

    @property
    def text(self) -> str:
        """What it has printed so far."""
        return self.child.log.read_text(encoding="utf-8").replace(self.namespace, "here")

    def until_said(self, *parts: str) -> None:
        """Returns when it has printed all of them; AssertionError when it ends before that."""
        self._until(lambda: all(part in self.text for part in parts))

    def _until(self, condition: Callable[[], bool]) -> None:
        def holds_or_ended() -> bool:
            return condition() or self.child.pid is None

        until(holds_or_ended)
        assert condition(), self.text

    def ended(self) -> Said:
        """How it ended."""
        until(lambda: self.child.pid is None)
        assert self.child.code is not None
        return Said(self.child.code, self.text)
