"""Every command of the page about moving succeeds, and only the first one writes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.cluster.fixtures import NewApiServer
from tests.cluster.server import Settings
from tests.deployment.conftest import Kubectl
from tests.localcloud.process import cloud_process

PAGE = Path("docs/how-to/move-to-kubernetes.md").read_text(encoding="utf-8")
BOX = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _writes(address: str) -> int:
    """The number of write requests to the cloud so far."""
    with urlopen(f"{address}/_local") as answer:
        overview: Any = json.load(answer)
    return int(overview["counts"]["writes"])


def test_every_command_of_the_page_succeeds_and_only_the_first_writes(
    new_api_server: NewApiServer, kubectl_alone: Kubectl, tmp_path: Path
) -> None:
    cluster = new_api_server(Settings())
    programs = (str(kubectl_alone.program.parent), str(Path(sys.executable).parent))
    first, *boxes = BOX.findall(PAGE)
    with cloud_process() as address:
        environment = {
            "PATH": os.pathsep.join([*programs, os.environ["PATH"]]),
            "HOME": str(tmp_path),
            "KUBECONFIG": str(cluster.access.kubeconfig),
            "STORAGE_EMULATOR_HOST": address,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{address}/",
            "SETPOINT_GCP_AUTH": "anonymous",
        }

        def run(commands: str) -> str:
            line = ["bash", "-euxo", "pipefail", "-c", commands]
            done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run(first)
        made = _writes(address)
        printed = [run(box) for box in boxes]

        assert _writes(address) == made > 0
    assert printed[2].count(" moved\n") == 2
    assert "in sync: nothing changed: fast path" in printed[3]
    assert printed[-1].count(" it counts as new, and is sent once\n") == 2
    assert len(boxes) == 10
