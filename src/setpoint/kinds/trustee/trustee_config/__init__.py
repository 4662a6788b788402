"""TrusteeConfig: generates a KbsConfig, and the ConfigMaps and Secrets that it names.

Imported by `app`; imports `kinds.trustee.constants` and no other kind. Start at `owner.py`, then `children.py`.
"""

from setpoint.kinds.trustee.trustee_config.children import (
    KEY_PAIR,
    TlsPair,
    TrusteeSources,
    check_volume,
    generated_children,
    missing_field_warnings,
    tls_pair,
)
from setpoint.kinds.trustee.trustee_config.kbs_config_child import (
    editable_fields,
)
from setpoint.kinds.trustee.trustee_config.kbs_toml import (
    TlsSettings,
    cipher_list,
    openssl_name,
    tls_settings,
)
from setpoint.kinds.trustee.trustee_config.kbs_toml_merge import (
    is_tls_line,
    merge_tls_lines,
    settings_problem,
    toml_problem,
    with_tls,
)
from setpoint.kinds.trustee.trustee_config.owner import TrusteeConfigOwner, is_kbs_config_ready
from setpoint.kinds.trustee.trustee_config.spec import (
    KbsConfigRef,
    ProfileType,
    TlsConfig,
    TrusteeConfigSpec,
    TrusteeConfigStatus,
    check_spec,
    trustee_status,
)

__all__ = (
    "KEY_PAIR",
    "KbsConfigRef",
    "ProfileType",
    "TlsConfig",
    "TlsPair",
    "TlsSettings",
    "TrusteeConfigOwner",
    "TrusteeConfigSpec",
    "TrusteeConfigStatus",
    "TrusteeSources",
    "check_spec",
    "check_volume",
    "cipher_list",
    "editable_fields",
    "generated_children",
    "is_kbs_config_ready",
    "is_tls_line",
    "merge_tls_lines",
    "missing_field_warnings",
    "openssl_name",
    "settings_problem",
    "tls_pair",
    "tls_settings",
    "toml_problem",
    "trustee_status",
    "with_tls",
)
