"""A real OpenTelemetry Collector for the tests: built once from its published Go modules, and started for a test."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.cluster.polling import until
from tests.cluster.ports import free_port
from tests.go_programs import GoProgram, NotBuilt

REQUIRED: Final = "SETPOINT_REQUIRE_COLLECTOR"
_COLLECTOR: Final = GoProgram("the OpenTelemetry Collector", "otelcol", Path(__file__).parent / "program")


def collector(environment: Mapping[str, str] = os.environ) -> Path:
    """The program. It is only built where the environment requires it, which takes a minute."""
    if REQUIRED not in environment and not _COLLECTOR.path(environment).exists():
        raise NotBuilt("the OpenTelemetry Collector is not built: `make collector` does it")
    return _COLLECTOR.built(environment)


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
