"""The loop of every watch of live objects: subscribe to a topic, report changes, subscribe again after a failure."""

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from setpoint.engine.capabilities import SupportsWatch, WatchTopic
from setpoint.engine.kind import Location
from setpoint.engine.ports import Clock
from setpoint.errors import SetpointError

_log: Final = logging.getLogger(__name__)
# How long to wait before a failed watch is started again. A kind retries by itself what it expects to fail.
REWATCH_SECONDS: Final = 60.0


async def watch_topic(
    kind: SupportsWatch, topic: WatchTopic, clock: Clock, *, on_change: Callable[[Location | None], None]
) -> None:
    """Calls `on_change` with the location of each change, or None when any object may have changed; until cancelled.

    No failure ends it: objects are observed at intervals as well, which finds the changes that it missed.
    """
    while True:
        try:
            async with aclosing(kind.changes(topic)) as changes:
                async for location in changes:
                    on_change(location)
        except SetpointError as error:
            _log.warning("watch failed", extra={"topic": topic, "why": str(error), "seconds": REWATCH_SECONDS})
        except Exception:  # noqa: BLE001 - a bug of the kind; steps go on without the watch
            _log.exception("watch broke", extra={"topic": topic, "seconds": REWATCH_SECONDS})
        await clock.sleep(REWATCH_SECONDS)
