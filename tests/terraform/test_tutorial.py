"""The commands of the tutorial, run with the real Terraform and API server, print what the page shows."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.access import Access
from tests.docs.sessions import TYPED
from tests.terraform.command import TIMEOUT_S
from tests.terraform.environments import new_environment

PAGE: Final = Path("docs/tutorials/terraform.md")
FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYTHING: Final = "…"
NAMESPACE: Final = "/api/v1/namespaces/bakery"


class TutorialShell:
    """A shell with an empty home directory, which runs the commands of the page."""

    def __init__(self, terraform: str, kubeconfig: Path, kubectl: Path, home: Path) -> None:
        self._home = home
        self._folder = home / "bakery"
        self._folder.mkdir(parents=True)
        programs = home / "programs"
        programs.mkdir()
        # OpenTofu goes by the same name here.
        (programs / "terraform").symlink_to(terraform)
        (programs / "kubectl").symlink_to(kubectl)
        path = os.pathsep.join([str(home / "venv" / "bin"), str(programs), os.environ["PATH"]])
        self.environment = {
            **{"PATH": path, "HOME": str(home), "KUBECONFIG": str(kubeconfig), "PYTHONUTF8": "1"},
            **{"CHECKPOINT_DISABLE": "1", "TF_CLI_ARGS": "-no-color"},
        }
        self._code = 0

    def write(self, configuration: str) -> None:
        """Puts it into `main.tf`."""
        (self._folder / "main.tf").write_text(configuration, encoding="utf-8")

    def run(self, line: str) -> str:
        """The output of a command line, with `~` for the home directory."""
        if line == "pip install setpoint":
            # Without the network: the environment is the same.
            new_environment(self._home / "venv").write_launchers()
            return ""
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-c", f"(exit {self._code}); {line}"],
            cwd=self._folder,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=TIMEOUT_S,
        )
        self._code = done.returncode
        printed = (done.stdout + done.stderr).replace(str(self._home), "~")
        # OpenTofu calls itself by its own name.
        return printed.replace("OpenTofu", "Terraform") if line.startswith("terraform") else printed


def is_shown(printed: str, shown: str) -> bool:
    """Whether the output is what the page shows; a line with nothing but … stands for any number of lines."""
    lines = ["(?:.*\n)*" if line == ANYTHING else re.escape(line) + "\n" for line in shown.splitlines()]
    plain = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return re.fullmatch("".join(lines), plain) is not None


@pytest.fixture
def shell(terraform: str, api_server: Access, kubectl_program: Path, tmp_path: Path) -> Iterator[TutorialShell]:
    """A new shell; the namespace of the tutorial is deleted in the end."""
    yield TutorialShell(terraform, api_server.kubeconfig, kubectl_program, tmp_path / "home")
    api_server.call("DELETE", NAMESPACE)


@pytest.mark.usefixtures("controllers")
def test_every_command_of_the_tutorial_prints_what_is_shown(shell: TutorialShell) -> None:
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "hcl":
            shell.write(body)
        elif language == "console":
            for line, shown in TYPED.findall(body):
                printed = shell.run(line)
                assert is_shown(printed, shown), f"$ {line}\n{printed}"


def test_a_page_may_leave_lines_out_and_may_not_add_any() -> None:
    printed = "one\ntwo  \nthree\n"

    assert [is_shown(printed, shown) for shown in ("one\n…\n", "…\ntwo\n…\n", "…\n", "one\ntwo\nthree\n")] == [True] * 4
    assert [is_shown(printed, shown) for shown in ("", "one\n", "…\nfour\n…\n", "…\ntwo\n")] == [False] * 4
