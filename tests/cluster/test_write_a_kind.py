"""The tutorial about kinds: a new package, its environment, its tests, an object, a real cluster, and a wheel."""

import os
import re
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from threading import Timer
from typing import Final

import pytest

from tests.cluster.access import Access
from tests.cluster.children import last_lines
from tests.cluster.polling import until
from tests.docs.sessions import TYPED
from tests.terraform.test_tutorial import FENCE, is_shown

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are ended by their session, as on Linux")
_ROOT: Final = Path(__file__).parents[2]
_PAGE: Final = _ROOT / "docs" / "tutorials" / "write-a-kind.md"
_PUBLISHING: Final = _ROOT / "docs" / "how-to" / "publish-a-plug-in.md"
_CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/greenhouses.garden.example.com"
_NAMESPACE: Final = "/api/v1/namespaces/garden"
# The port of the service on the page.
_PORT: Final = "8080"
_END: Final = "the line has ended"
# Long enough for a busy machine: a deadline, not an assertion.
_TIMEOUT_S: Final = 600.0


class ReaderShell:
    """A shell that stays open from one line to the next, with an empty home directory."""

    def __init__(self, home: Path, programs: Sequence[Path], kubeconfig: Path) -> None:
        self.home = home
        self.port = str(_free_port())
        path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        # Nothing is downloaded: pip finds what the project was set up with.
        pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment = {"PATH": path, "HOME": str(home), "KUBECONFIG": str(kubeconfig), "PYTHONUTF8": "1", **pip}
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
        """What the line prints."""
        if line == "pip install setpoint":
            return _install_setpoint(self.home / "kinds")
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        # Behind a line break: the output need not end with one.
        self._bash.stdin.write(f"{line.replace(_PORT, self.port)}\nprintf '\\n{_END}\\n'\n")
        self._bash.stdin.flush()
        watchdog = Timer(_TIMEOUT_S, self._bash.kill)
        watchdog.start()
        printed = "".join(takewhile(f"{_END}\n".__ne__, self._bash.stdout)).removesuffix("\n")
        watchdog.cancel()
        if "service.py" in line:
            until(self._is_served)
        return printed.replace(self.port, _PORT).replace(str(self.home), "~")

    def log(self) -> str:
        """What the operator has said."""
        return last_lines(self.home / "setpoint-greenhouse" / "run.log")

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


def _install_setpoint(environment: Path) -> str:
    """Installs a wheel of setpoint. Other packages are those of this environment, without setpoint itself."""
    own = next(environment.glob("lib/*/site-packages"))
    (own / "installed_packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    wheels = environment / "wheels"
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels), str(_ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *build], capture_output=True, check=True)
    install = ["install", "--no-deps", "--no-index", "--ignore-installed", *map(str, wheels.iterdir())]
    subprocess.run([environment / "bin" / "python", "-m", "pip", *install], capture_output=True, check=True)
    return ""


@pytest.fixture
def shell(api_server: Access, kubectl_program: Path, tmp_path: Path) -> Iterator[ReaderShell]:
    """A new shell; what the page makes in the cluster is deleted in the end."""
    home = tmp_path / "home"
    home.mkdir()
    opened = ReaderShell(home, [kubectl_program.parent], api_server.kubeconfig)
    yield opened
    opened.close()
    for made in (_CRD, _NAMESPACE):
        api_server.call("DELETE", made)


@pytest.mark.slow
def test_a_reader_gets_from_nothing_to_an_object_in_a_cluster(shell: ReaderShell) -> None:
    fences = FENCE.findall(_PAGE.read_text(encoding="utf-8"))
    for language, body in [*fences, *FENCE.findall(_PUBLISHING.read_text(encoding="utf-8"))]:
        for line, shown in TYPED.findall(body) if language == "console" else ():
            printed = shell.run(line)
            assert is_shown(printed, shown), f"$ {line}\n{printed}\n{shell.log()}"
            if line == "make test":
                assert re.search(r"\d{3} passed, \d+ skipped", printed), printed

    made = shell.home / "setpoint-greenhouse"
    (python,), (toml,) = ([body for language, body in fences if language == one] for one in ("python", "toml"))
    assert python == (made / "src" / "setpoint_greenhouse" / "greenhouse.py").read_text(encoding="utf-8")
    assert toml in (made / "pyproject.toml").read_text(encoding="utf-8")
