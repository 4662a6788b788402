"""Only the Terraform that started a provider is forwarded to gRPC."""

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
async def _started_proxy(folder: Path, context: ssl.SSLContext | None) -> AsyncIterator[TlsProxy]:
    grpc_server = await asyncio.start_unix_server(_echo, folder / "grpc")
    proxy = TlsProxy(disconnected_s=0)
    try:
        await proxy.start(folder / "provider", folder / "grpc", context)
        yield proxy
    finally:
        await proxy.close()
        grpc_server.close()


def _as_client(server: PluginCertificate, own: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=server.der)
    context.set_alpn_protocols(["h2"])
    if own is not None:
        context.load_cert_chain(own)
    return context


async def _echoed(folder: Path, context: ssl.SSLContext | None, data: bytes) -> bytes:
    name = "localhost" if context else None
    reader, writer = await asyncio.open_unix_connection(folder / "provider", ssl=context, server_hostname=name)
    try:
        writer.write(data)
        return await reader.readexactly(len(data))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def test_a_client_with_the_key_is_forwarded(tmp_path: Path, certificate: PluginCertificate) -> None:
    pem, own = client_certificate(tmp_path)
    data = b"0123456789abcdef" * 100_000

    async def exchange() -> bytes:
        async with _started_proxy(tmp_path, mutual_tls(certificate, pem)):
            return await _echoed(tmp_path, _as_client(certificate, own), data)

    assert asyncio.run(exchange()) == data


def test_a_client_without_the_key_or_with_another_one_is_rejected(
    tmp_path: Path, certificate: PluginCertificate
) -> None:
    pem, own = client_certificate(tmp_path)
    _, another = client_certificate(tmp_path)

    async def exchange() -> bytes:
        async with _started_proxy(tmp_path, mutual_tls(certificate, pem)):
            for wrong in (None, another):
                with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
                    await _echoed(tmp_path, _as_client(certificate, wrong), b"let me in")
            return await _echoed(tmp_path, _as_client(certificate, own), b"me")

    assert asyncio.run(exchange()) == b"me"


def test_grpc_cannot_be_reached_past_the_proxy(tmp_path: Path, certificate: PluginCertificate) -> None:
    pem, _ = client_certificate(tmp_path)

    async def exchange() -> None:
        async with _started_proxy(tmp_path, mutual_tls(certificate, pem)):
            with pytest.raises(FileNotFoundError):
                await asyncio.open_unix_connection(tmp_path / "grpc")

    asyncio.run(exchange())


def test_it_is_disconnected_when_the_last_client_has_closed(tmp_path: Path) -> None:
    async def exchange() -> bool:
        async with _started_proxy(tmp_path, None) as proxy:
            await _echoed(tmp_path, None, b"hello")
            await asyncio.wait_for(proxy.disconnected.wait(), 60)
            return proxy.disconnected.is_set()

    assert asyncio.run(exchange())
