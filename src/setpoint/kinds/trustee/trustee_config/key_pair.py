"""A key pair that nobody had before."""

import base64
from collections.abc import Mapping

from setpoint.kinds.trustee_places import PRIVATE_KEY, PUBLIC_KEY


def fresh_key_pair() -> Mapping[str, str]:
    """A random Ed25519 pair as the data of a Secret: both halves in PEM, as PKIX and PKCS#8, in base64."""
    # Only where a pair is made: it takes a while to load.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private = Ed25519PrivateKey.generate()
    halves = {
        PUBLIC_KEY: private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        PRIVATE_KEY: private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    }
    return {name: base64.b64encode(half).decode() for name, half in halves.items()}
