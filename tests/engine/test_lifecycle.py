"""The lifecycle contract on every kind, and what of it makes no sense for which."""

import asyncio
import inspect
from pathlib import Path

import pytest

from tests.engine import lifecycle_waiting
from tests.engine.claim import Claim
from tests.engine.lifecycle import CHAPTERS, CLAIMS
from tests.engine.settings import SETTINGS, Setting

CASES = [
    pytest.param(setting, claim, id=f"{setting}: {claim.name}", marks=() if setting.is_usual else pytest.mark.slow)
    for setting in SETTINGS
    for claim in CLAIMS
    if claim.fits(setting.fixture)
]


@pytest.mark.parametrize(("setting", "claim"), CASES)
def test_lifecycle(setting: Setting, claim: Claim, tmp_path: Path) -> None:
    async def play() -> None:
        async with setting.harness(tmp_path) as harness:
            await claim.play(harness)

    asyncio.run(play())


def test_every_claim_is_played() -> None:
    written = {
        function
        for chapter in CHAPTERS
        for name, function in inspect.getmembers(chapter, inspect.iscoroutinefunction)
        if function.__module__ == chapter.__name__ and not name.startswith("_")
    }

    assert written - {claim.play for claim in CLAIMS} == {lifecycle_waiting.bring_target}
