"""The tutorial about kinds: a new package, its environment, its tests, an object, a real cluster, and a wheel."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.access import Access
from tests.cluster.children import last_lines
from tests.docs.reader_shell import ReaderShell, install_setpoint
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


@pytest.fixture
def shell(api_server: Access, kubectl_program: Path, tmp_path: Path) -> Iterator[ReaderShell]:
    """A new shell; what the page makes in the cluster is deleted in the end."""
    home = tmp_path / "home"
    home.mkdir()
    opened = ReaderShell(home, [kubectl_program.parent], _PORT, {"KUBECONFIG": str(api_server.kubeconfig)})
    yield opened
    opened.close()
    for made in (_CRD, _NAMESPACE):
        api_server.call("DELETE", made)


@pytest.mark.slow
def test_a_reader_gets_from_nothing_to_an_object_in_a_cluster(shell: ReaderShell) -> None:
    fences = FENCE.findall(_PAGE.read_text(encoding="utf-8"))
    for language, body in [*fences, *FENCE.findall(_PUBLISHING.read_text(encoding="utf-8"))]:
        for line, shown in TYPED.findall(body) if language == "console" else ():
            printed = _run(shell, line)
            assert is_shown(printed, shown), f"$ {line}\n{printed}\n{_log(shell)}"
            if line == "make test":
                assert re.search(r"\d{3} passed, \d+ skipped", printed), printed

    made = shell.home / "setpoint-greenhouse"
    (python,), (toml,) = ([body for language, body in fences if language == one] for one in ("python", "toml"))
    assert python == (made / "src" / "setpoint_greenhouse" / "greenhouse.py").read_text(encoding="utf-8")
    assert toml in (made / "pyproject.toml").read_text(encoding="utf-8")


def _run(shell: ReaderShell, line: str) -> str:
    if line == "pip install setpoint":
        return install_setpoint(shell.home / "kinds")
    printed = shell.run(line)
    if "service.py" in line:
        shell.wait_until_served()
    return printed


def _log(shell: ReaderShell) -> str:
    """What the operator has said."""
    return last_lines(shell.home / "setpoint-greenhouse" / "run.log")
