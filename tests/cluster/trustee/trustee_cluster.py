"""`setpoint run` for all namespaces of a cluster, by a proxy that records its requests."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from aiohttp import web

from soak.fleet.process import SETPOINT, RunProcess, surroundings
from tests.cluster.access import Access
from tests.cluster.leases import shorten_leases
from tests.cluster.polling import until
from tests.cluster.running.background_loop import BackgroundLoop
from tests.cluster.running.kubectl import Kubectl
from tests.cluster.running.proxy import NetworkFault, ProxiedRequest, Proxy, no_fault, running_proxy
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.trustee_namespace import TrusteeNamespace, Version
from tests.forking.processes import Start, run

# No resource of these tests is in a cloud.
_UNREACHABLE: Final = "http://127.0.0.1:9"
_LEASES: Final = "default"
_TIMEOUT_SECONDS: Final = 240.0
_KINDS: Final = ("TrusteeConfig", "KbsConfig")
_RECONCILES: Final = re.compile(
    r'^controller_runtime_reconcile_total\{controller="(\w+)",result="\w+"\} (\d+)', re.MULTILINE
)
# Resyncs are left out: resources that are not ready yet have them every ten seconds, and a busy machine is never done.
_QUEUED: Final = re.compile(r'^workqueue_depth\{.*priority="(?!resync)\w+"\} (\d+)', re.MULTILINE)
_RUNNING: Final = re.compile(r"^setpoint_workqueue_in_work\{.*\} (\d+)", re.MULTILINE)


class SettledObjects(NamedTuple):
    """Objects of a test that must not be written to any more."""

    test: str
    trustee: TrusteeNamespace
    targets: tuple[str, ...]

    def versions(self) -> list[Version]:
        """Their present resource versions."""
        return [self.trustee.version(target) for target in self.targets]


def _ended(page: str) -> int:
    """The number of steps that have ended, on a metrics page."""
    return sum(int(number) for _, number in _RECONCILES.findall(page))


@dataclass(slots=True)
class TrusteeCluster:
    """Enter it to start proxy and controller."""

    access: Access
    program: Path
    folder: Path
    proxy: Proxy = field(init=False)
    controller: RunProcess = field(init=False)
    settled: list[SettledObjects] = field(default_factory=list)
    _background: BackgroundLoop = field(default_factory=BackgroundLoop)
    _running: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        kubeconfig = self.folder / "proxied.kubeconfig"
        self._running.enter_context(self._background)
        self.proxy = self._running.enter_context(running_proxy(self.access, self._background, kubeconfig))
        found = surroundings(kubeconfig, _LEASES, _UNREACHABLE, self.folder)
        environment = {**found, "SETPOINT_STORE": "kubernetes", "OPERATOR_IMAGE_NAME": "operator:1"}
        self.controller = RunProcess("controller", self.folder, environment, ("--kinds", ",".join(_KINDS)))
        self._running.callback(self._end)
        self.controller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, config_versions: TracebackType | None
    ) -> None:
        self._running.close()

    def _end(self) -> None:
        bugs = self.controller.bugs()
        code = self.controller.stop()
        assert (bugs, code) == ([], 0), self.controller.child.tail()

    def setpoint(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """The result of another command of `setpoint`."""
        return run(Start((SETPOINT, *arguments), self.folder, self.controller.environment), _TIMEOUT_SECONDS)

    def new_namespace(self) -> TrusteeNamespace:
        """A new namespace."""
        return TrusteeNamespace(Kubectl(self.program, self.access, self.access.new_namespace()))

    # --- Requests -----------------------------------------------------------------------------------------------------

    def requests(self, since: int = 0) -> list[ProxiedRequest]:
        """All requests of the controller after the first `since`, without those for leases."""
        return self._background.call(lambda: self.proxy.requests[since:])

    def writes(self, since: int = 0, part: str = "") -> list[str]:
        """`VERB PATH` of its writes after the first `since` requests, with `part` in their path."""
        return [f"{one.method} {one.path}" for one in self.requests(since) if one.method != "GET" and part in one.path]

    @contextmanager
    def fault(self, fault: NetworkFault, loses_response: Callable[[web.BaseRequest], bool]) -> Iterator[None]:
        """Injects faults into the proxy during the block; then aborts open requests."""
        self._background.call(lambda: self._set_faults(fault, loses_response))
        try:
            yield
        finally:
            self._background.call(lambda: self._set_faults(no_fault, lambda _: False))
            self._background.call(self.proxy.cut)

    def _set_faults(self, fault: NetworkFault, loses_response: Callable[[web.BaseRequest], bool]) -> None:
        self.proxy.fault, self.proxy.loses_response = fault, loses_response

    @contextmanager
    def held_watches(self, plural: str) -> Iterator[None]:
        """During the block the controller receives no event of these objects; afterwards it receives them."""
        self._background.call(lambda: self.proxy.hold_watches(plural))
        try:
            yield
        finally:
            self._background.call(lambda: self.proxy.release_watches(plural))

    # --- Reconciles ---------------------------------------------------------------------------------------------------

    def reconciles(self, kind: str) -> int:
        """The number of reconciles of that kind since the controller was started."""
        return sum(
            int(number)
            for name, number in _RECONCILES.findall(self.controller.metrics())
            if name.lower() == kind.lower()
        )

    def kill_controller(self) -> None:
        """kill -9. Its leases expire soon, so that the next one need not wait."""
        self.controller.kill()
        shorten_leases(self.access, _LEASES, lambda holder: holder.startswith(f"{self.controller.name}-"))

    def restart_controller(self) -> None:
        """Restarts it; returns when it has reconciled every resource, and handled the events of that."""
        assert self.controller.stop() == 0
        numbers = {kind: self._number_of(kind) for kind in _KINDS}
        self.controller.start()
        until(lambda: all(self.reconciles(kind) >= number for kind, number in numbers.items()))
        self._until_triggered_steps_ended()

    def _number_of(self, kind: str) -> int:
        listed = self.access.call("GET", f"/apis/confidentialcontainers.org/v1alpha1/{kind.lower()}s").body["items"]
        return len(listed)

    def drain(self) -> None:
        """Returns when the controller has received all events so far, and has taken the steps that they trigger."""
        # Events of a kind arrive in order: those of another TrusteeConfig come after all others.
        self.new_namespace().settle_ready(trustee_config())
        self._until_triggered_steps_ended()

    def _until_triggered_steps_ended(self) -> None:
        """Returns when no step is queued but resyncs, and as many steps have ended as were running then."""
        until(lambda: not any(map(int, _QUEUED.findall(self.controller.metrics()))))
        page = self.controller.metrics()
        running, ended = sum(map(int, _RUNNING.findall(page))), _ended(page)
        until(lambda: _ended(self.controller.metrics()) >= ended + running or not self._is_running())

    def _is_running(self) -> bool:
        return any(map(int, _RUNNING.findall(self.controller.metrics())))

    # --- No write without a change ------------------------------------------------------------------------------------

    def expect_no_more_writes(self, trustee: TrusteeNamespace, *targets: str) -> None:
        """These objects must not be written to after the test: see `written_after_settling`."""
        self.settled.append(SettledObjects(os.environ["PYTEST_CURRENT_TEST"], trustee, targets))

    def written_after_settling(self) -> list[str]:
        """The settled objects that a restarted controller writes to: it reconciles all resources of all tests once."""
        if not self.settled:
            return []
        self.drain()
        before = [one.versions() for one in self.settled]
        self.restart_controller()
        after = [one.versions() for one in self.settled]
        return [
            f"{one.test}: {old}, then {new}"
            for one, old, new in zip(self.settled, before, after, strict=True)
            if old != new
        ]
