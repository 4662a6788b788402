"""Cipher suites: IANA's names as OpenSSL spells them."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final


class CipherNames(StrEnum):
    """Whose spelling is written into the configuration."""

    OPENSSL = "openssl"
    # trustee-operator's: wrong for every second suite, and kept for those who compare.
    UPSTREAM = "upstream"


_SUITE: Final = re.compile(r"TLS_(?P<exchange>\w+?)_WITH_(?P<cipher>\w+?)(?:_(?P<mac>MD5|SHA|SHA256|SHA384))?")
# TLS 1.3: a suite says nothing of the key exchange, and both write it alike.
_SAME: Final = ("TLS_AES_", "TLS_CHACHA20_")
_EXCHANGES: Final = {
    "RSA": "",
    "DH_anon": "ADH",
    "ECDH_anon": "AECDH",
    "PSK_DHE": "DHE-PSK",
    "SRP_SHA": "SRP",
    "SRP_SHA_DSS": "SRP-DSS",
    "SRP_SHA_RSA": "SRP-RSA",
}
_CIPHERS: Final = {"3DES_EDE_CBC": "DES-CBC3", "RC4_128": "RC4", "SEED_CBC": "SEED", "IDEA_CBC": "IDEA-CBC"}
_BLOCK: Final = re.compile(r"(AES|ARIA|CAMELLIA)_(128|256)(?:_(\w+))?")


def cipher_list(suites: Sequence[str], names: CipherNames = CipherNames.OPENSSL) -> str:
    """The suites as OpenSSL's colon-separated list."""
    spell = openssl_name if names is CipherNames.OPENSSL else upstream_name
    return ":".join(map(spell, suites))


def openssl_name(suite: str) -> str:
    """The suite as OpenSSL names it; whatever is not IANA's name of a suite, such as OpenSSL's own, as it is."""
    parts = None if suite.startswith(_SAME) else _SUITE.fullmatch(suite)
    if parts is None:
        return suite
    exchange, cipher, mac = parts["exchange"], parts["cipher"], parts["mac"]
    if cipher == "CHACHA20_POLY1305":
        mac = None
    spelled = (_exchange_name(exchange, cipher), _cipher_name(exchange, cipher), mac)
    return "-".join(part for part in spelled if part)


def _exchange_name(exchange: str, cipher: str) -> str:
    if exchange == "ECDHE_RSA" and cipher.startswith("ARIA"):
        return "ECDHE"
    return _EXCHANGES.get(exchange, exchange.replace("_", "-"))


def _cipher_name(exchange: str, cipher: str) -> str:
    block = _BLOCK.fullmatch(cipher)
    if exchange.startswith("SRP") or (block is None and exchange.endswith("PSK")):
        return cipher.replace("_", "-").replace("RC4-128", "RC4")
    if block is None:
        return _CIPHERS.get(cipher, cipher.replace("_", "-"))
    name, bits, mode = block.groups()
    if mode == "CBC":
        # The usual mode goes without saying; not so for AES where a key is shared beforehand.
        return f"{name}{bits}-CBC" if name == "AES" and exchange.endswith("PSK") else f"{name}{bits}"
    return f"{name}{bits}-{mode.replace('_', '')}" if mode else f"{name}{bits}"


# --- trustee-operator's spelling --------------------------------------------------------------------------------------

# The suites that trustee-operator names as OpenSSL does because it lists them; the others go by a rule of thumb.
_LISTED_UPSTREAM: Final = frozenset(
    {
        *(f"TLS_{exchange}_WITH_CHACHA20_POLY1305_SHA256" for exchange in ("ECDHE_RSA", "ECDHE_ECDSA", "DHE_RSA")),
        *(f"TLS_RSA_WITH_AES_{bits}_CBC_{mac}" for bits in (128, 256) for mac in ("SHA", "SHA256")),
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    }
)


def upstream_name(suite: str) -> str:
    """The suite as trustee-operator spells it."""
    if suite.startswith(_SAME) or suite in _LISTED_UPSTREAM:
        return openssl_name(suite)
    bare = suite.removeprefix("TLS_").replace("_WITH_", "-", 1)
    return re.sub("_(?=[0-9])", "", bare).replace("_", "-")
