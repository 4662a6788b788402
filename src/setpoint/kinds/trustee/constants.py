"""What Trustee's kinds share: API group, constraints, keys of ConfigMaps and Secrets, and mount paths."""

from typing import Final

from setpoint.core.schema.checks import Predicate
from setpoint.core.schema.constraints import OneOf
from setpoint.core.unstructured import text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import JsonObject
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


# A Service without a selector, ExternalName, would lead past the pods.
SERVICE_TYPE: Final = OneOf("ClusterIP", "NodePort", "LoadBalancer")
LONGEST_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class NameForLabel(Predicate):
    """The name of the resource fits into a label.

    In a cluster, an object with a status is accepted: its name cannot change, and its status has to be written.
    """

    @property
    def cel(self) -> str:
        """See Predicate."""
        return f"has(self.status) || self.metadata.name.size() <= {LONGEST_LABEL}"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return len(text_at(value, "metadata", "name")) <= LONGEST_LABEL


def object_ref(kind: ObjectKind, name: str, beside: Resource) -> ResourceRef:
    """The reference to an object of that name, in the namespace of `beside` if its kind is namespaced."""
    return ResourceRef(kind.group, kind.kind, beside.ref.namespace if kind.is_namespaced else "", name)
