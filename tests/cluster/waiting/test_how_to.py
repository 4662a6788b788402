"""The page about waits tells people what to type, and what they will see: on a real API server it goes like that."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which

from tests.cluster.access import Access
from tests.docs.sessions import TYPED

PAGE = Path("docs/how-to/wait-for-an-object.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# A column is as wide as the longest age.
AGE = re.compile(r"(?<= )\d+m?s +")


def _without_times(text: str) -> list[str]:
    """The lines, in the order of the alphabet: who is quicker of two is not told by the page."""
    return sorted(AGE.sub("AGE ", TIME.sub("WHEN", line)) for line in text.splitlines())


class Terminal:
    """A shell in a folder, with the programs and the cluster that the reader has."""

    def __init__(self, access: Access, kubectl: Path, folder: Path) -> None:
        kubeconfig = folder / "kubeconfig"
        # The name of its only context is the one that the page shows.
        text = access.kubeconfig.read_text(encoding="utf-8")
        kubeconfig.write_text(re.sub(r"\btests$", "demo", text, flags=re.MULTILINE), encoding="utf-8")
        path = os.pathsep.join([str(kubectl.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self._environment = {**kept, "PATH": path, "HOME": str(folder), "KUBECONFIG": str(kubeconfig), "COLUMNS": "300"}
        self._folder = folder
        self._code = 0

    def run(self, line: str) -> str:
        """What the line prints."""
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


def test_every_session_of_the_page_goes_as_it_is_shown(
    api_server: Access, kubectl_program: Path, tmp_path: Path
) -> None:
    terminal = Terminal(api_server, kubectl_program, tmp_path)
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "yaml":
            (tmp_path / "manifest.yaml").write_text(body, encoding="utf-8")
        elif language == "console":
            for line, shown in TYPED.findall(body):
                assert (line, _without_times(terminal.run(line))) == (line, _without_times(shown))
