"""A real OpenTelemetry Collector for the tests: built once from its published Go modules, and started for a test."""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cluster.polling import until
from tests.cluster.ports import free_port

REQUIRED: Final = "SETPOINT_REQUIRE_COLLECTOR"
_SOURCE: Final = Path(__file__).parent / "program"
_SETTINGS: Final = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}


class NotBuilt(Exception):
    """There is no Collector: the message says why."""


def collector(environment: Mapping[str, str] = os.environ) -> Path:
    """The program. It is only built where the environment requires it, which takes a minute."""
    program = _folder(environment) / "otelcol"
    if program.exists():
        return program
    if REQUIRED not in environment:
        raise NotBuilt("the OpenTelemetry Collector is not built: `make collector` does it")
    go = shutil.which("go", path=environment.get("PATH", ""))
    if go is None:
        raise NotBuilt("there is no Go to build the OpenTelemetry Collector with")
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(go, program, {**environment, **_SETTINGS})
    return program


def _folder(environment: Mapping[str, str]) -> Path:
    kept = environment.get("XDG_CACHE_HOME")
    cache = Path(kept).absolute() if kept else Path.home() / ".cache"
    sources = b"".join(_SOURCE.joinpath(name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
    version = hashlib.sha256(sources).hexdigest()[:16]
    return cache / "setpoint" / "collector" / f"{version}-{platform.system().lower()}-{platform.machine().lower()}"


def _build(go: str, program: Path, environment: Mapping[str, str]) -> None:
    fresh = program.with_name("otelcol.fresh")
    command = [go, "build", "-ldflags", "-s -w", "-o", str(fresh), "."]
    done = subprocess.run(command, cwd=_SOURCE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuilt(f"the OpenTelemetry Collector cannot be built: go build said: {done.stderr.strip()[-500:]}")
    # Atomic: no other process finds half of it.
    fresh.replace(program)


@dataclass(frozen=True, slots=True)
class RunningCollector:
    """A Collector that writes the traces that it received to a file."""

    url: str
    file: Path

    @property
    def resources(self) -> list[dict[str, Any]]:
        """What was received, by resource, as the JSON of OTLP; complete lines alone."""
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [resource for line in lines for resource in json.loads(line)["resourceSpans"]]

    @property
    def spans(self) -> list[dict[str, Any]]:
        """All spans that were received."""
        return [span for one in self.resources for scope in one["scopeSpans"] for span in scope["spans"]]

    def named(self, start: str) -> list[dict[str, Any]]:
        """The spans whose names start so."""
        return [span for span in self.spans if span["name"].startswith(start)]


@contextmanager
def running_collector(folder: Path) -> Iterator[RunningCollector]:
    """A Collector with an OTLP receiver on the loopback device, ended with the test."""
    port, file = free_port(), folder / "traces.json"
    config = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": {"file": {"path": str(file), "flush_interval": "100ms"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
        },
    }
    # JSON is YAML.
    (folder / "collector.yaml").write_text(json.dumps(config), encoding="utf-8")
    log_file, command = folder / "collector.log", [str(collector()), "--config", str(folder / "collector.yaml")]
    with log_file.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            until(lambda: "Everything is ready" in log_file.read_text(encoding="utf-8"))
            yield RunningCollector(f"http://127.0.0.1:{port}", file)
        except BaseException:
            sys.stderr.write(log_file.read_text(encoding="utf-8"))
            raise
        finally:
            process.kill()


def main() -> int:
    """Builds the program, if need be, and prints where it is; 1 and the reason when it cannot be built."""
    try:
        sys.stdout.write(f"{collector({**os.environ, REQUIRED: '1'})}\n")
    except NotBuilt as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
