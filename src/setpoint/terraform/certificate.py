"""The certificate of the provider, kept on disk: Terraform starts providers several times for one command."""

import os
import ssl
import stat
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

_LIFE: Final = timedelta(days=30)
# What is used has this much life left: no run of Terraform's takes longer.
_SPARE: Final = timedelta(days=2)
_NAME: Final = "server.pem"
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


class Certificate(msgspec.Struct, frozen=True):
    """A certificate in DER, and the file that holds it with its key."""

    file: Path
    der: bytes


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Where certificates are kept; None when there is no place for them."""
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"], "setpoint", "terraform")
    return Path(environment["HOME"], ".cache", "setpoint", "terraform") if environment.get("HOME") else None


def certificate_for(run: Path, cache: Path | None, now: datetime) -> Certificate:
    """The certificate kept in `cache`, or a new one, as a file in `run`, the private folder of this process.

    The file is a copy: another process may replace the kept one at any moment.
    """
    pem = None if cache is None else _kept(cache, now)
    if pem is None:
        pem = _new(now)
        if cache is not None:
            _keep(cache, pem)
    _write(run / _NAME, pem)
    return Certificate(run / _NAME, ssl.PEM_cert_to_DER_cert(_certificate_in(pem)))


def _kept(cache: Path, now: datetime) -> str | None:
    file = cache / _NAME
    try:
        # A key that others could have read, or put there, is none.
        if not (_is_ours_alone(cache.lstat(), stat.S_IFDIR) and _is_ours_alone(file.lstat(), stat.S_IFREG)):
            return None
        pem = file.read_text(encoding="ascii")
        begin, end = _span_of(pem)
        return pem if begin <= now and end - now > _SPARE else None
    except (OSError, ValueError):
        return None


def _is_ours_alone(found: os.stat_result, sort: int) -> bool:
    return stat.S_IFMT(found.st_mode) == sort and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _certificate_in(pem: str) -> str:
    return pem[pem.index(_BEGIN) :]


def _span_of(pem: str) -> tuple[datetime, datetime]:
    """From when until when a certificate is good; OSError or ValueError when it is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(cadata=_certificate_in(pem))
    (found,) = context.get_ca_certs()
    begin, end = (ssl.cert_time_to_seconds(str(found[name])) for name in ("notBefore", "notAfter"))
    return datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC)


def _keep(cache: Path, pem: str) -> None:
    # Without a home, or with a read-only one, each process makes its own.
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        cache.chmod(0o700)
        fresh = cache / f"{_NAME}.{os.getpid()}"
        _write(fresh, pem)
        # Others see the old file or the new one, never half of it.
        fresh.replace(cache / _NAME)


def _write(file: Path, pem: str) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
        opened.write(pem)


def _new(now: datetime) -> str:
    """A key and a certificate for it, for localhost: that is whom Terraform asks for."""
    # Only who makes a certificate pays for loading this.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (private + builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode("ascii")
