"""A namespace of a cluster, a cloud, and the real `setpoint` at work between them."""

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from soak.fleet.cloud import MultiEndpointCloud, Written
from soak.fleet.process import SETPOINT, RunProcess, surroundings
from tests.cluster.access import ADMIN
from tests.cluster.running.background_loop import BackgroundLoop
from tests.cluster.running.kubectl import Kubectl
from tests.cluster.running.proxy import Asked, Proxy
from tests.forking.processes import Start, run

_PATIENCE: Final = 240.0
T = TypeVar("T")


@dataclass(slots=True)
class Site:
    """Enter it to open it. Processes come by a proxy, and kubectl directly."""

    kubectl: Kubectl
    folder: Path
    cloud: MultiEndpointCloud = field(default_factory=MultiEndpointCloud)
    background: BackgroundLoop = field(default_factory=BackgroundLoop)
    proxy: Proxy = field(init=False)
    processes: list[RunProcess] = field(default_factory=list)
    _running: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.proxy = Proxy(self.kubectl.access)
        self._running.enter_context(self.background)
        self.background.run(self.cloud.start())
        self._running.callback(lambda: self.background.run(self.cloud.stop()))
        self.background.run(self.proxy.start())
        self._running.callback(lambda: self.background.run(self.proxy.stop()))
        self.proxy.write_kubeconfig(self.folder / "proxied.kubeconfig")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    # --- Who works here ----------------------------------------------------------------------------------------------

    def process(self, *options: str, name: str = "keeper", before: tuple[str, ...] = ()) -> RunProcess:
        """`setpoint run`, at work; in the end it is asked to stop, and nothing may have gone wrong with it."""
        door = self.background.run(self.cloud.open_endpoint(name))
        process = RunProcess(name, self.folder, self.environment(door), options, before)
        self.processes.append(process)
        self._running.callback(_end, process)
        process.start()
        return process

    def setpoint(self, *arguments: str, user: str = ADMIN) -> "subprocess.CompletedProcess[str]":
        """Another command of `setpoint`, when it is done."""
        kubeconfig = str(self.kubectl.access.kubeconfig_of(user))
        environment = self.environment(self.cloud.url) | {"KUBECONFIG": kubeconfig}
        return run(Start((SETPOINT, *arguments), self.folder, environment), _PATIENCE)

    def environment(self, cloud: str) -> dict[str, str]:
        """For commands."""
        return surroundings(self.folder / "proxied.kubeconfig", self.kubectl.namespace, cloud, self.folder)

    # --- What there is to see ----------------------------------------------------------------------------------------

    def in_cloud(self, verb: Callable[[MultiEndpointCloud], T]) -> T:
        """What `verb` makes of the cloud."""
        return self.background.call(lambda: verb(self.cloud))

    def live(self, path: str) -> Any:
        """The object at that path of the cloud's API; None when there is none."""
        answer = self.in_cloud(lambda cloud: cloud.call("GET", path))
        return answer.body if answer.status == 200 else None

    def writes_to(self, path: str) -> list[Written]:
        """What was done to the object at that path."""
        return self.in_cloud(lambda cloud: cloud.writes_to(path))

    def asked(self) -> list[Asked]:
        """All that processes asked of the API server so far, leases apart."""
        return self.background.call(lambda: [one for one in self.proxy.asked if not one.is_about_leases])


def _end(process: RunProcess) -> None:
    bugs = process.bugs()
    code = process.stop()
    assert (bugs, code) == ([], 0), process.child.tail()
