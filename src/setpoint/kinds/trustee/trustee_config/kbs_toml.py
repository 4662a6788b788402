"""`kbs-config.toml`: the settings of the key broker, as each profile starts out with."""

from typing import Final

from setpoint.kinds.trustee.trustee_config.spec import ProfileType
from setpoint.kinds.trustee.trustee_config.tls import TlsSettings, tls_block
from setpoint.kinds.trustee_places import (
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

# Whoever administers does so with kubectl: nobody may by way of the server.
_ADMIN: Final = """\
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

_SERVICE: Final = """\
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

# Certificates of AMD that are at hand come first: there may be no way out.
_REST: Final = f"""\
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
    """The settings of a profile. Without HTTPS there is no TLS to speak of: `tls` is for the restricted one."""
    if profile is ProfileType.PERMISSIVE:
        sections = [_PERMISSIVE_SERVER, _ADMIN, _PERMISSIVE_TOKEN, _SERVICE, _REST]
    else:
        server = f"{_RESTRICTED_SERVER}\n{tls_block(tls)}\n"
        sections = [server, _ADMIN, _RESTRICTED_TOKEN, _SERVICE, _SIGNER, _REST]
    return "\n".join(sections)
