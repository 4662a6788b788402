"""The process under test: the real `setpoint run` over a cluster, observed through its log and metrics."""

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from tests.cluster.children import Child
from tests.cluster.polling import until

SETPOINT: Final = str(Path(sys.executable).with_name("setpoint"))
_PANICS: Final = re.compile(r"^controller_runtime_reconcile_panics_total\{.*\} ([0-9.]+)$", re.MULTILINE)


def surroundings(kubeconfig: Path, namespace: str, cloud: str, home: Path) -> dict[str, str]:
    """The environment of a command: this cluster, leases in that namespace, and a cloud that is not Google's."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "PYTHONUTF8": "1",
        "KUBECONFIG": str(kubeconfig),
        "POD_NAMESPACE": namespace,
        "SETPOINT_STORE": f"kubernetes?namespace={namespace}",
        "STORAGE_EMULATOR_HOST": cloud,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud}/",
        "SETPOINT_GOOGLE_ENDPOINT": cloud,
        "SETPOINT_GCP_AUTH": "anonymous",
    }


@dataclass(slots=True)
class RunProcess:
    """`setpoint run`, started again after each end; each run has a log of its own in `folder`."""

    name: str
    folder: Path
    environment: Mapping[str, str]
    options: tuple[str, ...] = ()
    # Options of `setpoint` itself.
    before: tuple[str, ...] = ()
    lives: list[Child] = field(default_factory=list)

    @property
    def child(self) -> Child:
        """The current run, or the last."""
        return self.lives[-1]

    def begin(self) -> None:
        """Starts it, and does not wait."""
        arguments = ("--identity", self.name, "--log-format", "json", "--metrics", "127.0.0.1:0", *self.options)
        log = self.folder / f"{self.name}-{len(self.lives)}.log"
        self.lives.append(Child((SETPOINT, *self.before, "run", *arguments), log, self.folder, self.environment))
        self.child.start()

    def start(self) -> None:
        """Starts it; it is at work when this returns."""
        self.begin()
        self.until_logged("running")

    def stop(self) -> int:
        """Asks it to end; its exit code."""
        self.child.stop(240)
        assert self.child.code is not None
        return self.child.code

    def kill(self) -> None:
        """kill -9."""
        self.child.kill()

    # --- Log and metrics ---------------------------------------------------------------------------------------------

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log about `event`, oldest first."""
        return [line for line in self.lines() if line.get("event") == event]

    def until_logged(self, event: str, times: int = 1) -> None:
        """Returns when its log has `event` so many times; AssertionError with the log when it ends before that."""

        def has_logged() -> bool:
            assert self.child.pid is not None, f"{self.name} ended with {self.child.code}\n{self.child.tail()}"
            return len(self.logged(event)) >= times

        until(has_logged)

    def lines(self) -> list[dict[str, Any]]:
        """The log of the current run; an incomplete last line is left out."""
        found: list[dict[str, Any]] = []
        for line in self.child.log.read_text(encoding="utf-8").splitlines():
            with suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    def metrics(self) -> str:
        """The page of its metrics."""
        # Beside a store in a file it also serves other commands, by a socket.
        (address,) = (one["address"] for one in self.logged("serving") if one["address"].startswith("http"))
        with urlopen(f"{address}/metrics", timeout=60) as answer:
            page: bytes = answer.read()
        return page.decode()

    def bugs(self) -> list[str]:
        """Signs of a bug: in the logs of all runs, and, while it runs, in its metrics."""
        texts = {life.log.name: life.log.read_text(encoding="utf-8") for life in self.lives}
        found = [f"{name}: {word}" for name, text in texts.items() for word in _BUGS if word in text]
        if self.child.pid is not None:
            counts = _PANICS.findall(self.metrics())
            found += [f"{self.name}: bugs counted: {counts}"] if not counts or any(map(float, counts)) else []
        return found


_BUGS: Final = ("Traceback", "step broke", "process broke", "a bug of ours", "Task exception was never retrieved")
