"""Selecting and importing in a cluster: the same as in a store in a file."""

import asyncio
from pathlib import Path

from setpoint.library.inspection.live_import import ImportQuery
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import PROJECT, bucket
from tests.cluster.running.test_sessions import opened
from tests.forking.processes import SETPOINT, Start, run

_DEADLINE = 300.0


def _run(harness: ControllerHarness, folder: Path, *arguments: str) -> tuple[int, str]:
    store = ("--store", f"kubernetes?namespace={harness.kubectl.namespace}")
    environment = {**harness.environment(harness.cloud.url), "HOME": str(folder)}
    done = run(Start((SETPOINT, arguments[0], *store, *arguments[1:]), folder, environment), _DEADLINE)
    return done.returncode, done.stdout or done.stderr


def test_resources_of_a_cluster_are_selected_and_what_exists_is_imported(
    shared_harness: ControllerHarness, tmp_path: Path
) -> None:
    async def main() -> None:
        async with opened(shared_harness) as session:
            labelled, plain = bucket("selected-one"), bucket("selected-two")
            labelled["metadata"]["labels"] = {"team": "web"}
            (await session.apply(labelled, plain)).raise_for_failures()
            found = await session.import_live(ImportQuery(PROJECT, ("StorageBucket",)))
            declared = {one.declared.name for one in found.skipped if one.declared is not None}
            assert declared >= {"selected-one", "selected-two"}

    asyncio.run(main())

    assert _run(shared_harness, tmp_path, "get", "-l", "team=web", "-o", "name") == (0, "StorageBucket/selected-one\n")
    chosen = ("--field-selector", "state=ready,name=selected-*", "--sort-by", ".metadata.name")
    names = ("-o", "jsonpath={.items[*].metadata.name}")
    printed = _run(shared_harness, tmp_path, "get", "StorageBucket", *chosen, *names)
    assert printed == (0, "selected-one selected-two\n")
    assert _run(shared_harness, tmp_path, "delete", "-l", "team=web", "--yes", "-q") == (0, "deleted 1\n")
    assert _run(shared_harness, tmp_path, "delete", "--field-selector", "name=selected-two", "-y", "-q")[0] == 0
