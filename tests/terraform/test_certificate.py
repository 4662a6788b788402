"""The server certificate: created once, cached where no other user can read it, replaced before it expires."""

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.terraform.rpc.tls_proxy import _certificate_time, cache_directory, load_or_create_certificate

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "home" / "cache"


def test_the_certificate_is_created_once(run: Path, cache: Path) -> None:
    first = load_or_create_certificate(run, cache, NOW)
    second = load_or_create_certificate(run, cache, NOW + timedelta(days=27))

    assert second.der == first.der
    assert second.file == run / "server.pem"


def test_the_certificate_is_replaced_before_it_expires(run: Path, cache: Path) -> None:
    first = load_or_create_certificate(run, cache, NOW)

    assert load_or_create_certificate(run, cache, NOW + timedelta(days=29)).der != first.der


def test_a_certificate_that_is_not_valid_yet_is_replaced(run: Path, cache: Path) -> None:
    first = load_or_create_certificate(run, cache, NOW)

    assert load_or_create_certificate(run, cache, NOW - timedelta(days=1)).der != first.der


def test_only_the_user_can_read_the_certificate(run: Path, cache: Path) -> None:
    load_or_create_certificate(run, cache, NOW)

    assert [one.name for one in cache.iterdir()] == ["server.pem"]
    assert (cache.stat().st_mode & 0o777, (cache / "server.pem").stat().st_mode & 0o777) == (0o700, 0o600)
    assert (run / "server.pem").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_certificate_that_another_user_could_read_is_not_used(run: Path, cache: Path, mode: int) -> None:
    first = load_or_create_certificate(run, cache, NOW)
    (cache / "server.pem").chmod(mode)

    assert load_or_create_certificate(run, cache, NOW).der != first.der
    assert (cache / "server.pem").stat().st_mode & 0o777 == 0o600


def test_a_certificate_in_a_directory_that_another_user_can_write_is_not_used(run: Path, cache: Path) -> None:
    first = load_or_create_certificate(run, cache, NOW)
    cache.chmod(0o777)

    assert load_or_create_certificate(run, cache, NOW).der != first.der
    assert cache.stat().st_mode & 0o777 == 0o700


def test_a_symbolic_link_to_a_certificate_is_not_used(run: Path, cache: Path, tmp_path: Path) -> None:
    first = load_or_create_certificate(run, cache, NOW)
    target = (cache / "server.pem").rename(tmp_path / "elsewhere.pem")
    (cache / "server.pem").symlink_to(target)

    assert load_or_create_certificate(run, cache, NOW).der != first.der


@pytest.mark.parametrize(
    "text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_certificate_that_cannot_be_parsed_is_replaced(run: Path, cache: Path, text: str) -> None:
    load_or_create_certificate(run, cache, NOW)
    (cache / "server.pem").write_text(text)
    made = load_or_create_certificate(run, cache, NOW)

    assert made.der == ssl.PEM_cert_to_DER_cert(_certificate_of(cache / "server.pem"))


def test_without_a_cache_each_process_creates_its_own_certificate(run: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")

    assert load_or_create_certificate(run, None, NOW).der != load_or_create_certificate(run, blocked / "cache", NOW).der


def test_a_tls_server_loads_the_certificate(run: Path, cache: Path) -> None:
    made = load_or_create_certificate(run, cache, NOW)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made.file)

    assert made.der == ssl.PEM_cert_to_DER_cert(_certificate_of(made.file))


def test_the_cache_directory_follows_the_environment() -> None:
    assert cache_directory({"HOME": "h", "XDG_CACHE_HOME": "x"}) == Path("x/setpoint/terraform")
    assert cache_directory({"HOME": "h"}) == Path("h/.cache/setpoint/terraform")
    assert cache_directory({}) is None
    assert os.environ.get("HOME") is None or cache_directory(os.environ) is not None


def _certificate_of(file: Path) -> str:
    text = file.read_text()
    return text[text.index("-----BEGIN CERTIFICATE-----") :]


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(lambda one: one.replace(microsecond=0)))  # noqa: DTZ001
def test_times_of_certificates_are_read_as_the_standard_library_reads_them(time: datetime) -> None:
    text = time.strftime("%b %e %H:%M:%S %Y GMT")

    assert _certificate_time(text) == datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)
