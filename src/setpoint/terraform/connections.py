"""The connection that an attribute `cluster` comes to."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from setpoint.clients.kube_config import connection_from, from_files, from_own_text
from setpoint.clients.kube_connection import (
    Anybody,
    Authority,
    Bearer,
    Certificate,
    Connection,
    Exec,
    Inline,
    Login,
    Nobody,
    SystemRoots,
    Trust,
)
from setpoint.terraform.cluster_attribute import wrong
from setpoint.terraform.cty_values import Value, Values
from setpoint.terraform.diagnostics import Refused

_PEM: Final = "-----BEGIN "


def connection_of(cluster: Value, environment: Mapping[str, str]) -> Connection:
    """The connection that a `cluster` means, all of which is known; UserError says what is missing or wrong."""
    said: Values = cluster if isinstance(cluster, Mapping) else {}
    context = _said(said, "context") or None
    if kubeconfig := _said(said, "kubeconfig"):
        return from_own_text(kubeconfig, "cluster.kubeconfig", context)
    if config_path := _said(said, "config_path"):
        return from_files([Path(config_path).expanduser()], context)
    return _at_host(said) if _said(said, "host") else connection_from(environment, context)


def _at_host(said: Values) -> Connection:
    host = _said(said, "host")
    server = (host if "://" in host else f"https://{host}").rstrip("/")
    certificate = None
    if _said(said, "client_certificate"):
        pair = (Inline(_pem(said, "client_certificate")), Inline(_pem(said, "client_key")))
        certificate = Certificate(*pair)
    return Connection(
        f"cluster.host {server}",
        server,
        _trust(said),
        _said(said, "server_name") or None,
        _said(said, "proxy_url") or None,
        certificate=certificate,
        login=_login(said),
    )


def _trust(said: Values) -> Trust:
    if said.get("insecure") is True:
        return Anybody()
    return Authority(_pem(said, "cluster_ca_certificate")) if _said(said, "cluster_ca_certificate") else SystemRoots()


def _login(said: Values) -> Login:
    command = said.get("exec")
    if isinstance(command, Mapping):
        args, env = command.get("args"), command.get("env")
        return Exec(
            _said(command, "command"),
            tuple(str(one) for one in args) if isinstance(args, tuple) else (),
            tuple((name, str(text)) for name, text in env.items()) if isinstance(env, Mapping) else (),
            _said(command, "api_version") or "client.authentication.k8s.io/v1",
        )
    return Bearer(Inline(_said(said, "token"))) if _said(said, "token") else Nobody()


def _pem(said: Values, name: str) -> str:
    text = _said(said, name)
    if _PEM in text:
        return text
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        # Without its cause, which would show the value.
        raise Refused(wrong(f"{name} is neither PEM nor PEM in base64: write one of them")) from None


def _said(values: Values, name: str) -> str:
    found = values.get(name)
    return found if isinstance(found, str) else ""
