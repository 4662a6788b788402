"""Every command of the page about moving succeeds, and only the first one writes."""

import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.cluster.fixtures import NewApiServer
from tests.cluster.server import Settings
from tests.deployment.conftest import Kubectl
from tests.deployment.terminal import Terminal, boxes_of
from tests.localcloud.process import cloud_process

PAGE = Path("docs/how-to/move-to-kubernetes.md")


def _writes(address: str) -> int:
    """The number of write requests to the cloud so far."""
    with urlopen(f"{address}/_local") as answer:
        overview: Any = json.load(answer)
    return int(overview["counts"]["writes"])


def test_every_command_of_the_page_succeeds_and_only_the_first_writes(
    new_api_server: NewApiServer, kubectl_alone: Kubectl, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_alone.program, new_api_server(Settings()).access)
    first, *boxes = boxes_of(PAGE)
    with cloud_process() as address:
        cloud = {
            "STORAGE_EMULATOR_HOST": address,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{address}/",
            "SETPOINT_GCP_AUTH": "anonymous",
        }
        terminal = Terminal(kubectl, tmp_path, environment=cloud)
        terminal.run(first)
        made = _writes(address)
        printed = [terminal.run(box) for box in boxes]

        assert _writes(address) == made > 0
    assert printed[3].count(" moved\n") == 2
    assert "in sync: nothing changed: fast path" in printed[4]
    assert printed[-1].count(" it counts as new, and is sent once\n") == 2
    assert len(boxes) == 11
