"""A process that does with manifests all that commands do, with a service that refuses and repeats what it is sent.

It reads lines with a seed and a number of manifests, and answers each with a line: `ok`, or what is wrong.
"""

import asyncio
import logging
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from setpoint.app import AppSettings, ClientWiring, StoreAccess, dry_run_apply, open_app, overlay_drafts
from setpoint.clients.http import HttpRequest, HttpResponse
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.yaml_documents import write_document
from setpoint.engine.context import EngineContext
from setpoint.engine.dependency_graph import dependency_graph
from setpoint.engine.resource import Resource
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import RemoteError, SetpointError
from setpoint.library.manifests.checks import check_manifests
from setpoint.library.manifests.reading import load_manifests
from setpoint.runtime import logs
from tests.security.admin_server import write
from tests.security.manifest_mutations import SECRET, manifest_text
from tests.security.secret_places import traces


class RepeatingService:
    """Knows nothing, and refuses every write with an error that repeats the body."""

    def on_request(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET":
            return HttpResponse(404, {}, b'{"error":{"code":404,"message":"no such thing"}}')
        message = f"this is wrong: {(request.body or b'').decode()}"
        return HttpResponse(400, {}, msgspec.json.encode({"error": {"code": 400, "message": message}}))

    def on_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        return response

    def on_error(self, request: HttpRequest, error: RemoteError) -> None:
        """Nothing is sent, so that nothing fails."""


class Reader:
    """Reads manifests, and collects all that a command would print."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "manifest.yaml"
        self._settings = AppSettings("memory:", environment={"SETPOINT_GCP_AUTH": "anonymous", "HOME": str(folder)})
        self.printed: list[str] = []
        self.counts: Counter[str] = Counter()

    async def read(self, seed: int) -> str:
        """What is wrong with what comes of a manifest; empty when all is well."""
        self.printed.clear()
        self._file.write_bytes(manifest_text(seed))
        try:
            await self._use()
        except SetpointError as error:
            self._note(error)
        except Exception:  # noqa: BLE001 - that there is none is to be shown
            return f"crash: {traceback.format_exc()}"
        return f"leak: {self.printed}" if traces(SECRET, "\n".join(self.printed).encode("utf-8", "replace")) else ""

    def _note(self, error: SetpointError) -> None:
        self.counts[type(error).__name__] += 1
        self.printed.append(str(error))

    async def _use(self) -> None:
        manifests = load_manifests([str(self._file)])
        async with open_app(self._settings, StoreAccess.WRITE, ClientWiring(lambda _: RepeatingService())) as opened:
            engine = opened.engine
            for manifest in manifests:
                try:
                    check_manifests([manifest], engine)
                    await self._use_one(manifest.tree, engine)
                except SetpointError as error:
                    self._note(error)

    async def _use_one(self, tree: JsonObject, engine: EngineContext) -> None:
        """As `plan`, `graph`, `apply` and `get` do one after the other."""
        drafted = await dry_run_apply(tree, engine)
        if drafted.ref.group_kind in engine.resource_types:
            draft = await overlay_drafts(engine, [drafted])
            self.printed.append(str(await _planned(drafted, draft)))
            self.printed.append(str(await dependency_graph([drafted], draft)))
        applied = await engine.store.apply(tree)
        self.printed.append(str(await step(applied.ref, engine)))
        self.counts["applied"] += 1
        kept = await engine.store.get(applied.ref)
        if kept is not None:
            self.printed += _views(kept, engine)


async def _planned(resource: Resource, engine: EngineContext) -> object:
    try:
        return await preview(resource.ref, engine)
    except SetpointError as error:
        return error


def _views(resource: Resource, engine: EngineContext) -> Iterator[str]:
    shown = engine.secret_fields.redacted(resource.document)
    yield write_document(shown)
    yield str(resource.status)


async def _first_problem(reader: Reader, seeds: range) -> str:
    for seed in seeds:
        if wrong := await reader.read(seed):
            return repr(f"seed {seed}: {wrong}")
    return "ok"


async def serve(folder: Path) -> None:
    """Answers each line of standard input with a line, as long as there are any."""
    reader, loop = Reader(folder), asyncio.get_running_loop()
    write("ready")
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line == "counts\n":
            write(str(dict(reader.counts.most_common())))
            continue
        first, number = map(int, line.split())
        write(await _first_problem(reader, range(first, first + number)))


if __name__ == "__main__":
    logs.configure(logs.LogFormat.JSON, logging.INFO, sys.stderr)
    with TemporaryDirectory() as scratch:
        asyncio.run(serve(Path(scratch)))
