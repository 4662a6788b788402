"""The go-plugin handshake: Terraform's environment variables, and the line on standard output that answers them."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

from setpoint.terraform.rpc.fork_client import COOKIE_NAME

PROTOCOL: Final = 6
COOKIE: Final = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
_CORE_PROTOCOL: Final = 1


class PluginHandshake(NamedTuple):
    """What Terraform passes to a provider that it starts."""

    # Terraform's client certificate for mutual TLS, in PEM; empty when it uses none.
    client_certificate: str = ""
    # The directory for the socket; empty for any.
    directory: str = ""


def read_handshake(environment: Mapping[str, str]) -> PluginHandshake | None:
    """The handshake in `environment`; None when Terraform did not start this process."""
    if environment.get(COOKIE_NAME) != COOKIE:
        return None
    # PLUGIN_PROTOCOL_VERSIONS is not read: only version 6 is offered, and Terraform reports best that it lacks it.
    return PluginHandshake(environment.get("PLUGIN_CLIENT_CERT", ""), environment.get("PLUGIN_UNIX_SOCKET_DIR", ""))


def handshake_line(socket: str, certificate: bytes) -> str:
    """The answer to Terraform: the socket on which the provider listens, and its server certificate (DER)."""
    # Terraform accepts base64 without padding only.
    encoded = b64encode(certificate).decode().rstrip("=")
    return f"{_CORE_PROTOCOL}|{PROTOCOL}|unix|{socket}|grpc|{encoded}\n"


def reattach_config(address: str, socket: str, process: int) -> str:
    """The value of TF_REATTACH_PROVIDERS that makes Terraform use this running provider instead of starting one."""
    import msgspec

    listener = {"Network": "unix", "String": socket}
    config = {"Protocol": "grpc", "ProtocolVersion": PROTOCOL, "Pid": process, "Test": True, "Addr": listener}
    return msgspec.json.encode({address: config}).decode()
