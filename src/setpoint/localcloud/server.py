"""The local cloud over HTTP."""

import asyncio
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
from aiohttp import web

from setpoint.core.values.messages import printable
from setpoint.errors import UserError
from setpoint.localcloud.cloud import Cloud, CloudRequest

SERVER: Final = "setpoint-local-cloud (not Google)"
# A request that waits for a held clock would never finish.
_SHUTDOWN_SECONDS: Final = 0.1


class LocalCloud(Cloud):
    """The local cloud on a port of its own: `async with LocalCloud() as cloud: … cloud.url`."""

    _runner: web.ServerRunner | None = None
    _url: str = ""

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return self._url

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listens, on a free port when it is 0, and returns the URL."""
        runner = web.ServerRunner(web.Server(self._respond), shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await runner.cleanup()
            raise UserError(f"cannot listen on {host}:{port} ({error}): choose another port, or 0") from error
        self._runner = runner
        self._url = _url(host, runner.addresses[0][1])
        return self._url

    async def stop(self) -> None:
        """Stops listening and saves the state."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self.save()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _respond(self, incoming: web.BaseRequest) -> web.Response:
        request = CloudRequest(
            method=incoming.method,
            path=incoming.rel_url.raw_path,
            query=dict(incoming.rel_url.query),
            body=await incoming.read(),
            content_type=incoming.headers.get("Content-Type", ""),
            if_match=incoming.headers.get("If-Match", ""),
        )
        await self.clock.sleep(self.latency(request))
        answer = self.handle(request)
        if answer is None:
            if incoming.transport is not None:
                incoming.transport.abort()
            return web.Response()
        headers = {"Server": SERVER, "Vary": "Origin, X-Origin, Referer", **answer.headers}
        if answer.body is None:
            return web.Response(status=answer.status, headers=headers)
        headers["Content-Type"] = "application/json; charset=UTF-8"
        body = msgspec.json.encode(answer.body, order="sorted")
        return web.Response(status=answer.status, headers=headers, body=body)


def serve(host: str = "127.0.0.1", port: int = 0, state: Path | None = None) -> None:
    """Runs a local cloud until SIGINT or SIGTERM; prints where it is and what to set."""
    asyncio.run(_serve(host, port, state))


def announcement(url: str) -> str:
    """The variables that lead clients to the local cloud, as lines for a shell, and a comment that says what it is."""
    variables = {
        "STORAGE_EMULATOR_HOST": url,
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SQL": f"{url}/",
        "SETPOINT_GOOGLE_ENDPOINT": url,
        "SETPOINT_GCP_AUTH": "anonymous",
    }
    lines = [f"export {name}={value}" for name, value in variables.items()]
    about = (
        f"# setpoint local cloud, for demos and tests, not Google, at {url}: paste these lines into another terminal."
    )
    return "\n".join([*lines, about, ""])


async def _serve(host: str, port: int, state: Path | None) -> None:
    cloud = LocalCloud(state_file=state)
    # A file that cannot be written is told now, and not at the end.
    cloud.save()
    url = await cloud.start(host, port)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    sys.stdout.write(printable(announcement(url)))
    sys.stdout.flush()
    await stopped.wait()
    await cloud.stop()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
