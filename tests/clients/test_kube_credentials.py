"""Credentials for an API server: one login for all callers, renewed when it expires or is refused."""

import asyncio
import json
from base64 import b64encode
from pathlib import Path

import pytest

from setpoint.clients.kubernetes.credentials import ClusterIdentity, KubeconfigCredentials
from setpoint.clients.kubernetes.kubeconfig import (
    BasicAuth,
    BearerToken,
    ClientCertificate,
    ClusterConnection,
    FileText,
    Impersonation,
    InlineText,
    Login,
    NoLogin,
)
from setpoint.clients.transport.messages import Headers
from setpoint.errors import RemoteRefused
from tests.clients.exec_plugins import V1, printing, running, runs
from tests.clients.manual_time import ManualClock
from tests.cluster.certificates import Authority as Signer

SERVER = "https://a.test"
TOKEN = json.dumps({"apiVersion": V1, "status": {"token": "tRUN"}})


def to_cluster(login: Login) -> ClusterConnection:
    return ClusterConnection("context prod", SERVER, login=login)


def bearer(identity: ClusterIdentity) -> str:
    return identity.headers["Authorization"].removeprefix("Bearer ")


# --- Headers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("login", "header"),
    [
        (NoLogin(), None),
        (BearerToken(InlineText(" t\n")), "Bearer t"),
        (BasicAuth("me", "p:ü"), f"Basic {b64encode('me:p:ü'.encode()).decode()}"),
    ],
)
def test_sends_its_credentials(login: Login, header: str | None) -> None:
    identity = asyncio.run(KubeconfigCredentials(to_cluster(login)).identity())

    assert identity.headers.get("Authorization") == header


def test_impersonates_another_user() -> None:
    other = Impersonation("jane", "7", ("a", "b"), (("example.org/scope", ("x", "y")),))
    connection = ClusterConnection(
        "context prod", SERVER, login=BearerToken(InlineText("t")), impersonation=other, compressed=False
    )

    identity = asyncio.run(KubeconfigCredentials(connection).identity())

    assert list(Headers.of(identity.headers).fields) == [
        ("Authorization", "Bearer t"),
        ("Accept-Encoding", "identity"),
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.org%2Fscope", "x"),
        ("Impersonate-Extra-example.org%2Fscope", "y"),
    ]


def test_a_token_is_never_sent_in_the_clear() -> None:
    connection = ClusterConnection("context prod", "http://a.test", login=BearerToken(InlineText("t")))

    identity = asyncio.run(KubeconfigCredentials(connection).identity())

    assert (dict(identity.headers), identity.tls) == ({}, None)


def test_no_secret_is_printed() -> None:
    identity = asyncio.run(KubeconfigCredentials(to_cluster(BearerToken(InlineText("hunter2")))).identity())

    assert "hunter2" not in repr(identity)


@pytest.mark.parametrize("token", ["", " \n", "two words", "two\nlines", "ü"])
def test_an_invalid_token_is_not_sent(token: str) -> None:
    with pytest.raises(RemoteRefused, match="the token of the kubeconfig is none: it is empty, or has spaces in it"):
        asyncio.run(KubeconfigCredentials(to_cluster(BearerToken(InlineText(token)))).identity())


# --- Files ------------------------------------------------------------------------------------------------------------


def test_a_token_file_is_read_again_after_a_minute_and_when_its_token_is_refused(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", ManualClock()
    credentials = KubeconfigCredentials(to_cluster(BearerToken(FileText(file, "tokenFile"))), clock=clock)

    async def main() -> list[str]:
        seen = []
        for text, seconds, is_refused in [("a", 0, False), ("b", 59, False), ("b", 2, False), ("c", 1, True)]:
            file.write_text(text, encoding="utf-8")
            clock.advance(seconds)
            refused = await credentials.identity() if is_refused else None
            seen.append(bearer(await credentials.identity(refused)))
        return seen

    assert asyncio.run(main()) == ["a", "a", "b", "c"]


def test_a_new_token_needs_no_new_connections(tmp_path: Path) -> None:
    file = tmp_path / "token"
    credentials = KubeconfigCredentials(to_cluster(BearerToken(FileText(file, "tokenFile"))))

    async def main() -> list[ClusterIdentity]:
        file.write_text("a", encoding="utf-8")
        first = await credentials.identity()
        file.write_text("b", encoding="utf-8")
        return [first, await credentials.identity(refused=first)]

    first, second = asyncio.run(main())

    assert (bearer(first), bearer(second)) == ("a", "b")
    assert first.tls is second.tls


def test_a_file_that_has_not_changed_keeps_the_identity(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", ManualClock()
    file.write_text("a", encoding="utf-8")
    credentials = KubeconfigCredentials(to_cluster(BearerToken(FileText(file, "tokenFile"))), clock=clock)

    async def main() -> list[ClusterIdentity]:
        first = await credentials.identity()
        clock.advance(100)
        return [first, await credentials.identity(), await credentials.identity(refused=first)]

    first, second, third = asyncio.run(main())

    assert first is second is third


def test_while_its_file_is_missing_the_last_token_is_used(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", ManualClock()
    file.write_text("a", encoding="utf-8")
    credentials = KubeconfigCredentials(to_cluster(BearerToken(FileText(file, "tokenFile"))), clock=clock)

    async def main() -> str:
        await credentials.identity()
        file.unlink()
        clock.advance(100)
        return bearer(await credentials.identity())

    assert asyncio.run(main()) == "a"


def test_a_missing_token_file_is_reported(tmp_path: Path) -> None:
    credentials = KubeconfigCredentials(to_cluster(BearerToken(FileText(tmp_path / "token", "tokenFile"))))

    with pytest.raises(RemoteRefused) as caught:
        asyncio.run(credentials.identity())

    assert str(caught.value) == (
        f"cannot read tokenFile {tmp_path / 'token'}: No such file or directory: put it there, or allow it"
    )


def test_the_token_of_the_kubeconfig_replaces_a_missing_token_file(tmp_path: Path) -> None:
    credentials = KubeconfigCredentials(to_cluster(BearerToken(FileText(tmp_path / "token", "tokenFile"), "t")))

    assert bearer(asyncio.run(credentials.identity())) == "t"


def test_a_new_certificate_needs_a_new_tls_context(tmp_path: Path) -> None:
    signer, clock = Signer(), ManualClock()
    files = ClientCertificate(
        FileText(tmp_path / "crt", "client-certificate"), FileText(tmp_path / "key", "client-key")
    )
    credentials = KubeconfigCredentials(ClusterConnection("context prod", SERVER, certificate=files), clock=clock)

    async def main() -> list[ClusterIdentity]:
        seen = []
        for name in ("me", "me again"):
            pair = signer.for_user(name, [])
            (tmp_path / "crt").write_bytes(pair.certificate)
            (tmp_path / "key").write_bytes(pair.key)
            seen += [await credentials.identity(), await credentials.identity()]
            clock.advance(100)
        return seen

    first, same, other, _ = asyncio.run(main())

    assert first.tls is not None
    assert other.tls is not None
    assert first.tls is same.tls
    assert first.tls.context is not other.tls.context


# --- Exec plugins -----------------------------------------------------------------------------------------------------


def test_a_command_runs_once_for_all_callers(tmp_path: Path) -> None:
    credentials = KubeconfigCredentials(to_cluster(printing(tmp_path, TOKEN)))

    async def main() -> list[ClusterIdentity]:
        return await asyncio.gather(*(credentials.identity() for _ in range(20)))

    assert [bearer(one) for one in asyncio.run(main())] == ["t1"] * 20
    assert runs(tmp_path) == 1


def test_a_command_runs_again_when_what_it_printed_has_expired(tmp_path: Path) -> None:
    clock = ManualClock()
    status = {"token": "tRUN", "expirationTimestamp": "2999-01-01T00:00:00Z"}
    credentials = KubeconfigCredentials(
        to_cluster(printing(tmp_path, json.dumps({"apiVersion": V1, "status": status}))), clock=clock
    )

    async def main() -> list[str]:
        seen = [bearer(await credentials.identity())]
        clock.advance(3600)
        seen.append(bearer(await credentials.identity()))
        clock.advance(1000 * 366 * 86400)
        return [*seen, bearer(await credentials.identity())]

    assert asyncio.run(main()) == ["t1", "t1", "t2"]


def test_a_plugin_that_prints_expired_credentials_is_not_run_in_a_loop(tmp_path: Path) -> None:
    status = {"token": "tRUN", "expirationTimestamp": "2001-01-01T00:00:00Z"}
    credentials = KubeconfigCredentials(
        to_cluster(printing(tmp_path, json.dumps({"apiVersion": V1, "status": status}))), clock=ManualClock()
    )

    async def main() -> list[str]:
        return [bearer(await credentials.identity()) for _ in range(3)]

    assert asyncio.run(main()) == ["t1"] * 3


def test_a_refused_token_is_replaced_once_for_all_callers(tmp_path: Path) -> None:
    clock = ManualClock()
    credentials = KubeconfigCredentials(to_cluster(printing(tmp_path, TOKEN)), clock=clock)

    async def main() -> list[str]:
        first = await credentials.identity()
        clock.advance(60)
        together = await asyncio.gather(*(credentials.identity(refused=first) for _ in range(10)))
        return [bearer(one) for one in (*together, await credentials.identity(refused=first))]

    assert asyncio.run(main()) == ["t2"] * 11
    assert runs(tmp_path) == 2


def test_a_plugin_is_not_run_again_right_after_a_401(tmp_path: Path) -> None:
    credentials = KubeconfigCredentials(to_cluster(printing(tmp_path, TOKEN)), clock=ManualClock())

    async def main() -> bool:
        first = await credentials.identity()
        return await credentials.identity(refused=first) is first

    assert asyncio.run(main())
    assert runs(tmp_path) == 1


def test_a_failure_is_raised_to_all_callers_and_the_command_runs_again_later(tmp_path: Path) -> None:
    clock = ManualClock()
    script = f"import sys; open({str(tmp_path / 'runs')!r}, 'a').write('x'); sys.exit('no')"
    credentials = KubeconfigCredentials(to_cluster(running(script)), clock=clock)

    async def main() -> int:
        failed = await asyncio.gather(*(credentials.identity() for _ in range(5)), return_exceptions=True)
        failed += await asyncio.gather(credentials.identity(), return_exceptions=True)
        before = runs(tmp_path)
        clock.advance(10)
        failed += await asyncio.gather(credentials.identity(), return_exceptions=True)
        assert [type(one) for one in failed] == [RemoteRefused] * 7
        return before

    assert asyncio.run(main()) == 1
    assert runs(tmp_path) == 2


def test_a_cancelled_caller_does_not_stop_the_login_for_other_callers(tmp_path: Path) -> None:
    credentials = KubeconfigCredentials(to_cluster(printing(tmp_path, TOKEN)))

    async def main() -> str:
        first, second = (asyncio.create_task(credentials.identity()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        return bearer(await second)

    assert asyncio.run(main()) == "t1"
    assert runs(tmp_path) == 1
