"""The examples: each is applied, planned again with nothing to write, and deleted."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.cli.programs import DEADLINE
from tests.cli.workspace import user_environment
from tests.cluster.access import Access
from tests.forking.processes import SETPOINT, Start, run
from tests.localcloud.process import cloud_process

_EXAMPLES: Final = Path("examples").resolve()
_IN_A_CLUSTER: Final = "cluster"
# What an apply, a plan and a deletion end with. A Secret is declared, and has no plan.
_SUMMARIES: Final = {
    "messages": ["created 7", "unchanged 7", "deleted 7"],
    "network": ["created 7", "unchanged 7", "deleted 7"],
    "shop": ["created 7", "unchanged 6", "deleted 7"],
    _IN_A_CLUSTER: ["created 2", "unchanged 2", "deleted 2"],
}


class Reader:
    """Runs commands on an example, in a folder with a store of its own."""

    def __init__(self, folder: Path, environment: dict[str, str], options: Sequence[str] = ()) -> None:
        self._folder = folder
        self._environment = {**user_environment(), "HOME": str(folder), "SETPOINT_GCP_AUTH": "anonymous", **environment}
        self._options = options

    def summary(self, command: str, example: str) -> tuple[int, str]:
        """The exit code of the command, and the last line that it prints."""
        words = (SETPOINT, command, *self._options, "-f", str(_EXAMPLES / example))
        done = run(Start(words, self._folder, self._environment), DEADLINE)
        return done.returncode, (done.stdout + done.stderr).splitlines()[-1]


@pytest.fixture(scope="module")
def cloud() -> Iterator[str]:
    """The address of a local cloud in a process of its own."""
    with cloud_process() as address:
        yield address


def test_every_example_is_tried() -> None:
    assert {folder.name for folder in _EXAMPLES.iterdir() if folder.is_dir()} == _SUMMARIES.keys()


@pytest.mark.parametrize("example", sorted(_SUMMARIES.keys() - {_IN_A_CLUSTER}))
def test_an_example_is_applied_and_stays_as_it_is(example: str, cloud: str, tmp_path: Path) -> None:
    variables = {
        "STORAGE_EMULATOR_HOST": cloud,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{cloud}/",
        "SETPOINT_GOOGLE_ENDPOINT": cloud,
    }
    reader = Reader(tmp_path, variables)

    ended = [reader.summary(command, example) for command in ("apply", "plan", "delete")]

    assert ended == [(0, summary) for summary in _SUMMARIES[example]]


def test_the_example_for_a_cluster(api_server: Access, namespace: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path, {"KUBECONFIG": str(api_server.kubeconfig)}, ("-n", namespace))
    objects = f"/api/v1/namespaces/{namespace}"

    applied = reader.summary("apply", _IN_A_CLUSTER)
    settings = api_server.call("GET", f"{objects}/configmaps/shop-settings").body["data"]
    address = api_server.call("GET", f"{objects}/services/shop").body["spec"]["clusterIP"]

    ended = [applied, *(reader.summary(command, _IN_A_CLUSTER) for command in ("plan", "delete"))]

    assert settings == {"address": address}
    assert ended == [(0, summary) for summary in _SUMMARIES[_IN_A_CLUSTER]]
