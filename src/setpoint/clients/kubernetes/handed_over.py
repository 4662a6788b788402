"""Kubeconfigs that are handed over in Secrets: nothing of this machine is used for them, and a tenant's reaches no
server but API servers of other clusters."""

import re
from dataclasses import replace
from typing import Final, NoReturn
from urllib.parse import urlsplit

from setpoint.clients.kubernetes.contexts import ContextResolver, context_name
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection, MergedKubeconfig, SkipVerify, load_text
from setpoint.clients.sockets import AddressPolicy
from setpoint.errors import UserError

_HOST_AND_PORT: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
# A path in front of that of the API, where one host has several API servers.
_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*")


def connection_from_untrusted_text(
    text: str, source: str, context: str | None = None, *, addresses: AddressPolicy | None = None
) -> ClusterConnection:
    """The connection of `context` in a kubeconfig, or of its current context; `source` names it in messages.

    It may not read files or run commands of this machine: UserError. With `addresses` it is a tenant's, and may not
    use this machine to reach what is not the tenant's either: `_require_tenant_server`.
    """
    config = load_text(text, source)
    name = context_name(config, context)
    _require_self_contained(config, name)
    connection = ContextResolver(config, name).connection()
    if addresses is None:
        return connection
    _require_tenant_server(connection, addresses)
    return replace(connection, addresses=addresses)


def _require_self_contained(config: MergedKubeconfig, name: str) -> None:
    context = config.contexts[name].value
    cluster, user = config.clusters.get(context.cluster), config.users.get(context.user)
    references = {
        "certificate-authority": cluster is not None and cluster.value.certificate_authority,
        "client-certificate": user is not None and user.value.client_certificate,
        "client-key": user is not None and user.value.client_key,
        "tokenFile": user is not None and user.value.token_file,
        "exec": user is not None and user.value.exec is not None,
    }
    if found := [field for field, is_set in references.items() if is_set]:
        raise UserError(
            f"{config}: context {name}: {', '.join(found)}: a kubeconfig that is handed over reads no files and runs "
            "no commands here: write the certificates, the key and the token themselves"
        )


def _require_tenant_server(connection: ClusterConnection, addresses: AddressPolicy) -> None:
    """UserError unless the server is reached by https, is verified, and is where `addresses` permit it to be.

    That the certificate is verified keeps servers of others out as well: theirs is of no authority that a tenant has.
    A proxy would choose the address, and a name other than the host's could lead past it to another server behind it.
    """
    parts = urlsplit(connection.server)
    host = parts.hostname or ""
    if parts.scheme != "https":
        _refuse(connection, "its server is not reached by https: write https:// in front of its address")
    if not _HOST_AND_PORT.fullmatch(parts.netloc) or not _PATH.fullmatch(parts.path):
        _refuse(connection, "its server has more than a host, a port and a plain path: write these alone")
    if connection.proxy is not None:
        _refuse(connection, "it has a proxy-url, which a kubeconfig in a Secret may not have: leave it out")
    if isinstance(connection.trust, SkipVerify):
        _refuse(connection, "it has insecure-skip-tls-verify: write certificate-authority-data instead")
    if addresses.refuses_host(host):
        _refuse(
            connection,
            "its server is at an address that no kubeconfig in a Secret may name: name the API server of another "
            "cluster, or have an administrator allow it with --allow-cluster-address",
        )
    if connection.server_name not in (None, host) and connection.server_name not in addresses.allowed_hosts:
        _refuse(
            connection,
            "its tls-server-name is not the host of its server: leave it out, or have an administrator allow that name "
            "with --allow-cluster-address",
        )


def _refuse(connection: ClusterConnection, why: str) -> NoReturn:
    raise UserError(f"{connection.name}: {why}")
