"""The TLS settings of the server, from a `tlsConfig`: as values, and as the block that stands in `kbs-config.toml`."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from setpoint.kinds.trustee.trustee_config.ciphers import CipherNames, cipher_list
from setpoint.kinds.trustee.trustee_config.spec import CUSTOM, INTERMEDIATE, TlsConfig

# The keys of the block, in their order.
TLS_KEYS: Final = ("tls_profile", "tls_min_version", "tls_max_version", "tls_ciphers", "tls_groups")
TLS_COMMENT: Final = "# TLS configuration"


class TlsSettings(Struct, frozen=True):
    """What is written; "" for what is left to the profile."""

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


def tls_settings(config: TlsConfig | None, names: CipherNames = CipherNames.OPENSSL) -> TlsSettings:
    """The settings that `config` comes to: all but the profile count only where that is `custom`."""
    if config is None or config.profile != CUSTOM:
        return TlsSettings((config.profile or INTERMEDIATE) if config else INTERMEDIATE)
    return TlsSettings(
        CUSTOM,
        config.minVersion or "",
        config.maxVersion or "",
        cipher_list(config.ciphers or (), names),
        ":".join(config.groups or ()),
    )


def tls_block(settings: TlsSettings) -> str:
    """The lines of the settings: a comment, a blank line, a key each."""
    lines = [settings.comment, "", *(setting_line(key, value) for key, value in settings.values.items())]
    return "\n".join(lines)


def setting_line(key: str, value: str) -> str:
    """`key = "value"`, whatever is in the value."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key} = "{escaped}"'
