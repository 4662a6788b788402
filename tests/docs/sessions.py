"""Sessions in the docs: shell lines as a reader types them, understood and run in this process."""

import getopt
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from click.testing import CliRunner

from setpoint.cli.main import main

# A line that is typed, and the lines that it prints.
TYPED: Final = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# Pages show one time for all; and a commit is the same whenever it is made.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_SOME_TIME: Final = "2026-01-31T12:00:00Z"
_GIT: Final = {
    f"GIT_{role}_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in (("NAME", "Author"), ("EMAIL", "author@example.com"), ("DATE", _SOME_TIME))
} | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
# Longer than anything takes, on a machine that is busy with others.
_SECONDS: Final = 60.0
_VARIABLE: Final = re.compile(r"[A-Z_]+=")


@dataclass(slots=True)
class Shell:
    """Knows `setpoint`, `curl`, `git`, `grep`, `ls`, `cat`, `mkdir`, `cp`, `rm` and `echo $?`.

    With variables before and in a line.

    And `setpoint run` in the background, which `kill` ends; `close` ends what is still running there.
    """

    code: int = 0
    _job: "subprocess.Popen[str] | None" = field(default=None)

    def run(self, line: str) -> str:
        """What the line prints: the working folder as `…`, and no spaces at the ends of lines."""
        words = shlex.split(os.path.expandvars(line))
        variables = list(takewhile(_VARIABLE.match, words))
        match words[len(variables) :]:
            case ["setpoint", "run", *arguments, "2>", log, "&"]:
                printed = self._begin(arguments, Path(log))
            case ["kill", "%1", "&&", "wait", "%1"]:
                printed, self.code = "", self._end()
            case ["setpoint", *arguments, ">", file]:
                Path(file).write_text(self._setpoint(arguments, {}), encoding="utf-8")
                printed = ""
            case ["setpoint", *arguments]:
                printed = self._setpoint(arguments, dict(word.split("=", 1) for word in variables))
            case ["curl", *arguments]:
                printed, self.code = _curl(arguments), 0
            case ["grep" | "git" | "ls" | "cat" | "mkdir" | "cp" | "rm", *_] as command:
                environment = {**os.environ, **_GIT}
                printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
            case ["echo", "$?"]:
                printed = f"{self.code}\n"
            case _:
                raise ValueError(f"a session cannot have this line: {line}")
        printed = _TIME.sub(_SOME_TIME, printed)
        return "".join(f"{one.rstrip()}\n" for one in printed.replace(str(Path.cwd()), "…").splitlines())

    def run_until(self, line: str, shown: str) -> str:
        """What the line prints; one that reads what a process in the background does is typed until it prints that."""
        printed = self.run(line)
        end = time.monotonic() + _SECONDS
        while self._job is not None and line.startswith("setpoint get") and printed != shown and time.monotonic() < end:
            printed = self.run(line)
        return printed

    def _setpoint(self, arguments: Sequence[str], environment: dict[str, str]) -> str:
        runner = CliRunner(env=environment)
        result = runner.invoke(main, arguments, prog_name="setpoint", catch_exceptions=False)
        self.code = result.exit_code
        output: str = result.output
        return output

    def _begin(self, arguments: Sequence[str], log: Path) -> str:
        command = [str(Path(sys.executable).with_name("setpoint")), "run", *arguments]
        self._job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._job.stderr is not None
        for line in self._job.stderr:
            with log.open("a", encoding="utf-8") as file:
                file.write(line)
            if '"event":"running"' in line:
                return ""
        raise ValueError(f"it ended before it ran: {log.read_text(encoding='utf-8')}")

    def _end(self) -> int:
        job, self._job = self._job, None
        assert job is not None
        job.terminate()
        job.communicate()
        return job.returncode

    def close(self) -> None:
        """Ends what is still running in the background."""
        if self._job is not None:
            self._end()


def _curl(arguments: Sequence[str]) -> str:
    """Of curl's options: -s, -o to throw the answer away, -X and -d."""
    pairs, (url,) = getopt.getopt(list(arguments), "so:X:d:")
    options = dict(pairs)
    data = options["-d"].encode() if "-d" in options else None
    with urlopen(Request(url, data, method=options.get("-X"))) as answer:
        text: str = answer.read().decode()
    return "" if "-o" in options else text
