"""What Trustee's kinds share: API group, keys of ConfigMaps and Secrets, and mount paths."""

from typing import Final

from setpoint.engine.owner import ObjectKind
from setpoint.engine.resource import Resource, ResourceRef

GROUP: Final = "confidentialcontainers.org"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

CONFIG_MAP: Final = ObjectKind("", "v1", "ConfigMap", "configmaps")
SECRET: Final = ObjectKind("", "v1", "Secret", "secrets")

# Keys of ConfigMaps and Secrets.
KBS_TOML: Final = "kbs-config.toml"
CPU_POLICY: Final = "default_cpu.rego"
GPU_POLICY: Final = "default_gpu.rego"
RESOURCE_POLICY: Final = "resource-policy.rego"
REFERENCE_VALUES: Final = "reference_value"
PUBLIC_KEY: Final = "publicKey"
PRIVATE_KEY: Final = "privateKey"
CERTIFICATE: Final = "certificate"
TOKEN_KEY: Final = "token.key"
TOKEN_CERTIFICATE: Final = "token.crt"

# Where containers mount them.
CONFIG_DIR: Final = "/etc/kbs-config"
AUTH_DIR: Final = "/etc/auth-secret"
HTTPS_KEY_DIR: Final = "/etc/https-key"
HTTPS_CERT_DIR: Final = "/etc/https-cert"
TOKEN_KEY_DIR: Final = "/etc/attestation-key"
TOKEN_CERT_DIR: Final = "/etc/attestation-cert"
STORAGE_DIR: Final = "/opt/confidential-containers/storage"
REFERENCE_VALUES_DIR: Final = f"{STORAGE_DIR}/local_json"
PORT: Final = 8080


def object_ref(kind: ObjectKind, name: str, beside: Resource) -> ResourceRef:
    """The reference to an object of that name, in the namespace of `beside` if its kind is namespaced."""
    return ResourceRef(kind.group, kind.kind, beside.ref.namespace if kind.is_namespaced else "", name)
