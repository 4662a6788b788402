"""A shell completes commands and options, as the script that `setpoint completion` prints makes it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.workspace import Workspace
from tests.forking.processes import SETPOINT

COMPLETE = """
eval "$(setpoint completion bash)"
COMP_WORDS=({words})
COMP_CWORD=1
_setpoint_completion setpoint
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def _can_complete() -> bool:
    bash = shutil.which("bash")
    test = "((BASH_VERSINFO[0] > 4 || BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))"
    return bash is not None and subprocess.run([bash, "-c", test], check=False).returncode == 0


@pytest.mark.skipif(not _can_complete(), reason="bash is not there, or older than 4.4")
@pytest.mark.parametrize(
    ("words", "completed"),
    [("setpoint ap", ["apply"]), ("setpoint e", ["events", "explain", "export"]), ("setpoint --st", ["--store"])],
)
def test_bash_completes_a_word(workspace: Workspace, words: str, completed: list[str]) -> None:
    path = f"{Path(SETPOINT).parent}:/usr/bin:/bin"

    done = workspace.run_program("bash", "--norc", "--noprofile", "-c", COMPLETE.format(words=words), PATH=path)

    assert done.stderr == ""
    assert done.stdout.splitlines() == completed


@pytest.mark.parametrize(("shell", "at"), [("zsh", "1"), ("fish", "ap")])
def test_zsh_and_fish_get_a_script_and_its_completions(workspace: Workspace, shell: str, at: str) -> None:
    script = workspace.run("completion", shell)
    answer = workspace.run(_SETPOINT_COMPLETE=f"{shell}_complete", COMP_WORDS="setpoint ap", COMP_CWORD=at)

    assert f"_SETPOINT_COMPLETE={shell}_complete" in script.stdout
    assert "apply" in re.split(r"[,\t\n]", answer.stdout)


def test_help_is_still_what_a_call_without_arguments_prints(workspace: Workspace) -> None:
    assert workspace.run().stdout == workspace.run("--help").stdout
