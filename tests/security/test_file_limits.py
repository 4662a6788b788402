"""Files and messages of a limited size: manifests, exports, recorded worlds, and requests to the admin API."""

import asyncio
import gzip
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from setpoint.cli.commands import transfer
from setpoint.cli.commands.transfer import load_export
from setpoint.clients.admin_api import APPLY_PATH, MAX_MESSAGE, socket_link
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, SetpointError, UserError
from setpoint.kinds.kubernetes_object.manifest import manifest_of, spec_of
from setpoint.library.manifests.reading import load_manifests
from setpoint.replay import world_file
from setpoint.replay.http_recording import HttpRecording
from setpoint.replay.world_file import RecordedWorld, WorldHeader, pack_world, read_world
from tests.engine.gadget_fixture import gadget
from tests.runtime.admin_api_harness import AdminApiProcess

HEADER = WorldHeader("1.2.3", "2026-01-01T00:00:00Z", "sqlite", "7", collects=False, whole=True)
ENDLESS = "/dev/zero"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: that of a socket is limited."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


# --- Manifests and exports --------------------------------------------------------------------------------------------


def test_a_manifest_without_an_end_is_refused() -> None:
    with pytest.raises(ManifestInvalid, match=r"^/dev/zero: larger than 8 MiB: split it$"):
        load_manifests([ENDLESS])


def test_an_export_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_MAX_EXPORT_BYTES", 2**20)

    with pytest.raises(ManifestInvalid, match=r"^/dev/zero: larger than 1 MiB: split it$"):
        load_export([ENDLESS])


def test_an_export_of_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_MAX_EXPORT_VALUES", 1000)
    file = tmp_path / "export.json"
    file.write_text('{"a":[' + "[]," * 1000 + "0]}", encoding="utf-8")

    with pytest.raises(ManifestInvalid, match=r"this has more than 1,000 values: export in parts$"):
        load_export([str(file)])


def test_an_export_that_could_not_be_imported_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_MAX_EXPORT_BYTES", 2**20)

    with pytest.raises(UserError, match=r"^the export is larger than 1 MiB: export in parts, by namespace"):
        list(transfer._within_limit(["x" * 2**19] * 3))


def test_a_manifest_in_text_has_a_limited_number_of_values() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: [" + "0," * 100_000 + "0]"
    metadata = {"name": "one", "namespace": "default"}
    spec = {"manifest": text}
    document: JsonObject = {"apiVersion": "a/v1", "kind": "KubernetesObject", "metadata": metadata, "spec": spec}
    resource = Resource(document)

    with pytest.raises(ManifestInvalid, match=r"more than 100000 values: write less of it"):
        manifest_of(resource, spec_of(resource))


# --- Recorded worlds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (b"0" * (4 * 2**20), "is larger than 1 MiB, decompressed: name another file"),
        (b"\n" * 1_001, "has more than 1,000 lines: name another file"),
        (b"[" + b"0," * 2_001, "has more than 2,000 values: name another file"),
        (b"[" * 1_000, "is nested deeper than 255 levels: name another file"),
    ],
    ids=["bytes", "lines", "values", "depth"],
)
def test_a_world_beyond_the_limits_is_refused(
    lines: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in (("MAX_WORLD", 2**20), ("_MAX_LINES", 1_000), ("_MAX_VALUES", 2_000)):
        monkeypatch.setattr(world_file, name, limit)
    file = tmp_path / "world"
    file.write_bytes(gzip.compress(lines, 1))

    with pytest.raises(UserError, match=why):
        read_world(file)


def test_a_world_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_file, "MAX_WORLD", 2**20)

    with pytest.raises(UserError, match=r"^/dev/zero is no recorded world"):
        read_world(Path(ENDLESS))


def test_a_world_that_could_not_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world_file, "MAX_WORLD", 10)

    with pytest.raises(UserError, match=r"^the recorded world is larger than 0 MiB, decompressed: record fewer"):
        pack_world(RecordedWorld(HEADER, (), frozenset(), frozenset(), HttpRecording()))


# --- The admin API ----------------------------------------------------------------------------------------------------


async def post(path: Path, body: bytes, **headers: str) -> tuple[int, str]:
    """The response to any bytes."""
    connector = aiohttp.UnixConnector(str(socket_link(path)))
    async with (
        aiohttp.ClientSession("http://setpoint", connector=connector) as session,
        session.post(APPLY_PATH, data=BytesIO(body), headers=headers) as response,
    ):
        return response.status, (await response.json())["message"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"x" * (MAX_MESSAGE + 1), "larger than 16 MiB: apply it in parts"),
        (b'{"manifests":[' + b"{}," * 300_000 + b"{}]}", "this has more than 300,000 values: apply it in parts"),
        (b'{"manifests":[' + b"[" * 100_000, "this is nested deeper than 256 levels: apply it in parts"),
        (b'{"manifests":["\xff"]}', "the running process cannot read this"),
        (b'{"manifests":[1]}', "the running process cannot read this"),
        (b'{"manifests":[{"a":"\xff"}]}', "the running process cannot read this"),
        (b'{"manifests":[{}', "the running process cannot read this"),
    ],
    ids=["bytes", "values", "depth", "not UTF-8", "no manifest", "not UTF-8 inside", "truncated"],
)
def test_a_message_beyond_the_limits_is_refused_and_the_next_one_served(body: bytes, why: str, folder: Path) -> None:
    async def main() -> tuple[int, str]:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            found = await post(process.path, body)
            await process.apply(gadget("a", {"size": 1}))
            return found

    status, message = asyncio.run(main())

    assert status == 422
    assert message.startswith(why)


def test_a_compressed_message_is_not_decompressed(folder: Path) -> None:
    bomb = gzip.compress(b" " * (64 * 2**20))

    async def main() -> tuple[int, str]:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            return await post(process.path, bomb, **{"Content-Encoding": "gzip"})

    assert asyncio.run(main())[0] == 422


def test_a_message_that_is_too_large_is_not_sent(folder: Path) -> None:
    async def main() -> str:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            with pytest.raises(SetpointError) as refused:
                await process.apply(gadget("a", {"size": "x" * MAX_MESSAGE}))
            return str(refused.value)

    assert asyncio.run(main()) == "larger than 16 MiB: apply it in parts"


def test_a_truncated_request_is_no_bug(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with AdminApiProcess(folder / "state.db").serving() as process:
            reader, writer = await asyncio.open_unix_connection(str(socket_link(process.path)))
            writer.write(b"POST /v1/apply HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()
            writer.close()
            await reader.read()
            await process.apply(gadget("a", {"size": 1}))

    asyncio.run(main())

    assert "request broke" not in caplog.text
