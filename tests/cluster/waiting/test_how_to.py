"""The how-to page about waits: every command prints what the page shows."""

import os
import re
import subprocess
from pathlib import Path
from shutil import which

from tests.cluster.access import Access
from tests.docs.sessions import TYPED
from tests.forking.processes import path_with_launcher

PAGE = Path("docs/how-to/wait-for-an-object.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# The width of the column depends on the longest age.
AGE = re.compile(r"(?<= )\d+m?s +")


def _without_times(text: str) -> list[str]:
    """The lines without times, sorted: the page does not show which of two waits ends first."""
    return sorted(AGE.sub("AGE ", TIME.sub("WHEN", line)) for line in text.splitlines())


class Terminal:
    """A shell with the programs and the cluster of the page."""

    def __init__(self, access: Access, kubectl: Path, folder: Path) -> None:
        kubeconfig = folder / "kubeconfig"
        # The context has the name that the page shows.
        text = access.kubeconfig.read_text(encoding="utf-8")
        kubeconfig.write_text(re.sub(r"\btests$", "demo", text, flags=re.MULTILINE), encoding="utf-8")
        path = os.pathsep.join([str(kubectl.parent), path_with_launcher(folder / "bin")])
        kubernetes_object = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self._environment = {
            **kubernetes_object,
            "PATH": path,
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "COLUMNS": "300",
        }
        self._folder = folder
        self._code = 0

    def run(self, line: str) -> str:
        """The output of the line."""
        done = subprocess.run(
            [which("bash") or "bash", "-c", f"(exit {self._code}); {line}"],
            cwd=self._folder,
            env={**self._environment, "PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        self._code = done.returncode
        return done.stdout + done.stderr


def test_every_command_prints_what_the_page_shows(api_server: Access, kubectl_program: Path, tmp_path: Path) -> None:
    terminal = Terminal(api_server, kubectl_program, tmp_path)
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "yaml":
            (tmp_path / "manifest.yaml").write_text(body, encoding="utf-8")
        elif language == "console":
            for line, shown in TYPED.findall(body):
                assert (line, _without_times(terminal.run(line))) == (line, _without_times(shown))
