"""The handshake between Terraform and a provider process."""

import os
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.terraform.rpc.fork_client import COOKIE_NAME
from setpoint.terraform.rpc.handshake import (
    COOKIE,
    PluginHandshake,
    handshake_line,
    read_handshake,
    reattach_config,
)
from tests.terraform.keys import client_certificate

_ROOT = Path(__file__).parents[2]
_PROBE = [sys.executable, "-m", "tests.terraform.probe"]


def test_terraform_is_recognised_by_its_cookie() -> None:
    cookie = {COOKIE_NAME: COOKIE}

    assert read_handshake({}) is None
    assert read_handshake({COOKIE_NAME: "x"}) is None
    assert read_handshake(cookie) == PluginHandshake()
    assert read_handshake({**cookie, "PLUGIN_CLIENT_CERT": "c", "PLUGIN_UNIX_SOCKET_DIR": "d"}) == PluginHandshake(
        "c", "d"
    )


def test_the_line_has_six_parts_and_base64_without_padding() -> None:
    assert handshake_line("folder/s", b"1234") == "1|6|unix|folder/s|grpc|MTIzNA\n"


def test_the_reattach_config_has_what_terraform_needs() -> None:
    assert reattach_config("registry.terraform.io/acme/probe", "folder/s", 7) == (
        '{"registry.terraform.io/acme/probe":{"Protocol":"grpc","ProtocolVersion":6,"Pid":7,"Test":true,'
        '"Addr":{"Network":"unix","String":"folder/s"}}}'
    )


def test_a_user_who_runs_the_provider_gets_an_explanation() -> None:
    found = subprocess.run(_PROBE, env=_environment(), capture_output=True, text=True, check=False)

    assert (found.returncode, found.stdout) == (1, "")
    assert (
        found.stderr == "This is a provider for Terraform, which starts it by itself: it is no command to be typed.\n"
    )


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder whose path is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_nothing_but_the_line_is_on_standard_output_and_nothing_is_left_behind(tmp_path: Path, sockets: Path) -> None:
    pem, _ = client_certificate(tmp_path)
    handshake = {COOKIE_NAME: COOKIE, "PLUGIN_CLIENT_CERT": pem, "PLUGIN_UNIX_SOCKET_DIR": str(sockets)}
    environment = {**_environment(), "HOME": str(tmp_path), **handshake}
    with subprocess.Popen(_PROBE, env=environment, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        core, protocol, network, address, rpc, certificate = started.stdout.readline().rstrip("\n").split("|")
        folder, mode = Path(address).parent, Path(address).parent.stat().st_mode & 0o777
        started.terminate()
        rest, _ = started.communicate(timeout=240)

    assert (core, protocol, network, rpc) == ("1", "6", "unix", "grpc")
    assert b64decode(certificate + "==")[:1] == b"0"
    assert (folder.parent, mode) == (sockets, 0o700)
    assert (rest, started.returncode, list(sockets.iterdir())) == ("", 0, [])


def test_a_directory_that_is_too_long_for_a_socket_is_not_used(tmp_path: Path) -> None:
    far = tmp_path / ("x" * 100)
    far.mkdir()
    environment = {**_environment(), "HOME": str(tmp_path), "TMPDIR": str(far), COOKIE_NAME: COOKIE}
    with subprocess.Popen(_PROBE, env=environment, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        address = started.stdout.readline().split("|")[3]
        started.terminate()

    assert not address.startswith(str(far))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}"}
