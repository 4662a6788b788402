"""Cipher suites: IANA's names as OpenSSL spells them.

IANA names an exchange of keys, a cipher and a hash: `TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256`. OpenSSL joins the three by
dashes, and leaves out what once was the only choice: an exchange by RSA, the mode CBC, the hash of ChaCha20.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple


class CipherNames(StrEnum):
    """Whose spelling is written into the configuration."""

    OPENSSL = "openssl"
    # trustee-operator's: wrong for every second suite, and kept for those who compare.
    UPSTREAM = "upstream"


def cipher_list(suites: Sequence[str], names: CipherNames = CipherNames.OPENSSL) -> str:
    """The suites as OpenSSL's colon-separated list."""
    spell = openssl_name if names is CipherNames.OPENSSL else upstream_name
    return ":".join(map(spell, suites))


def openssl_name(suite: str) -> str:
    """The suite as OpenSSL names it; whatever is not IANA's name of a suite, such as OpenSSL's own, as it is."""
    parts = _parts(suite)
    return suite if parts is None else parts.openssl


_SUITE: Final = re.compile(r"TLS_(\w+?)_WITH_(\w+?)(?:_(MD5|SHA|SHA256|SHA384))?")
_BLOCK: Final = re.compile(r"(AES|ARIA|CAMELLIA)_(128|256)(?:_(\w+))?")
_CHACHA: Final = "CHACHA20_POLY1305"
_TRIPLE_DES: Final = "3DES_EDE_CBC"


def _parts(suite: str) -> "_Suite | None":
    """What the name is made of; None for TLS 1.3, where both write it alike, and for what is no suite of IANA's."""
    found = _SUITE.fullmatch(suite)
    return None if found is None else _Suite(found[1], found[2], found[3] or "")


class _Suite(NamedTuple):
    """A suite up to TLS 1.2, in IANA's words; `hash` is "" for a cipher that needs none."""

    exchange: str
    cipher: str
    hash: str

    @property
    def openssl(self) -> str:
        """The name in OpenSSL."""
        said = (self._exchange, self._cipher, "" if self.cipher == _CHACHA else self.hash)
        return "-".join(part for part in said if part)

    @property
    def _exchange(self) -> str:
        match self.exchange, self.cipher:
            case "RSA", _:
                return ""
            case "PSK_DHE", _:
                return "DHE-PSK"
            case "ECDHE_RSA", cipher if cipher.startswith("ARIA"):
                return "ECDHE"
            case exchange, _ if exchange.endswith("_anon"):
                return f"A{exchange.removesuffix('_anon')}"
            case _:
                return self.exchange.replace("SRP_SHA", "SRP").replace("_", "-")

    @property
    def _cipher(self) -> str:
        shares_a_key = self.exchange.endswith("PSK")
        block = _BLOCK.fullmatch(self.cipher)
        if self.exchange.startswith("SRP") or (shares_a_key and self.cipher == _TRIPLE_DES):
            return self.cipher.replace("_", "-")
        if block is None:
            return _OLD_NAMES.get(self.cipher, self.cipher.replace("_", "-"))
        name, bits, mode = block.groups(default="")
        # Suites with a key that is shared beforehand got their names when CBC no longer went without saying for AES.
        if mode == "CBC" and not (shares_a_key and name == "AES"):
            mode = ""
        return "-".join(part for part in (f"{name}{bits}", mode.replace("_", "")) if part)


_OLD_NAMES: Final = {_TRIPLE_DES: "DES-CBC3", "RC4_128": "RC4", "SEED_CBC": "SEED"}


# --- trustee-operator's spelling --------------------------------------------------------------------------------------


def upstream_name(suite: str) -> str:
    """The suite as trustee-operator spells it: by a rule of thumb, but for some that it knows."""
    parts = _parts(suite)
    if parts is None and suite.startswith(("TLS_AES_", "TLS_CHACHA20_")):
        return suite
    if parts is not None and _is_known_upstream(parts):
        return parts.openssl
    bare = suite.removeprefix("TLS_").replace("_WITH_", "-", 1)
    return re.sub("_(?=[0-9])", "", bare).replace("_", "-")


def _is_known_upstream(suite: _Suite) -> bool:
    match suite.exchange, suite.cipher:
        case "RSA", cipher:
            return cipher == _TRIPLE_DES or re.fullmatch("AES_(128|256)_(CBC|GCM)", cipher) is not None
        case "ECDHE_RSA", cipher:
            return cipher in (_CHACHA, _TRIPLE_DES)
        case "ECDHE_ECDSA" | "DHE_RSA", cipher:
            return cipher == _CHACHA
        case _:
            return False
