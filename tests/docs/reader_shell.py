"""A shell for the commands of a tutorial, as its reader types them: one that stays open, in an empty home directory."""

import os
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from threading import Timer
from typing import Final

from tests.cluster.polling import until

_ROOT: Final = Path(__file__).parents[2]
_END: Final = "the line has ended"
# Long enough for a busy machine: a deadline, not an assertion.
_TIMEOUT_S: Final = 600.0


class ReaderShell:
    """A shell that stays open from one line to the next. `port` stands on the page for one that is free here."""

    def __init__(self, home: Path, programs: Sequence[Path], port: str, variables: Mapping[str, str]) -> None:
        self.home = home
        self._page_port = port
        self.port = str(_free_port())
        path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        # Nothing is downloaded: pip finds what the project was set up with.
        pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment = {"PATH": path, "HOME": str(home), "PYTHONUTF8": "1", **pip, **variables}
        self._bash = subprocess.Popen(
            ["bash"],
            cwd=home,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, line: str) -> str:
        """What the line prints; the exit code is kept for `echo $?`."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        # Behind a line break: the output need not end with one.
        end = f"code=$?; printf '\\n{_END}\\n'; (exit $code)"
        self._bash.stdin.write(f"{line.replace(self._page_port, self.port)}\n{end}\n")
        self._bash.stdin.flush()
        watchdog = Timer(_TIMEOUT_S, self._bash.kill)
        watchdog.start()
        printed = "".join(takewhile(f"{_END}\n".__ne__, self._bash.stdout)).removesuffix("\n")
        watchdog.cancel()
        return printed.replace(self.port, self._page_port).replace(str(self.home), "~")

    def wait_until_served(self) -> None:
        """Until a server listens on the port."""
        until(self._is_served)

    def close(self) -> None:
        """Ends it, and what it has started."""
        os.killpg(self._bash.pid, 9)
        self._bash.communicate()

    def _is_served(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", int(self.port))) == 0


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def install_setpoint(environment: Path) -> str:
    """Installs a wheel of setpoint. Other packages are those of this environment, without setpoint itself."""
    own = next(environment.glob("lib/*/site-packages"))
    (own / "installed_packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    wheels = environment / "wheels"
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels), str(_ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *build], capture_output=True, check=True)
    install = ["install", "--no-deps", "--no-index", "--ignore-installed", *map(str, wheels.iterdir())]
    subprocess.run([environment / "bin" / "python", "-m", "pip", *install], capture_output=True, check=True)
    return ""
