"""Google's own clients against the local cloud on the loopback device. They are in an environment of their own."""

import asyncio
import threading
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from setpoint.localcloud.server import LocalCloud

# `make official-clients` has them; `make test` does not, and leaves these tests out.
collect_ignore_glob = [] if find_spec("google.pubsub_v1") else ["test_*.py"]


@pytest.fixture
def url() -> Iterator[str]:
    """The address of a local cloud that runs in a thread of its own, as the clients block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    cloud = LocalCloud(operation_seconds=0.01)
    asyncio.run_coroutine_threadsafe(cloud.start(), loop).result()
    yield cloud.url
    asyncio.run_coroutine_threadsafe(cloud.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
