"""The generated `kbs-config.toml` of each profile, with its TLS settings and cipher suites in OpenSSL's names."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from setpoint.kinds.trustee.constants import (
    CERTIFICATE,
    HTTPS_CERT_DIR,
    HTTPS_KEY_DIR,
    PORT,
    PRIVATE_KEY,
    REFERENCE_VALUES_DIR,
    STORAGE_DIR,
    TOKEN_CERT_DIR,
    TOKEN_CERTIFICATE,
    TOKEN_KEY,
    TOKEN_KEY_DIR,
)
from setpoint.kinds.trustee.trustee_config.spec import CUSTOM, INTERMEDIATE, ProfileType, TlsConfig


def cipher_list(suites: Sequence[str]) -> str:
    """The suites as OpenSSL's colon-separated list."""
    return ":".join(map(openssl_name, suites))


def openssl_name(suite: str) -> str:
    """The OpenSSL name of an IANA suite; any other text, such as an OpenSSL name, is returned unchanged."""
    parts = _parse_suite(suite)
    return suite if parts is None else parts.openssl


_SUITE: Final = re.compile(r"TLS_(\w+?)_WITH_(\w+?)(?:_(MD5|SHA|SHA256|SHA384))?")
_BLOCK: Final = re.compile(r"(AES|ARIA|CAMELLIA)_(128|256)(?:_(\w+))?")
_CHACHA: Final = "CHACHA20_POLY1305"
_TRIPLE_DES: Final = "3DES_EDE_CBC"


def _parse_suite(suite: str) -> "_Suite | None":
    """The parts of an IANA name; None for TLS 1.3, where both names are equal, and for any other text."""
    found = _SUITE.fullmatch(suite)
    return None if found is None else _Suite(found[1], found[2], found[3] or "")


class _Suite(NamedTuple):
    """The parts of an IANA suite name up to TLS 1.2; `hash` is "" for a cipher that needs none."""

    exchange: str
    cipher: str
    hash: str

    @property
    def openssl(self) -> str:
        """The name in OpenSSL."""
        parts = (self._exchange, self._cipher, "" if self.cipher == _CHACHA else self.hash)
        return "-".join(part for part in parts if part)

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
        # Names of pre-shared-key suites are newer, and include CBC for AES.
        if mode == "CBC" and not (shares_a_key and name == "AES"):
            mode = ""
        return "-".join(part for part in (f"{name}{bits}", mode.replace("_", "")) if part)


_OLD_NAMES: Final = {_TRIPLE_DES: "DES-CBC3", "RC4_128": "RC4", "SEED_CBC": "SEED"}


# The TOML keys, in the order of the block.
TLS_KEYS: Final = ("tls_profile", "tls_min_version", "tls_max_version", "tls_ciphers", "tls_groups")
TLS_COMMENT: Final = "# TLS configuration"


class TlsSettings(Struct, frozen=True):
    """The values in `kbs-config.toml`; "" for what the profile decides."""

    profile: str
    min: str = ""
    max: str = ""
    ciphers: str = ""
    groups: str = ""

    @property
    def values(self) -> Mapping[str, str]:
        """The settings by the keys of `kbs-config.toml`, without empty ones."""
        values = (self.profile, self.min, self.max, self.ciphers, self.groups)
        return {key: value for key, value in zip(TLS_KEYS, values, strict=True) if value}

    @property
    def comment(self) -> str:
        """The line above the settings."""
        return f"{TLS_COMMENT} - Mozilla {self.profile} profile"


def tls_settings(config: TlsConfig | None) -> TlsSettings:
    """The settings from `config`: everything but the profile is ignored unless that is `custom`."""
    if config is None or config.profile != CUSTOM:
        return TlsSettings((config.profile or INTERMEDIATE) if config else INTERMEDIATE)
    return TlsSettings(
        CUSTOM,
        config.minVersion or "",
        config.maxVersion or "",
        cipher_list(config.ciphers or ()),
        ":".join(config.groups or ()),
    )


def tls_block(settings: TlsSettings) -> str:
    """The TOML block: a comment, a blank line, a line for each key."""
    lines = [settings.comment, "", *(setting_line(key, value) for key, value in settings.values.items())]
    return "\n".join(lines)


def setting_line(key: str, value: str) -> str:
    """`key = "value"`, with the value escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key} = "{escaped}"'


_PERMISSIVE_SERVER: Final = f"""\
[http_server]
sockets = ["0.0.0.0:{PORT}"]
insecure_http = true
worker_count = 4
"""

_RESTRICTED_SERVER: Final = f"""\
[http_server]
sockets = ["0.0.0.0:{PORT}"]
insecure_http = false
private_key = "{HTTPS_KEY_DIR}/{PRIVATE_KEY}"
certificate = "{HTTPS_CERT_DIR}/{CERTIFICATE}"
worker_count = 4
"""

# Administration is by kubectl only: the server's admin API is disabled.
_ADMIN_SECTION: Final = """\
[admin]
authorization_mode = "DenyAll"
"""

_PERMISSIVE_TOKEN: Final = """\
[attestation_token]
insecure_header_jwk = true
"""

_RESTRICTED_TOKEN: Final = f"""\
[attestation_token]
insecure_header_jwk = false
attestation_token_type = "CoCo"
trusted_certs_paths = ["{TOKEN_CERT_DIR}/{TOKEN_CERTIFICATE}"]
"""

_ATTESTATION_SERVICE: Final = """\
[attestation_service]
type = "coco_as_builtin"
timeout = 5

[attestation_service.attestation_token_broker]
duration_min = 5
"""

_SIGNER: Final = f"""\
[attestation_service.attestation_token_broker.signer]
key_path = "{TOKEN_KEY_DIR}/{TOKEN_KEY}"
cert_path = "{TOKEN_CERT_DIR}/{TOKEN_CERTIFICATE}"
"""

# Local AMD certificates come first: the cluster may have no internet access.
_OTHER_SECTIONS: Final = f"""\
[attestation_service.rvps_config]
type = "BuiltIn"
storage_type = "LocalJson"

[attestation_service.verifier_config.snp_verifier]
vcek_sources = [{{ type = "OfflineStore" }}, {{ type = "KDS" }}]

[attestation_service.verifier_config.dcap_verifier]
collateral_service = "https://api.trustedservices.intel.com/sgx/certification/v4/"

[storage_backend]
storage_type = "LocalFs"

[storage_backend.backends.local_fs]
dir_path = "{STORAGE_DIR}"

[storage_backend.backends.local_json]
file_dir_path = "{REFERENCE_VALUES_DIR}"

[[plugins]]
name = "resource"
storage_backend_type = "kvstorage"
"""


def kbs_toml(profile: ProfileType, tls: TlsSettings) -> str:
    """The file of a profile. `tls` is for the restricted profile only: the permissive one has no HTTPS."""
    if profile is ProfileType.PERMISSIVE:
        sections = [_PERMISSIVE_SERVER, _ADMIN_SECTION, _PERMISSIVE_TOKEN, _ATTESTATION_SERVICE, _OTHER_SECTIONS]
    else:
        server = f"{_RESTRICTED_SERVER}\n{tls_block(tls)}\n"
        sections = [server, _ADMIN_SECTION, _RESTRICTED_TOKEN, _ATTESTATION_SERVICE, _SIGNER, _OTHER_SECTIONS]
    return "\n".join(sections)
