"""Records the kept world: something of every kind and every owner, as the current implementations leave it.

`python -m tests.replay.record_kept_world` writes it again.
"""

import gzip
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from tests.cli.workspace import Workspace
from tests.cluster.access import Access
from tests.cluster.assets import Assets, Missing, find
from tests.cluster.progress import Progress
from tests.cluster.server import Cluster, Settings

MANIFESTS: Final = Path("tests/replay/kept_world.yaml")
# A line for each resource and each answer, so that a reader sees what has changed.
KEPT: Final = Path("tests/replay/kept_world.jsonl")


def record_world(cluster: Access, folder: Path) -> bytes:
    """The recorded world after everything that is declared in it was created and settled."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    surroundings = {"PYTHONUTF8": "1", "KUBECONFIG": str(cluster.kubeconfig), "OPERATOR_IMAGE_NAME": "operator:1"}
    with Workspace(folder, {**kept, **surroundings}) as workspace:
        workspace.write(MANIFESTS.read_text(encoding="utf-8"))
        # No kubelet runs here: Trustees are as declared, and never ready.
        workspace.run("apply", "-f", "manifest.yaml", "--timeout", "240s")
        done = workspace.run("record", "--to", "world.gz")
        assert done.returncode == 0, done.stdout + done.stderr
        return (folder / "world.gz").read_bytes()


def main() -> int:
    """Writes it; 1 and the reason when there is no API server."""
    found = find(os.environ, Progress(lambda line: click.echo(line, err=True)))
    match found:
        case Missing(reason):
            click.echo(reason, err=True)
            return 1
        case Assets():
            with tempfile.TemporaryDirectory() as folder:
                places = [Path(folder) / name for name in ("cluster", "workspace")]
                for place in places:
                    place.mkdir()
                with Cluster(found, places[0], Settings()) as cluster:
                    KEPT.write_bytes(gzip.decompress(record_world(cluster.access, places[1])))
            return 0


if __name__ == "__main__":
    sys.exit(main())
