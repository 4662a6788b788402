"""An event loop in a thread of its own, for the local cloud and for proxies."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

# Transports are closed in later iterations of the loop.
_CLOSE_SECONDS: Final = 0.05
_TIMEOUT_SECONDS: Final = 240.0
T = TypeVar("T")


class BackgroundLoop:
    """Runs during the `with` block; stop the servers on it before."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="background")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run(_cancel_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT_SECONDS)
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_TIMEOUT_SECONDS)

    def call(self, verb: Callable[[], T]) -> T:
        """The result of a function that is called on the loop."""

        async def act() -> T:
            return verb()

        return self.run(act())


async def _cancel_tasks() -> None:
    """Cancelled tasks close their connections, which a closed loop cannot."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for one in tasks:
        one.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.sleep(_CLOSE_SECONDS)
