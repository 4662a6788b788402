"""What commands import: only what they use. Anything else would take longer than what they do."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from setpoint.app import described_types
from setpoint.localcloud.server import LocalCloud

# An HTTP server and what comes with it; credentials; the parts of a long-running process; drawing on a terminal.
NEVER: Final = (
    *("aiohttp", "attr", "email", "http", "multidict", "requests", "yarl"),
    *("google.auth", "cryptography", "grpc", "prometheus_client"),
    *("setpoint.localcloud", "setpoint.terraform", "setpoint.deployment", "setpoint.runtime.manager"),
    *("setpoint.clients.kubernetes.client", "setpoint.stores.kubernetes"),
    *("rich.live", "rich.progress", "rich.table", "rich.traceback", "rich.markdown"),
)
YAML: Final = "yaml"
KINDS: Final = (
    *("setpoint.kinds.gcp.sql_database", "setpoint.kinds.gcp.sql_instance", "setpoint.kinds.gcp.sql_user"),
    *("setpoint.kinds.gcp.storage_bucket", "setpoint.kinds.kubernetes_object.kind", "setpoint.kinds.trustee"),
)
PROGRAM: Final = f"""
import atexit, json, sys

def report():
    ours = [module for name, module in sys.modules.items() if name.startswith("setpoint.")]
    classes = {{one for module in ours for one in vars(module).values() if isinstance(one, type)}}
    init = [vars(one).get("__init__") for one in classes if "__dataclass_fields__" in vars(one)]
    unused = sum(type(one).__name__ == "_Deferred" for one in init)
    names = [name for name in {(*NEVER, YAML, *KINDS)!r} if name in sys.modules]
    print(json.dumps([names, len(ours), len(init), unused]), file=sys.stderr)

atexit.register(report)
from setpoint.cli.entry import main
main()
"""
BUCKET: Final = """
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: logs, annotations: {cnrm.cloud.google.com/project-id: acme}}
"""


@dataclass(frozen=True)
class Imports:
    """What a command imported: of the listed modules, of ours, of our data classes; and its exit code."""

    names: Sequence[str]
    ours: int
    dataclasses: int
    never_made: int
    code: int | None


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Imports]:
    """The imports of each command, in the order in which they run."""
    folder = tmp_path_factory.mktemp("imports")
    (folder / "bucket.yaml").write_text(BUCKET, encoding="utf-8")

    async def imported(cloud: LocalCloud, words: str) -> Imports:
        own = {"SETPOINT_GCP_AUTH": "anonymous", "STORAGE_EMULATOR_HOST": cloud.url}
        kept = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, *words.split()),
            cwd=folder,
            env=kept | own,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await process.communicate()
        names, ours, dataclasses, never_made = json.loads(errors)
        return Imports(names, ours, dataclasses, never_made, process.returncode)

    async def main() -> dict[str, Imports]:
        commands = ("plan -f bucket.yaml", "apply -f bucket.yaml", "get", "get StorageBucket/logs")
        others = ("--help", "version", "completion bash", "get --help")
        async with LocalCloud() as cloud:
            return {words: await imported(cloud, words) for words in (*commands, *others)}

    return asyncio.run(main())


def test_a_command_imports_the_kinds_of_its_manifests_alone(imports: dict[str, Imports]) -> None:
    bucket = ["yaml", "setpoint.kinds.gcp.storage_bucket"]

    assert {words: (one.names, one.code) for words, one in imports.items() if one.ours > 20} == {
        "plan -f bucket.yaml": (bucket, 2),
        "apply -f bucket.yaml": (bucket, 0),
        "get": ([], 0),
        "get StorageBucket/logs": ([], 0),
    }


def test_few_of_our_modules_are_imported(imports: dict[str, Imports]) -> None:
    most = {
        **{"plan -f bucket.yaml": 210, "apply -f bucket.yaml": 208, "get": 180, "get StorageBucket/logs": 180},
        **{"--help": 4, "version": 15, "completion bash": 15, "get --help": 15},
    }

    assert {words: (one.ours, most[words]) for words, one in imports.items() if one.ours > most[words]} == {}


def test_most_data_classes_are_imported_without_their_methods(imports: dict[str, Imports]) -> None:
    commands = [one for one in imports.values() if one.ours > 20]

    assert [one for one in commands if one.dataclasses < 100 or one.never_made < one.dataclasses / 3] == []


def test_the_name_of_a_kind_is_known_before_it_is_imported() -> None:
    types = described_types()

    assert len(types) == 11
    assert {name: (one.group, one.name) for name, one in types.items()} == {name: name for name in types}
