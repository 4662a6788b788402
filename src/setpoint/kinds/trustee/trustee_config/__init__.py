"""TrusteeConfig: one Trustee, from a few wishes."""

from setpoint.kinds.trustee.trustee_config.children import KEY_PAIR, children
from setpoint.kinds.trustee.trustee_config.ciphers import CipherNames, cipher_list, openssl_name
from setpoint.kinds.trustee.trustee_config.merging import (
    Dialect,
    MergedKbsConfig,
    Policy,
    field_policies,
    merge_kbs_config,
    user_configurable,
)
from setpoint.kinds.trustee.trustee_config.owner import TrusteeConfigOwner
from setpoint.kinds.trustee.trustee_config.sources import Sources, TlsPair, check_volume, gaps, tls_pair
from setpoint.kinds.trustee.trustee_config.spec import (
    ProfileType,
    TlsConfig,
    TrusteeConfigSpec,
    check_spec,
    read_tls_config,
)
from setpoint.kinds.trustee.trustee_config.standing import is_ready
from setpoint.kinds.trustee.trustee_config.status import KbsConfigRef, TrusteeConfigStatus, status_of
from setpoint.kinds.trustee.trustee_config.tls import TlsSettings, tls_settings
from setpoint.kinds.trustee.trustee_config.tls_lines import is_tls_line, merge_tls_lines
from setpoint.kinds.trustee.trustee_config.toml_tls import settings_problem, toml_problem, with_tls

__all__ = (
    "KEY_PAIR",
    "CipherNames",
    "Dialect",
    "KbsConfigRef",
    "MergedKbsConfig",
    "Policy",
    "ProfileType",
    "Sources",
    "TlsConfig",
    "TlsPair",
    "TlsSettings",
    "TrusteeConfigOwner",
    "TrusteeConfigSpec",
    "TrusteeConfigStatus",
    "check_spec",
    "check_volume",
    "children",
    "cipher_list",
    "field_policies",
    "gaps",
    "is_ready",
    "is_tls_line",
    "merge_kbs_config",
    "merge_tls_lines",
    "openssl_name",
    "read_tls_config",
    "settings_problem",
    "status_of",
    "tls_pair",
    "tls_settings",
    "toml_problem",
    "user_configurable",
    "with_tls",
)
