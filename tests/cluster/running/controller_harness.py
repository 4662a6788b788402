"""`setpoint run` as a process, between a namespace of a real API server and a local cloud."""

import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from soak.fleet.cloud import MultiEndpointCloud, Written
from soak.fleet.process import SETPOINT, RunProcess, surroundings
from tests.cluster.access import ADMIN
from tests.cluster.polling import until
from tests.cluster.running.background_loop import BackgroundLoop
from tests.cluster.running.kubectl import Kubectl
from tests.cluster.running.proxy import ProxiedRequest, Proxy, running_proxy
from tests.forking.processes import Start, run

_TIMEOUT_SECONDS: Final = 240.0
T = TypeVar("T")


@dataclass(slots=True)
class ControllerHarness:
    """Enter it to start local cloud and proxy. Controllers use the proxy, kubectl does not."""

    kubectl: Kubectl
    folder: Path
    cloud: MultiEndpointCloud = field(default_factory=MultiEndpointCloud)
    background: BackgroundLoop = field(default_factory=BackgroundLoop)
    proxy: Proxy = field(init=False)
    processes: list[RunProcess] = field(default_factory=list)
    # Further variables of the environment of commands.
    variables: Mapping[str, str] = field(default_factory=dict)
    _running: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self._running.enter_context(self.background)
        self.background.run(self.cloud.start())
        self._running.callback(lambda: self.background.run(self.cloud.stop()))
        kubeconfig = self.folder / "proxied.kubeconfig"
        self.proxy = self._running.enter_context(running_proxy(self.kubectl.access, self.background, kubeconfig))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    # --- Processes ----------------------------------------------------------------------------------------------------

    def start_controller(self, *options: str, name: str = "controller", before: tuple[str, ...] = ()) -> RunProcess:
        """A running `setpoint run`. It is stopped in the end, and must not have logged a bug."""
        endpoint = self.background.run(self.cloud.open_endpoint(name))
        process = RunProcess(name, self.folder, self.environment(endpoint), options, before)
        self.processes.append(process)
        self._running.callback(_end, process)
        process.start()
        return process

    def setpoint(self, *arguments: str, user: str = ADMIN) -> "subprocess.CompletedProcess[str]":
        """The result of another command of `setpoint`."""
        kubeconfig = str(self.kubectl.access.kubeconfig_of(user))
        environment = self.environment(self.cloud.url) | {"KUBECONFIG": kubeconfig}
        return run(Start((SETPOINT, *arguments), self.folder, environment), _TIMEOUT_SECONDS)

    def environment(self, cloud: str) -> dict[str, str]:
        """The environment of commands."""
        found = surroundings(self.folder / "proxied.kubeconfig", self.kubectl.namespace, cloud, self.folder)
        return {**found, **self.variables}

    # --- Observed state -----------------------------------------------------------------------------------------------

    def in_cloud(self, verb: Callable[[MultiEndpointCloud], T]) -> T:
        """The result of `verb` on the local cloud."""
        return self.background.call(lambda: verb(self.cloud))

    def live(self, path: str) -> Any:
        """The live object at that path of the local cloud; None when there is none."""
        answer = self.in_cloud(lambda cloud: cloud.call("GET", path))
        return answer.body if answer.status == 200 else None

    def writes_to(self, path: str) -> list[Written]:
        """The writes to the object at that path."""
        return self.in_cloud(lambda cloud: cloud.writes_to(path))

    def until_observed(self, path: str, times: int = 1) -> None:
        """Returns when the object at that path of the local cloud has been read so many times more."""

        def reads() -> int:
            return self.in_cloud(lambda cloud: sum(one.path == path for one in cloud.journal.entries))

        wanted = reads() + times
        until(lambda: reads() >= wanted)

    def requests(self, since: int = 0) -> list[ProxiedRequest]:
        """All requests of controllers to the API server after the first `since`, without those for leases."""
        return self.background.call(lambda: self.proxy.requests[since:])


def _end(process: RunProcess) -> None:
    bugs = process.bugs()
    code = process.stop()
    assert (bugs, code) == ([], 0), process.child.tail()
