"""A shell completes commands and options, as the script that `setpoint completion` prints makes it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.apt_packages import found_or_installed
from tests.cli.programs import Call, Terminal
from tests.cli.workspace import Workspace, bucket
from tests.forking.processes import SETPOINT

_PATH = f"{Path(SETPOINT).parent}:/usr/bin:/bin"
COMPLETE = """
eval "$(setpoint completion bash)"
COMP_LINE='{words}'
COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=({words})
COMP_CWORD=1
_setpoint_completion setpoint
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def _can_complete() -> bool:
    bash = shutil.which("bash")
    test = "((BASH_VERSINFO[0] > 4 || BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))"
    return bash is not None and subprocess.run([bash, "-c", test], check=False).returncode == 0


@pytest.fixture
def bash_program() -> str:
    """A bash that can complete: each machine of ours has one, and some others have an older one."""
    if not _can_complete():
        assert "CI" not in os.environ, "bash is not there, or older than 4.4"
        pytest.skip("bash is not there, or older than 4.4")
    return shutil.which("bash") or "bash"


@pytest.mark.parametrize(
    ("words", "completed"),
    [("setpoint ap", ["apply"]), ("setpoint e", ["events", "explain", "export"]), ("setpoint --st", ["--store"])],
)
def test_bash_completes_a_word(workspace: Workspace, bash_program: str, words: str, completed: list[str]) -> None:
    script = COMPLETE.format(words=words)

    done = workspace.run_program(bash_program, "--norc", "--noprofile", "-c", script, PATH=_PATH)

    assert done.stderr == ""
    assert done.stdout.splitlines() == completed


@pytest.fixture
def bash(workspace: Workspace, bash_program: str) -> Iterator[Terminal]:
    """A real bash on a terminal, which has read the script."""
    (workspace.folder / "inputrc").write_text("set enable-bracketed-paste off\nset bell-style none\n")
    environment = {**workspace.environment, "PATH": _PATH, "TERM": "dumb", "INPUTRC": "inputrc"}
    command = (bash_program, "--norc", "--noprofile", "-i")
    terminal = Terminal(Call(command, workspace.folder, environment), (160, 50))
    terminal.press(b"PS1='begin '; eval \"$(setpoint completion bash)\"; PS1='> '\n")
    terminal.until(lambda: terminal.lines[-1] == ">")
    yield terminal
    terminal.close()


@pytest.fixture
def applied(workspace: Workspace) -> None:
    """A bucket that is declared, from `manifest.yaml`."""
    workspace.write(bucket("logs"))
    workspace.run("apply", "-q", "-f", "manifest.yaml")


@pytest.mark.usefixtures("applied")
def test_bash_on_a_terminal_completes_fields_values_and_files(bash: Terminal) -> None:
    completed = {
        "setpoint get --field-selector state=fai": "setpoint get --field-selector state=failed",
        "setpoint get --field-selector=state=tim": "setpoint get --field-selector=state=timed\\ out",
        "setpoint get --field-selector 'state=tim": "setpoint get --field-selector 'state=timed out'",
        "setpoint get StorageBucket/lo": "setpoint get StorageBucket/logs",
        "setpoint get --sort-by .spec.versi": "setpoint get --sort-by .spec.versioning.",
        "setpoint apply -f mani": "setpoint apply -f manifest.yaml",
    }

    for begun, line in completed.items():
        bash.press(f"{begun}\t".encode())
        bash.until(lambda line=line: bash.lines[-1] == f"> {line}")  # type: ignore[misc]
        bash.press(b"\x15\n")
        bash.until(lambda: bash.lines[-1] == ">")


class Zsh(Terminal):
    """A real zsh on a terminal. It redraws its line in its own way: what it writes is not put on a screen."""

    def _take(self, text: str) -> None:
        self.written += text


# After the script is read, Ctrl-X prints the line in brackets.
_ZSH = (
    "PS1='begin '; unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D",
    "show() { print -r -- \"[$BUFFER]\" }; zle -N show; bindkey '^X' show",
    'eval "$(setpoint completion zsh)"; PS1="READ"Y',
)


@pytest.fixture
def zsh(workspace: Workspace) -> Iterator[Zsh]:
    """A real zsh, which has read the script; it is installed where root runs the tests on Debian."""
    found, printed = found_or_installed(lambda: shutil.which("zsh"), "zsh")
    if found is None:
        assert "CI" not in os.environ, f"zsh cannot be installed:\n{printed}"
        pytest.skip("zsh is not there")
    environment = {**workspace.environment, "PATH": _PATH, "TERM": "dumb"}
    terminal = Zsh(Call((found, "-f", "-i"), workspace.folder, environment), (160, 50))
    terminal.press("; ".join(_ZSH).encode() + b"\n")
    terminal.until(lambda: "READY" in terminal.written)
    yield terminal
    terminal.close()


@pytest.mark.usefixtures("applied")
def test_zsh_on_a_terminal_goes_on_where_a_word_does(zsh: Zsh) -> None:
    completed = {
        "setpoint get --field-selector=state=tim": "setpoint get --field-selector=state=timed\\ out ",
        "setpoint get StorageBucket --sort-by .spec.versi": "setpoint get StorageBucket --sort-by .spec.versioning.",
        "setpoint get storagebucket/lo": "setpoint get storagebucket/logs ",
        "setpoint apply -f mani": "setpoint apply -f manifest.yaml ",
    }

    for begun, line in completed.items():
        zsh.press(f"{begun}\t\x18".encode())
        zsh.until(lambda line=line: f"[{line}]" in zsh.written)  # type: ignore[misc]
        zsh.press(b"\x15")


@pytest.mark.parametrize(("shell", "at"), [("zsh", "1"), ("fish", "ap")])
def test_zsh_and_fish_get_a_script_and_its_completions(workspace: Workspace, shell: str, at: str) -> None:
    script = workspace.run("completion", shell)
    answer = workspace.run(_SETPOINT_COMPLETE=f"{shell}_complete", COMP_WORDS="setpoint ap", COMP_CWORD=at)

    assert f"_SETPOINT_COMPLETE={shell}_complete" in script.stdout
    assert "apply" in re.split(r"[,\t\n]", answer.stdout)


def test_the_script_of_an_earlier_version_goes_on_working(workspace: Workspace) -> None:
    done = workspace.run(_SETPOINT_COMPLETE="bash_complete", COMP_WORDS="setpoint ap", COMP_CWORD="1")

    assert (done.stdout, done.stderr) == ("plain,apply\n", "")


def test_a_shell_that_is_not_named_is_asked_for(workspace: Workspace) -> None:
    assert workspace.run("completion").stderr.endswith("Choose from:\n  bash,\n  zsh,\n  fish\n")


def test_help_is_still_what_a_call_without_arguments_prints(workspace: Workspace) -> None:
    assert workspace.run().stdout == workspace.run("--help").stdout
