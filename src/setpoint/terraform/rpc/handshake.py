"""The go-plugin handshake: Terraform's environment variables, and the line on standard output that answers them."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

import msgspec

PROTOCOL: Final = 6
COOKIE_NAME: Final = "TF_PLUGIN_MAGIC_COOKIE"
COOKIE: Final = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
_CORE_PROTOCOL: Final = 1


class PluginHandshake(msgspec.Struct, frozen=True):
    """What Terraform says when it starts a provider."""

    # The certificate by which Terraform will prove who it is, in PEM; empty when it does not.
    client_certificate: str = ""
    # Where the socket is to be; empty when that is all the same.
    folder: str = ""


def read_handshake(environment: Mapping[str, str]) -> PluginHandshake | None:
    """What Terraform says; None when it was not Terraform that started this process."""
    if environment.get(COOKIE_NAME) != COOKIE:
        return None
    # The versions that Terraform speaks are in PLUGIN_PROTOCOL_VERSIONS. There is only this one to offer: when it is
    # not among them, Terraform says so best.
    return PluginHandshake(environment.get("PLUGIN_CLIENT_CERT", ""), environment.get("PLUGIN_UNIX_SOCKET_DIR", ""))


def handshake_line(socket: str, certificate: bytes) -> str:
    """The answer: where the provider listens, and the certificate (DER) by which it proves who it is."""
    # Terraform decodes base64 without padding alone.
    proof = b64encode(certificate).decode().rstrip("=")
    return f"{_CORE_PROTOCOL}|{PROTOCOL}|unix|{socket}|grpc|{proof}\n"


def reattach_config(address: str, socket: str, process: int) -> str:
    """What TF_REATTACH_PROVIDERS has to say for Terraform to use a provider that runs already, and not to start one."""
    where = {"Network": "unix", "String": socket}
    says = {"Protocol": "grpc", "ProtocolVersion": PROTOCOL, "Pid": process, "Test": True, "Addr": where}
    return msgspec.json.encode({address: says}).decode()
