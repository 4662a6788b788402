"""What holds for all manifests: an apply leaves nothing to plan, and the store that the command leaves."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.app import AppSettings
from setpoint.cli.commands.apply import apply
from setpoint.cli.request import CommandRequest
from setpoint.cli.views.terminal import SafeConsole
from tests.library.test_results import without_chance
from tests.library.worlds import World, bucket, world

pytestmark = pytest.mark.laws

specs = st.fixed_dictionaries(
    {},
    optional={
        "versioning": st.fixed_dictionaries({"enabled": st.booleans()}),
        "storageClass": st.sampled_from(("STANDARD", "NEARLINE")),
        "uniformBucketLevelAccess": st.booleans(),
    },
)
fleets = st.dictionaries(st.sampled_from(("one", "two", "three")), specs, min_size=1)


def manifests_of(fleet: dict[str, Any]) -> list[dict[str, Any]]:
    """A bucket for each."""
    return [bucket(name, **spec) for name, spec in fleet.items()]


# Each example opens two clouds: a quarter of the usual number.
@settings(max_examples=max(5, settings.default.max_examples // 4) if settings.default is not None else 5)
@given(fleets, fleets)
def test_an_apply_leaves_nothing_to_plan_and_the_same_store_as_the_command(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with world(Path(folder)) as here:
                by_command = [await _by_command(manifests_of(one), here, Path(folder)) for one in (first, second)]
            (Path(folder) / "state.db").unlink()
            async with world(Path(folder)) as here, here.open() as session:
                await session.apply(manifests_of(first))
                before = without_chance((await session.list()).to_data())
                await session.apply(manifests_of(second))
                after = without_chance((await session.list()).to_data())

                assert (await session.plan(manifests_of(second))).is_done
            assert [before, after] == by_command

    asyncio.run(main())


async def _by_command(manifests: list[dict[str, Any]], here: World, folder: Path) -> Any:
    """The resources after `setpoint apply`."""
    file = folder / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    settings = AppSettings(here.store, environment=here.environment)
    assert await apply(CommandRequest(settings, SafeConsole(quiet=True), (str(file),))) == 0
    async with here.open() as session:
        return without_chance((await session.list()).to_data())
