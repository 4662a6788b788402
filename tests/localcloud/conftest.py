"""A local cloud for each test: in this process, or over HTTP on the loopback device."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest
from aiohttp import ClientSession

from setpoint.localcloud.clock import CloudClock
from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.server import LocalCloud
from tests.localcloud.requests import OPERATION_SECONDS, START, held_cloud

Scenario: TypeAlias = Callable[[LocalCloud, ClientSession], Awaitable[None]]


@pytest.fixture
def cloud() -> Cloud:
    """A local cloud in this process, its clock held."""
    return held_cloud()


@pytest.fixture
def over_http() -> Callable[[Scenario], None]:
    """Runs a scenario with a local cloud over HTTP, with a held clock, and a client of it."""

    async def run(scenario: Scenario) -> None:
        listening = LocalCloud(clock=CloudClock(START), operation_seconds=OPERATION_SECONDS)
        async with listening as cloud, ClientSession(cloud.url) as client:
            await scenario(cloud, client)

    return lambda scenario: asyncio.run(run(scenario))
