"""The Kubernetes connection that an attribute `cluster` describes."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from setpoint.clients.kubernetes.contexts import (
    connection_from_environment,
    connection_from_files,
    connection_from_trusted_text,
    is_http,
    url_parts,
)
from setpoint.clients.kubernetes.kubeconfig import (
    BearerToken,
    CertificateAuthority,
    ClientCertificate,
    ClusterConnection,
    ExecPlugin,
    InlineText,
    Login,
    NoLogin,
    ServerTrust,
    SkipVerify,
    SystemRoots,
)
from setpoint.terraform.connections.clusters import cluster_error
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.framework.diagnostics import DiagnosticsError

_PEM: Final = "-----BEGIN "


def connection_for(cluster: CtyValue, environment: Mapping[str, str]) -> ClusterConnection:
    """The connection that a known `cluster` describes; UserError when something is missing or wrong."""
    attributes: AttributeValues = cluster if isinstance(cluster, Mapping) else {}
    context = _text_of(attributes, "context") or None
    if kubeconfig := _text_of(attributes, "kubeconfig"):
        return connection_from_trusted_text(kubeconfig, "cluster.kubeconfig", context)
    if config_path := _text_of(attributes, "config_path"):
        return connection_from_files([Path(config_path).expanduser()], context)
    return (
        _host_connection(attributes)
        if _text_of(attributes, "host")
        else connection_from_environment(environment, context)
    )


def _host_connection(attributes: AttributeValues) -> ClusterConnection:
    server = _server(_text_of(attributes, "host"))
    certificate = None
    if _text_of(attributes, "client_certificate"):
        pair = (InlineText(_pem(attributes, "client_certificate")), InlineText(_pem(attributes, "client_key")))
        certificate = ClientCertificate(*pair)
    return ClusterConnection(
        f"cluster.host {server}",
        server,
        _trust(attributes),
        _text_of(attributes, "server_name") or None,
        _proxy(_text_of(attributes, "proxy_url")),
        certificate=certificate,
        login=_login(attributes),
    )


def _server(host: str) -> str:
    parts = url_parts(host if "://" in host else f"https://{host}")
    if not is_http(parts):
        raise DiagnosticsError(cluster_error(f"host is {host!r}: write an address such as https://host:6443"))
    return f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")


def _proxy(address: str) -> str | None:
    if address and not is_http(url_parts(address)):
        # Without its value, which may have a password.
        raise DiagnosticsError(cluster_error("proxy_url is no address of a proxy: write one such as http://host:3128"))
    return address or None


def _trust(attributes: AttributeValues) -> ServerTrust:
    if attributes.get("insecure") is True:
        return SkipVerify()
    return (
        CertificateAuthority(_pem(attributes, "cluster_ca_certificate"))
        if _text_of(attributes, "cluster_ca_certificate")
        else SystemRoots()
    )


def _login(attributes: AttributeValues) -> Login:
    command = attributes.get("exec")
    if isinstance(command, Mapping):
        args, env = command.get("args"), command.get("env")
        return ExecPlugin(
            _text_of(command, "command"),
            tuple(str(one) for one in args) if isinstance(args, tuple) else (),
            tuple((name, str(text)) for name, text in env.items()) if isinstance(env, Mapping) else (),
            _text_of(command, "api_version") or "client.authentication.k8s.io/v1",
        )
    return BearerToken(InlineText(_text_of(attributes, "token"))) if _text_of(attributes, "token") else NoLogin()


def _pem(attributes: AttributeValues, name: str) -> str:
    text = _text_of(attributes, name)
    if _PEM in text:
        return text
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        # Without its cause, which would show the value.
        raise DiagnosticsError(cluster_error(f"{name} is neither PEM nor PEM in base64: write one of them")) from None


def _text_of(values: AttributeValues, name: str) -> str:
    found = values.get(name)
    return found if isinstance(found, str) else ""
