"""A certificate authority for one test run."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_A_DAY: Final = timedelta(days=1)
_LOOPBACK: Final = ipaddress.ip_address("127.0.0.1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates that are valid for a day."""

    def __init__(self) -> None:
        self._key = new_key()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        signs = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(signs, critical=True)
        )
        self.certificate = _pem(builder.sign(self._key, hashes.SHA256()))

    def for_server(self, *names: str) -> KeyPair:
        """For a server on the loopback address, also called `names`."""
        also = x509.SubjectAlternativeName([x509.IPAddress(_LOOPBACK), *map(x509.DNSName, names)])
        return self._issue([(NameOID.COMMON_NAME, names[0])], ExtendedKeyUsageOID.SERVER_AUTH, also)

    def for_user(self, name: str, groups: Sequence[str]) -> KeyPair:
        """For a Kubernetes user of these groups."""
        subject = [*((NameOID.ORGANIZATION_NAME, group) for group in groups), (NameOID.COMMON_NAME, name)]
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        subject: Sequence[tuple[x509.ObjectIdentifier, str]],
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = new_key()
        name = x509.Name([x509.NameAttribute(attribute, value) for attribute, value in subject])
        builder = self._builder(name, key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return KeyPair(_pem(builder.sign(self._key, hashes.SHA256())), private_pem(key))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        ours = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _A_DAY)
            .not_valid_after(now + _A_DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(ours, critical=False)
        )


def new_key() -> ec.EllipticCurvePrivateKey:
    """A new ECDSA key."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The private key, as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The public key, as PEM."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
