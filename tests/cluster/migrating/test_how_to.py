"""The how-to page about leaving Config Connector, on a cluster with its kinds alone: commands print what it shows."""

import os
import re
from pathlib import Path
from shutil import which
from typing import Any, Final

import pytest
import yaml

from tests.cli.test_transfer import writes
from tests.cli.workspace import Workspace
from tests.cluster.access import Access
from tests.cluster.migrating.config_connector_cluster import BUCKETS, ConfigConnectorCluster
from tests.cluster.migrating.config_connector_crds import install_config_connector
from tests.cluster.server import Cluster
from tests.docs.sessions import TYPED
from tests.forking.processes import path_with_launcher

PAGE: Final = Path("docs/how-to/leave-config-connector.md")
FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Settings of the cloud that are not declared, as the page says.
BY_HAND: Final[dict[str, dict[str, Any]]] = {"photos": {"versioning": {"enabled": True}}}
NAMESPACE: Final = "team"
# Annotations of the author and of Config Connector.
EXISTING_ANNOTATIONS: Final = ("cnrm.cloud.google.com/project-id", "cnrm.cloud.google.com/last-changed-cookie")


class Terminal:
    """A shell with the programs and the cluster of the page."""

    def __init__(self, workspace: Workspace, kubectl: Path) -> None:
        self._workspace = workspace
        self._path = os.pathsep.join([str(kubectl.parent), path_with_launcher(workspace.folder / "bin")])
        self._code = 0

    def type(self, line: str) -> str:
        """The output of the line, without trailing spaces."""
        command = (which("bash") or "bash", "-c", f"(exit {self._code}); {line}")
        done = self._workspace.run_program(*command, PATH=self._path, COLUMNS="300")
        self._code = done.returncode
        return "".join(f"{one.rstrip()}\n" for one in (done.stdout + done.stderr).splitlines())


@pytest.fixture
def cluster(own_api_server: Cluster) -> Access:
    """A cluster with the CustomResourceDefinitions of Config Connector, and none of ours."""
    install_config_connector(own_api_server.access)
    return own_api_server.access


@pytest.fixture
def team(cluster: Access, workspace: Workspace) -> ConfigConnectorCluster:
    """The namespace of the page, without resources."""
    annotations = {"cnrm.cloud.google.com/project-id": "demo"}
    made = cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "annotations": annotations}})
    assert made.status == 201
    return ConfigConnectorCluster(cluster, NAMESPACE, workspace)


def test_every_command_prints_what_the_page_shows_and_nothing_is_written_to_the_cloud(
    team: ConfigConnectorCluster, kubectl_program: Path
) -> None:
    terminal = Terminal(team.workspace, kubectl_program)
    for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if language == "yaml":
            declare(body, team)
        elif language == "console":
            for line, shown in TYPED.findall(body):
                assert (line, terminal.type(line)) == (line, shown)
                if "Reconciling" in line:
                    assert_as_before(team)

    assert writes(team.workspace) == []
    assert team.cluster.call("GET", BUCKETS.format(NAMESPACE)).body["items"] == []


def assert_as_before(team: ConfigConnectorCluster) -> None:
    """After going back, the resources are as before, apart from the annotations that the page sets."""
    assert team.mode == "Reconciling"
    added = {
        name: set(team.resource(name)["metadata"]["annotations"]) - set(EXISTING_ANNOTATIONS)
        for name in ("logs", "photos")
    }
    assert added == {"logs": set(), "photos": {"cnrm.cloud.google.com/default-to-gcp-fields"}}


def declare(manifests: str, team: ConfigConnectorCluster) -> None:
    """Creates the resources of the page, as Config Connector leaves them."""
    for manifest in yaml.safe_load_all(manifests):
        team.settle(manifest, BY_HAND.get(manifest["metadata"]["name"], {}))
    team.workspace.in_cloud(lambda cloud: cloud.journal.clear())
