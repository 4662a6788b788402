"""Clients of the admin API that disconnect before the answer."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.runtime.admin_api_harness import AdminApiProcess


def test_a_client_that_disconnects_before_the_answer_causes_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(folder: Path) -> None:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            for turns in range(40):
                waiting = asyncio.create_task(process.client.wait_until_exit())
                for _ in range(turns):
                    await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.wait([waiting])
            await process.client.hello()

    # The path of a socket has to be short.
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder)))

    assert [record for record in caplog.records if record.exc_info] == []
