"""TLS towards a cluster: whom to trust, and the certificate that we show."""

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import assert_never

from setpoint.clients.kube_connection import Anybody, Authority, Connection, SystemRoots, Trust
from setpoint.errors import RemoteRefused


@dataclass(frozen=True, slots=True)
class Pair:
    """A client certificate, with those that signed it, and its key: both in PEM."""

    certificate: str = field(repr=False)
    key: str = field(repr=False)


def context_for(connection: Connection, pair: Pair | None) -> ssl.SSLContext:
    """A context that trusts as `connection` says, and shows `pair`; RemoteRefused when one of them is broken."""
    try:
        context = _trusting(connection.trust)
    except (ssl.SSLError, ValueError) as error:
        raise RemoteRefused(
            f"{connection.name}: its certificate authority is no certificate in PEM: write it anew"
        ) from error
    # What Python asks for beyond RFC 5280 since 3.13, the authorities of many clusters lack; Go does not ask for it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if pair is not None:
        try:
            _show(context, pair)
        except (ssl.SSLError, ValueError) as error:
            raise RemoteRefused(
                f"{connection.name}: its client certificate and key do not fit together, or are not in PEM, or the key "
                "has a password: write them anew"
            ) from error
    return context


def _trusting(trust: Trust) -> ssl.SSLContext:
    match trust:
        case SystemRoots():
            return ssl.create_default_context()
        case Authority(pem):
            # Without a single certificate OpenSSL would be left to trust whom this machine trusts.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=pem)
            return context
        case Anybody():
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        case _:
            assert_never(trust)


def _show(context: ssl.SSLContext, pair: Pair) -> None:
    # OpenSSL takes a certificate and its key from a file alone; this one is ours, and gone at once.
    handle, path = tempfile.mkstemp(prefix="setpoint-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{pair.certificate}\n{pair.key}\n")
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(path, password="")
    finally:
        os.unlink(path)
