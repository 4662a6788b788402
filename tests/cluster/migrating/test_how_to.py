"""The page about leaving Config Connector tells people what to type, and what they will see: so it goes."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any, Final

import pytest
import yaml

from tests.cli.test_transfer import writes
from tests.cli.workspace import Workspace
from tests.cluster.access import Access
from tests.cluster.migrating.config_connector_cluster import BUCKETS, ConfigConnectorCluster
from tests.docs.sessions import TYPED
from tests.scenarios.served_kinds import empty

PAGE: Final = Path("docs/how-to/leave-config-connector.md")
FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What was set by hand, as the page says.
BY_HAND: Final[dict[str, dict[str, Any]]] = {"photos": {"versioning": {"enabled": True}}}
NAMESPACE: Final = "team"
# What the author said, and what their controller remembers.
THEIR_OWN: Final = ("cnrm.cloud.google.com/project-id", "cnrm.cloud.google.com/last-changed-cookie")


class Reader:
    """A user with the programs and the cluster that the page is about."""

    def __init__(self, workspace: Workspace, kubectl: Path) -> None:
        self._desk = workspace
        self._path = os.pathsep.join([str(kubectl.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._code = 0

    def type(self, line: str) -> str:
        """What the line prints, without spaces at the ends of lines."""
        command = (which("bash") or "bash", "-c", f"(exit {self._code}); {line}")
        done = self._desk.run_program(*command, PATH=self._path, COLUMNS="300")
        self._code = done.returncode
        return "".join(f"{one.rstrip()}\n" for one in (done.stdout + done.stderr).splitlines())


@pytest.fixture
def team(cluster: Access, workspace: Workspace) -> Iterator[ConfigConnectorCluster]:
    """The namespace, with nothing in it yet that is looked after."""
    assert cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).status == 201
    yield ConfigConnectorCluster(cluster, NAMESPACE, workspace)
    empty(cluster, NAMESPACE)
    cluster.delete_namespace(NAMESPACE)


def test_the_page_goes_as_it_is_shown_and_nothing_is_written_to_the_cloud(
    team: ConfigConnectorCluster, kubectl_program: Path
) -> None:
    reader = Reader(team.workspace, kubectl_program)
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "yaml":
            declare(body, team)
        elif language == "console":
            for line, shown in TYPED.findall(body):
                assert (line, reader.type(line)) == (line, shown)
                if "Reconciling" in line:
                    assert_as_before(team)

    assert writes(team.workspace) == []
    assert team.cluster.call("GET", BUCKETS.format(NAMESPACE)).body["items"] == []


def assert_as_before(team: ConfigConnectorCluster) -> None:
    """Who went back has all of theirs as it was, but for what he said himself."""
    assert team.mode == "Reconciling"
    said = {name: set(team.resource(name)["metadata"]["annotations"]) - set(THEIR_OWN) for name in ("logs", "photos")}
    assert said == {"logs": set(), "photos": {"cnrm.cloud.google.com/default-to-gcp-fields"}}


def declare(manifests: str, team: ConfigConnectorCluster) -> None:
    """Config Connector created what is declared here, and it was edited since."""
    for manifest in yaml.safe_load_all(manifests):
        team.settle(manifest, BY_HAND.get(manifest["metadata"]["name"], {}))
    team.workspace.in_cloud(lambda cloud: cloud.journal.clear())
