"""Commands of `setpoint` as processes, which reach a namespace of a cluster by a proxy; and fake controllers."""

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
from tests.cluster.running.proxy import NetworkFault, ProxiedRequest, Proxy, running_proxy
from tests.cluster.waiting.fake_controllers import FakeControllers
from tests.forking.processes import Start, run

# No resource of these tests is in a cloud.
_UNREACHABLE: Final = "http://127.0.0.1:9"
_TIMEOUT_SECONDS: Final = 240.0


class CommandResult(NamedTuple):
    """The exit code and the output of a command, in which the namespace is called `here`."""

    code: int
    text: str


@dataclass(slots=True)
class WaitHarness:
    """Enter it to start the proxy. `store` is the URL of the store; by default, a SQLite file in `folder`."""

    access: Access
    namespace: str
    folder: Path
    store: str = ""
    controllers: FakeControllers = field(init=False)
    proxy: Proxy = field(init=False)
    _background: BackgroundLoop = field(default_factory=BackgroundLoop)
    _running: ExitStack = field(default_factory=ExitStack)
    _count: int = 0

    def __enter__(self) -> Self:
        self.controllers = FakeControllers(self.access, self.namespace)
        kubeconfig = self.folder / "proxied.kubeconfig"
        self._running.enter_context(self._background)
        self.proxy = self._running.enter_context(running_proxy(self.access, self._background, kubeconfig))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    # --- Commands -----------------------------------------------------------------------------------------------------

    def apply(self, *manifests: Any, timeout: str = "240s") -> CommandResult:
        """The result of `setpoint apply`."""
        return self.setpoint("apply", "-f", self._written(manifests), "--timeout", timeout)

    def start_apply(self, *manifests: Any) -> "RunningApply":
        """Starts `setpoint apply`."""
        self._count += 1
        command = (SETPOINT, "apply", "-f", self._written(manifests), "--timeout", "240s")
        child = Child(command, self.folder / f"apply-{self._count}.log", self.folder, self._environment)
        self._running.callback(child.kill)
        child.start()
        return RunningApply(child, self.namespace)

    def plan(self, *manifests: Any) -> CommandResult:
        """The result of `setpoint plan`."""
        return self.setpoint("plan", "-f", self._written(manifests))

    def setpoint(self, *arguments: str) -> CommandResult:
        """The result of any command."""
        done = run(Start((SETPOINT, *arguments), self.folder, self._environment), _TIMEOUT_SECONDS)
        return CommandResult(done.returncode, (done.stdout + done.stderr).replace(self.namespace, "here"))

    def run_controller(self) -> RunProcess:
        """A running `setpoint run`. It is stopped in the end, and must not have logged a bug."""
        process = RunProcess("controller", self.folder, self._environment)
        self._running.callback(_end, process)
        process.start()
        return process

    def status(self, name: str) -> Any:
        """The status of the KubernetesObject."""
        code, text = self.setpoint("get", f"KubernetesObject/{name}", "-n", self.namespace, "-o", "json")
        assert code == 0, text
        return json.loads(text)["status"]

    def output(self, name: str) -> Any:
        """The output of the KubernetesObject."""
        return self.status(name)["output"]

    def ready(self, name: str) -> tuple[str, str]:
        """The reason and the message of its condition Ready."""
        (found,) = (one for one in self.status(name)["conditions"] if one["type"] == "Ready")
        return found["reason"], found["message"]

    @property
    def _environment(self) -> dict[str, str]:
        found = surroundings(self.folder / "proxied.kubeconfig", self.namespace, _UNREACHABLE, self.folder)
        return {**found, "SETPOINT_STORE": self.store or f"sqlite:///{self.folder}/state.db", "COLUMNS": "500"}

    def _written(self, manifests: Sequence[Any]) -> str:
        """The file of the manifests, with the namespace of the harness."""
        self._count += 1
        here = {"namespace": self.namespace}
        placed = [{**one, "metadata": {**one["metadata"], **here}} for one in manifests]
        file = self.folder / f"manifests-{self._count}.yaml"
        file.write_text("\n---\n".join(map(json.dumps, placed)), encoding="utf-8")
        return str(file)

    # --- Requests to the cluster --------------------------------------------------------------------------------------

    def requests(self, since: int = 0) -> list[ProxiedRequest]:
        """All requests of `setpoint` after the first `since`, without those for leases."""
        return self._background.call(lambda: self.proxy.requests[since:])

    def writes(self, target: str = "") -> list[str]:
        """The methods of all writes, without dry runs: to all objects, or to `KIND/NAME`."""
        path = self.controllers.path(target) if target else ""
        requests = (one for one in self.requests() if one.method != "GET" and "dryRun" not in one.query)
        return [one.method for one in requests if one.path == path or not path]

    def reads_of(self, target: str) -> int:
        """How often the object `KIND/NAME` was read."""
        path = self.controllers.path(target)
        return sum(one.method == "GET" and one.path == path for one in self.requests())

    def watches(self) -> int:
        """The number of started watches."""
        return sum(one.is_watch for one in self.requests())

    def set_fault(self, fault: NetworkFault) -> None:
        """Sets the fault for new requests."""
        self._background.call(lambda: setattr(self.proxy, "fault", fault))

    def cut(self) -> int:
        """Aborts every unfinished request; returns their number."""
        return self._background.call(self.proxy.cut)


def _end(process: RunProcess) -> None:
    bugs = process.bugs()
    code = process.stop()
    assert (bugs, code) == ([], 0), process.child.tail()


@dataclass(frozen=True, slots=True)
class RunningApply:
    """A running `setpoint apply`."""

    child: Child
    namespace: str

    @property
    def text(self) -> str:
        """Its output so far."""
        return self.child.log.read_text(encoding="utf-8").replace(self.namespace, "here")

    def until_printed(self, *parts: str) -> None:
        """Returns when its output has all of them; AssertionError when it ends before."""
        self._until(lambda: all(part in self.text for part in parts))

    def _until(self, condition: Callable[[], bool]) -> None:
        def holds_or_ended() -> bool:
            return condition() or self.child.pid is None

        until(holds_or_ended)
        assert condition(), self.text

    def result(self) -> CommandResult:
        """Its exit code and output, once it has ended."""
        until(lambda: self.child.pid is None)
        assert self.child.code is not None
        return CommandResult(self.child.code, self.text)
