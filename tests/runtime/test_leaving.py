"""Commands that leave before the process that owns their store has answered."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.runtime.owner import Owner


def test_whoever_leaves_before_the_answer_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(folder: Path) -> None:
        async with Owner(folder / "state.db").listening() as owner:
            for turns in range(40):
                waiting = asyncio.create_task(owner.daemon.wait_until_exit())
                for _ in range(turns):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
            await owner.daemon.hello()

    # The path of a socket has to be short.
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))

    assert [record for record in caplog.records if record.exc_info] == []
