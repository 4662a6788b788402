"""A real Prometheus for the tests: found or installed, scraping what a test serves, ended with the test."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from checks.apt_packages import found_or_installed
from tests.cluster.polling import until
from tests.cluster.ports import free_port

_SECONDS: Final = 60.0


class PrometheusMissing(Exception):
    """There is no Prometheus on this machine, and none could be installed."""


@cache
def program(name: str) -> str:
    """The path of `prometheus` or `promtool`."""
    found, printed = found_or_installed(lambda: shutil.which(name), "prometheus")
    if found is None:
        raise PrometheusMissing(f"{name} is not on the PATH: install Debian's package prometheus\n{printed}".strip())
    return found


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """A server that is running."""

    url: str

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer of the HTTP API; AssertionError for another one than success."""
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(query)}", timeout=_SECONDS) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[Any]:
        """The series that an expression has now."""
        found: list[Any] = self.get("query", query=expression)["result"]
        return found

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            self.get("status/buildinfo")
        except (URLError, OSError):
            return False
        return True


@contextmanager
def running_prometheus(folder: Path, target: str, rules: Path) -> Iterator[PrometheusServer]:
    """A server that scrapes `target` as the job `setpoint`, with the rules."""
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "setpoint", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.json").write_text(json.dumps(config), encoding="utf-8")
    port = free_port()
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.json'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            server = PrometheusServer(f"http://127.0.0.1:{port}")
            until(server.is_up)
            yield server
        except BaseException:
            sys.stderr.write((folder / "prometheus.log").read_text(encoding="utf-8"))
            raise
        finally:
            process.kill()
