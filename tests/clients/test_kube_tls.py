"""TLS to an API server: which servers are trusted, and the client certificate."""

import asyncio
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.credentials import KubeconfigCredentials, tls_context
from setpoint.clients.kubernetes.exec_plugin import PemKeyPair
from setpoint.clients.kubernetes.kubeconfig import (
    CertificateAuthority,
    ClientCertificate,
    ClusterConnection,
    InlineText,
    ServerTrust,
    SkipVerify,
    SystemRoots,
)
from setpoint.clients.transport.opening import TlsOptions
from setpoint.errors import RemoteError, RemoteRefused
from tests.clients.exec_plugins import V1, printing
from tests.clients.loopback_servers import http_server
from tests.cluster.certificates import Authority as Signer
from tests.cluster.certificates import KeyPair

SIGNER = Signer()
CA = CertificateAuthority(SIGNER.certificate.decode())


def server_side(folder: Path, *names: str, asks_for: Signer | None = None) -> ssl.SSLContext:
    """The TLS context of a server with these names; `asks_for` is the authority of required client certificates."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load(context, SIGNER.for_server(*names), folder)
    if asks_for is not None:
        context.load_verify_locations(cadata=asks_for.certificate.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def load(context: ssl.SSLContext, pair: KeyPair, folder: Path) -> None:
    (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(folder / "pair.pem")


async def returns_the_client_name(request: web.BaseRequest) -> web.Response:
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return web.Response(text=" ".join(names) or "anonymous")


def ask(server: ssl.SSLContext, connection: ClusterConnection) -> HttpResponse:
    async def main() -> HttpResponse:
        http = HttpClient()
        async with http_server(returns_the_client_name, server) as url:
            identity = await KubeconfigCredentials(connection).identity()
            try:
                return await http.send(HttpRequest("GET", f"{url}/path", tls=identity.tls))
            finally:
                await http.close()

    return asyncio.run(main())


def trusting(trust: ServerTrust, server_name: str | None = None) -> ClusterConnection:
    return ClusterConnection("context prod", "https://a.test", trust, server_name)


def test_trusts_certificates_of_its_authority(tmp_path: Path) -> None:
    assert ask(server_side(tmp_path, "localhost"), trusting(CA)).status == 200


@pytest.mark.parametrize("trust", [SystemRoots(), CertificateAuthority(Signer().certificate.decode())])
def test_trusts_no_other_authority(trust: ServerTrust, tmp_path: Path) -> None:
    with pytest.raises(RemoteRefused) as caught:
        ask(server_side(tmp_path, "localhost"), trusting(trust))

    assert str(caught.value).startswith("GET /path: 127.0.0.1:")
    assert "shows a certificate that is not to be trusted: " in str(caught.value)
    assert str(caught.value).endswith(". Check the address, and which certificate authority is named for it")


def test_verifies_the_name_of_the_server(tmp_path: Path) -> None:
    server = server_side(tmp_path, "kubernetes")

    assert ask(server, trusting(CA, "kubernetes")).status == 200
    with pytest.raises(RemoteRefused, match="Hostname mismatch, certificate is not valid for 'other'"):
        ask(server, trusting(CA, "other"))


@pytest.mark.parametrize("name", [".", ".a.test", "a" * 64, "a..b"])
def test_a_name_that_no_certificate_can_have_is_no_address(name: str, tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match=r"^GET /path: (that is not an address$|.*shows a certificate)"):
        ask(server_side(tmp_path, "kubernetes"), trusting(CA, name))


def test_skips_verification_if_configured(tmp_path: Path) -> None:
    assert ask(server_side(tmp_path, "other"), trusting(SkipVerify())).status == 200


def test_sends_the_client_certificate(tmp_path: Path) -> None:
    pair = SIGNER.for_user("me", [])
    certificate = ClientCertificate(InlineText(pair.certificate.decode()), InlineText(pair.key.decode()))
    connection = ClusterConnection("context prod", "https://a.test", CA, certificate=certificate)

    assert ask(server_side(tmp_path, "localhost", asks_for=SIGNER), connection).body == b"me"


def test_sends_the_certificate_of_an_exec_plugin(tmp_path: Path) -> None:
    pair = SIGNER.for_user("me", [])
    printed = (
        f'{{"apiVersion": "{V1}", "status": {{"clientCertificateData": {_quoted(pair.certificate)}, '
        f'"clientKeyData": {_quoted(pair.key)}}}}}'
    )
    connection = ClusterConnection("context prod", "https://a.test", CA, login=printing(tmp_path, printed))

    assert ask(server_side(tmp_path, "localhost", asks_for=SIGNER), connection).body == b"me"


def _quoted(pem: bytes) -> str:
    return '"' + pem.decode().replace("\n", "\\n") + '"'


def test_verifies_the_server_through_a_proxy(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split()[0])
        host, port = head.split()[1].decode().split(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))

    async def main() -> list[int | str]:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        http = HttpClient(f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        seen: list[int | str] = []
        async with http_server(returns_the_client_name, server_side(tmp_path, "kubernetes")) as url, proxy:
            for name in ("kubernetes", "other"):
                tls = TlsOptions(tls_context(trusting(CA), None), name)
                try:
                    seen.append((await http.send(HttpRequest("GET", f"{url}/path", tls=tls))).status)
                except RemoteRefused as error:
                    seen.append(type(error).__name__)
            await http.close()
        return seen

    assert asyncio.run(main()) == [200, "RemoteRefused"]
    assert asked == [b"CONNECT", b"CONNECT"]


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while some := await reader.read(65536):
        writer.write(some)
    writer.close()


def test_no_connection_outlives_its_client(tmp_path: Path) -> None:
    """Even if the server has neither answered nor shut down TLS."""
    asked, is_over = threading.Event(), threading.Event()

    def keep_silent(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with server_side(tmp_path, "localhost").wrap_socket(accepted, server_side=True) as connection:
            connection.recv(1024)
            asked.set()
            is_over.wait()

    async def main(port: int) -> list[str]:
        http, tls = HttpClient(), TlsOptions(tls_context(trusting(CA), None), "localhost")
        before = _sockets()
        asking = asyncio.create_task(http.send(HttpRequest("GET", f"https://127.0.0.1:{port}/", tls=tls)))
        await asyncio.to_thread(asked.wait)
        asking.cancel()
        await asyncio.wait([asking])
        await http.close()
        return sorted(_sockets() - before)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        pool.submit(keep_silent, listener)
        try:
            left = asyncio.run(main(listener.getsockname()[1]))
        finally:
            is_over.set()

    assert left == []


def _sockets() -> set[str]:
    """The sockets that the running event loop waits for."""
    selector: Any = getattr(asyncio.get_running_loop(), "_selector")  # noqa: B009 - private to asyncio
    return {repr(key.fileobj) for key in selector.get_map().values()}


@pytest.mark.parametrize("pem", ["", "nothing", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"])
def test_an_invalid_authority_is_reported(pem: str) -> None:
    with pytest.raises(RemoteRefused) as caught:
        tls_context(trusting(CertificateAuthority(pem)), None)

    assert str(caught.value) == "context prod: its certificate authority is no certificate in PEM: write it anew"


def locked(pair: KeyPair) -> PemKeyPair:
    """A pair with an encrypted key: OpenSSL would prompt for its password at the terminal."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key = serialization.load_pem_private_key(pair.key, None)
    return PemKeyPair(
        pair.certificate.decode(),
        key.private_bytes(encoding, form, serialization.BestAvailableEncryption(b"hunter2")).decode(),
    )


ONE, OTHER = SIGNER.for_user("me", []), SIGNER.for_user("me", [])


@pytest.mark.parametrize(
    "pair",
    [
        PemKeyPair("", ""),
        PemKeyPair("nothing", "nothing"),
        PemKeyPair(ONE.certificate.decode(), OTHER.key.decode()),
        locked(ONE),
    ],
    ids=["empty", "no PEM", "another key", "with a password"],
)
def test_an_unusable_client_certificate_is_reported(pair: PemKeyPair) -> None:
    with pytest.raises(RemoteRefused, match="context prod: its client certificate and key do not fit together, or"):
        tls_context(trusting(SystemRoots()), pair)


def test_no_key_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    tls_context(trusting(CA), PemKeyPair(ONE.certificate.decode(), ONE.key.decode()))
    with pytest.raises(RemoteRefused):
        tls_context(trusting(CA), PemKeyPair(ONE.certificate.decode(), OTHER.key.decode()))

    assert list(tmp_path.iterdir()) == []
