"""Only the Terraform that started a provider gets through its door."""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from setpoint.terraform.rpc.tls_proxy import PluginCertificate, TlsProxy, load_or_create_certificate, mutual_tls
from tests.terraform.keys import client_certificate


@pytest.fixture
def certificate(tmp_path: Path) -> PluginCertificate:
    return load_or_create_certificate(tmp_path, None, datetime.now(UTC))


async def _echo(reader: StreamReader, writer: StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def _door(folder: Path, context: ssl.SSLContext | None) -> AsyncIterator[TlsProxy]:
    behind = await asyncio.start_unix_server(_echo, folder / "behind")
    front = TlsProxy()
    try:
        await front.start(folder / "door", folder / "behind", context)
        yield front
    finally:
        await front.close()
        behind.close()


def _as_client(server: PluginCertificate, own: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=server.der)
    context.set_alpn_protocols(["h2"])
    if own is not None:
        context.load_cert_chain(own)
    return context


async def _said_back(folder: Path, context: ssl.SSLContext | None, data: bytes) -> bytes:
    name = "localhost" if context else None
    reader, writer = await asyncio.open_unix_connection(folder / "door", ssl=context, server_hostname=name)
    try:
        writer.write(data)
        return await reader.readexactly(len(data))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def test_who_has_the_key_gets_through(tmp_path: Path, certificate: PluginCertificate) -> None:
    pem, own = client_certificate(tmp_path)
    data = b"0123456789abcdef" * 100_000

    async def exchange() -> bytes:
        async with _door(tmp_path, mutual_tls(certificate, pem)):
            return await _said_back(tmp_path, _as_client(certificate, own), data)

    assert asyncio.run(exchange()) == data


def test_who_has_no_key_or_another_one_does_not(tmp_path: Path, certificate: PluginCertificate) -> None:
    pem, own = client_certificate(tmp_path)
    _, another = client_certificate(tmp_path)

    async def exchange() -> bytes:
        async with _door(tmp_path, mutual_tls(certificate, pem)):
            for wrong in (None, another):
                with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
                    await _said_back(tmp_path, _as_client(certificate, wrong), b"let me in")
            return await _said_back(tmp_path, _as_client(certificate, own), b"me")

    assert asyncio.run(exchange()) == b"me"


def test_what_is_behind_cannot_be_reached_past_the_door(tmp_path: Path, certificate: PluginCertificate) -> None:
    pem, _ = client_certificate(tmp_path)

    async def exchange() -> None:
        async with _door(tmp_path, mutual_tls(certificate, pem)):
            with pytest.raises(FileNotFoundError):
                await asyncio.open_unix_connection(tmp_path / "behind")

    asyncio.run(exchange())


def test_when_the_last_one_has_gone_it_is_told(tmp_path: Path) -> None:
    async def exchange() -> bool:
        async with _door(tmp_path, None) as front:
            await _said_back(tmp_path, None, b"hello")
            await asyncio.wait_for(front.disconnected.wait(), 60)
            return front.disconnected.is_set()

    assert asyncio.run(exchange())
