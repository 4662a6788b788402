"""What runs beside the tests: an event loop in a thread of its own, for a cloud and for proxies."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

# Enough for what a closed connection leaves to the loop.
_A_MOMENT: Final = 0.05
_PATIENCE: Final = 240.0
T = TypeVar("T")


class BackgroundLoop:
    """Ends with the `with` block; what was started there has to be stopped before."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="backstage")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(_end_everything())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What it comes to."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE)

    def call(self, verb: Callable[[], T]) -> T:
        """What `verb` comes to, between two events and not in the middle of one."""

        async def act() -> T:
            return verb()

        return self.run(act())


async def _end_everything() -> None:
    """What was cut off in the middle lets go of its connections: a loop that is closed cannot do that any more."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.sleep(_A_MOMENT)
