"""A cluster with the real `setpoint run` looking after all of it, by way of a proxy that counts what it asks."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from aiohttp import web

from soak.fleet.process import RunProcess, surroundings
from tests.cluster.access import Access
from tests.cluster.running.background_loop import BackgroundLoop
from tests.cluster.running.kubectl import Kubectl
from tests.cluster.running.proxy import Asked, NetworkFault, Proxy, no_fault
from tests.cluster.trustee.trustee_namespace import TrusteeNamespace, Version

# No step of these stories goes to a cloud.
_NOWHERE: Final = "http://127.0.0.1:9"
_LEASES: Final = "default"
# As long as upstream looks on.
STILL_SECONDS: Final = 20.0
_SETTLE_SECONDS: Final = 2.0


class Held(NamedTuple):
    """Objects that have to stay as they are once a test is done with them."""

    test: str
    trustee: TrusteeNamespace
    targets: tuple[str, ...]

    def versions(self) -> list[Version]:
        """The states that they are in."""
        return [self.trustee.version(target) for target in self.targets]


@dataclass(slots=True)
class TrusteeCluster:
    """Enter it to open it: then the process is at work."""

    access: Access
    program: Path
    folder: Path
    proxy: Proxy = field(init=False)
    keeper: RunProcess = field(init=False)
    held: list[Held] = field(default_factory=list)
    _backstage: BackgroundLoop = field(default_factory=BackgroundLoop)
    _running: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.proxy = Proxy(self.access)
        self._running.enter_context(self._backstage)
        self._backstage.run(self.proxy.start())
        self._running.callback(lambda: self._backstage.run(self.proxy.stop()))
        self.proxy.write_kubeconfig(self.folder / "proxied.kubeconfig")
        found = surroundings(self.folder / "proxied.kubeconfig", _LEASES, _NOWHERE, self.folder)
        environment = {**found, "SETPOINT_STORE": "kubernetes", "OPERATOR_IMAGE_NAME": "operator:1"}
        self.keeper = RunProcess("keeper", self.folder, environment, ("--kinds", "TrusteeConfig,KbsConfig"))
        self._running.callback(self._end)
        self.keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def _end(self) -> None:
        bugs = self.keeper.bugs()
        code = self.keeper.stop()
        assert (bugs, code) == ([], 0), self.keeper.child.tail()

    def new_namespace(self) -> TrusteeNamespace:
        """A namespace in which nothing is yet."""
        return TrusteeNamespace(Kubectl(self.program, self.access, self.access.new_namespace()))

    # --- What the process asks ----------------------------------------------------------------------------------------

    def asked(self) -> list[Asked]:
        """All that it asked of the API server so far, leases apart."""
        return self._backstage.call(lambda: [one for one in self.proxy.asked if not one.is_about_leases])

    def writes(self, since: int = 0, part: str = "") -> list[str]:
        """`VERB PATH` of its writes since so many requests, by the part that their paths have in common."""
        return [f"{one.method} {one.path}" for one in self.asked()[since:] if one.method != "GET" and part in one.path]

    @contextmanager
    def fault(self, fault: NetworkFault, loses_answer: Callable[[web.BaseRequest], bool]) -> Iterator[None]:
        """What becomes of requests meanwhile, see `Proxy`; in the end waiting clients are cut off."""
        self._backstage.call(lambda: self._set_weather(fault, loses_answer))
        try:
            yield
        finally:
            self._backstage.call(lambda: self._set_weather(no_fault, lambda _: False))
            self._backstage.call(self.proxy.cut)

    def _set_weather(self, fault: NetworkFault, loses_answer: Callable[[web.BaseRequest], bool]) -> None:
        self.proxy.fault, self.proxy.loses_answer = fault, loses_answer

    # --- What has to stay as it is ------------------------------------------------------------------------------------

    def hold(self, trustee: TrusteeNamespace, *targets: str) -> None:
        """Nothing may be written to these any more, once the test is over: see `moved`."""
        self.held.append(Held(os.environ["PYTEST_CURRENT_TEST"], trustee, targets))

    def moved(self) -> list[str]:
        """What was written to although it had to stay as it was: all tests share one look of `STILL_SECONDS`."""
        if self.held:
            # What the last test began is done by then.
            time.sleep(_SETTLE_SECONDS)
        before = [one.versions() for one in self.held]
        time.sleep(STILL_SECONDS if self.held else 0)
        after = [one.versions() for one in self.held]
        return [
            f"{one.test}: {old}, then {new}"
            for one, old, new in zip(self.held, before, after, strict=True)
            if old != new
        ]
