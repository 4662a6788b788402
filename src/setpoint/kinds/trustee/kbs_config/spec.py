"""Spec and status of a KbsConfig. Two fields start with a capital letter, as in the API of trustee-operator."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from setpoint.core.schema.constraints import Between, Matches
from setpoint.core.schema.shape import Default
from setpoint.core.values.json_types import Int32
from setpoint.kind.typed_spec import OBJECT_NAME, REQUIRED_OBJECT_NAME, Maybe, SpecStruct
from setpoint.kinds.trustee.constants import SERVICE_TYPE

# Bounds of the API server's estimate.
_MAX_SECRETS: Final = 1000
_MAX_ENV_VARS: Final = 256
_ENV_NAME: Final = Matches(
    "[A-Za-z_][A-Za-z0-9_.-]*", "the name of an environment variable: letters, digits, '_', '-' and '.'", or_empty=False
)
_MOUNT_PATH: Final = Matches("/[^:]*", "an absolute path without ':'")


class DeploymentType(StrEnum):
    """How many containers a pod has."""

    ALL_IN_ONE = "AllInOneDeployment"
    MICROSERVICES = "MicroservicesDeployment"


class IbmSeConfigSpec(SpecStruct, frozen=True):
    certStorePvc: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The PersistentVolumeClaim with the certificates of IBM Secure Execution."""


class CertCacheEntry(SpecStruct, frozen=True):
    secretName: Annotated[str, REQUIRED_OBJECT_NAME]
    """The Secret with the certificates of one machine."""
    mountPath: Annotated[Maybe[str], _MOUNT_PATH] = UNSET
    """Where they are mounted; the default store of VCEK certificates when left out."""


class KbsLocalCertCacheSpec(SpecStruct, frozen=True):
    secrets: Maybe[Annotated[list[CertCacheEntry], Meta(max_length=_MAX_SECRETS)]] = UNSET
    """Certificates that need not be fetched."""


class DeploymentSpec(SpecStruct, frozen=True):
    replicas: Annotated[Maybe[Int32], Between(0), Default(1)] = UNSET
    """The number of pods; 0 is allowed."""


class KbsConfigSpec(SpecStruct, frozen=True):
    """The spec of a KbsConfig."""

    kbsConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap with `kbs-config.toml`."""
    kbsAsConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap of the attestation service, where it has a container of its own."""
    kbsRvpsConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap of the reference value provider, where it has a container of its own."""
    kbsRvpsRefValuesConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap with the reference values, under `reference_value`."""
    kbsAuthSecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret with the administrator's public key."""
    kbsServiceType: Annotated[Maybe[str], SERVICE_TYPE] = UNSET
    """The type of the Service: ClusterIP, NodePort or LoadBalancer; ClusterIP when left out."""
    kbsDeploymentType: DeploymentType | UnsetType = UNSET
    """One container, or three."""
    kbsHttpsKeySecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret with the server's private key, under `privateKey`."""
    kbsHttpsCertSecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret with the server's certificate, under `certificate`."""
    kbsAttestationKeySecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret with the key that tokens are signed with, under `token.key`."""
    kbsAttestationCertSecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret with the certificate of tokens, under `token.crt`."""
    kbsSecretResources: Maybe[Annotated[list[Annotated[str, REQUIRED_OBJECT_NAME]], Meta(max_length=_MAX_SECRETS)]] = (
        UNSET
    )
    """The Secrets that attested clients can read, as `default/<Secret>/<key>`."""
    kbsAttestationPolicyConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap with the attestation policy, under `default_cpu.rego`."""
    kbsGpuAttestationPolicyConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap with the attestation policy of GPUs, under `default_gpu.rego`."""
    kbsResourcePolicyConfigMapName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The ConfigMap with the policy of resources, under `resource-policy.rego`."""
    ibmSEConfigSpec: Maybe[IbmSeConfigSpec] = UNSET
    """IBM Secure Execution."""
    KbsEnvVars: Maybe[Annotated[dict[Annotated[str, _ENV_NAME], str], Meta(max_length=_MAX_ENV_VARS)]] = UNSET
    """Environment variables of every container."""
    kbsLocalCertCacheSpec: Maybe[KbsLocalCertCacheSpec] = UNSET
    """Certificates for machines without access to the Internet."""
    KbsDeploymentSpec: Maybe[DeploymentSpec] = UNSET
    """The Deployment."""

    @property
    def is_all_in_one(self) -> bool:
        """Whether a pod has one container: the default."""
        return self.kbsDeploymentType != DeploymentType.MICROSERVICES

    @property
    def replicas(self) -> int:
        """The number of pods."""
        wanted = self.KbsDeploymentSpec.replicas if self.KbsDeploymentSpec else None
        return wanted if isinstance(wanted, int) else 1

    @property
    def env(self) -> dict[str, str]:
        """The environment variables sorted by name: another order would replace the pods."""
        return dict(sorted((self.KbsEnvVars or {}).items()))

    @property
    def secret_resources(self) -> list[str]:
        """The Secrets that attested clients can read."""
        return list(self.kbsSecretResources or ())

    @property
    def cert_cache(self) -> list[CertCacheEntry]:
        """The cached certificates."""
        return list((self.kbsLocalCertCacheSpec.secrets or ()) if self.kbsLocalCertCacheSpec else ())

    @property
    def cert_store_pvc(self) -> str:
        """The claim with IBM's certificates; "" for none."""
        return (self.ibmSEConfigSpec.certStorePvc or "") if self.ibmSEConfigSpec else ""

    @property
    def https_pair(self) -> tuple[str, str] | None:
        """The Secrets with the server's key and certificate; None unless both are named."""
        return _pair(self.kbsHttpsKeySecretName, self.kbsHttpsCertSecretName)

    @property
    def token_pair(self) -> tuple[str, str] | None:
        """The Secrets with the key and certificate of tokens; None unless both are named."""
        return _pair(self.kbsAttestationKeySecretName, self.kbsAttestationCertSecretName)


class KbsConfigTree(Struct, frozen=True):
    """What the author of a KbsConfig writes."""

    spec: KbsConfigSpec


def _pair(key: Maybe[str], certificate: Maybe[str]) -> tuple[str, str] | None:
    return (key, certificate) if key and certificate else None


class KbsConfigStatus(Struct, frozen=True):
    """The status: whether Trustee is ready."""

    isReady: bool
    """Whether all declared pods are available, and of the current template. Always written."""
