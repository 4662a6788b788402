"""Spec and status of a KbsConfig. Two fields start with a capital letter, as in the API of trustee-operator."""

from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.shape import Default
from setpoint.core.values.json_types import Int32
from setpoint.kinds.typed_spec import Maybe, SpecStruct


class DeploymentType(StrEnum):
    """How many containers a pod has."""

    ALL_IN_ONE = "AllInOneDeployment"
    MICROSERVICES = "MicroservicesDeployment"


class IbmSeConfigSpec(SpecStruct, frozen=True):
    certStorePvc: Maybe[str] = UNSET
    """The PersistentVolumeClaim with the certificates of IBM Secure Execution."""


class CertCacheEntry(SpecStruct, frozen=True):
    secretName: str
    """The Secret with the certificates of one machine."""
    mountPath: Maybe[str] = UNSET
    """Where they are mounted; the default store of VCEK certificates when left out."""


class KbsLocalCertCacheSpec(SpecStruct, frozen=True):
    secrets: Maybe[list[CertCacheEntry]] = UNSET
    """Certificates that need not be fetched."""


class DeploymentSpec(SpecStruct, frozen=True):
    replicas: Annotated[Maybe[Int32], Default(1)] = UNSET
    """The number of pods; 0 is allowed."""


class KbsConfigSpec(SpecStruct, frozen=True):
    """The spec of a KbsConfig."""

    kbsConfigMapName: Maybe[str] = UNSET
    """The ConfigMap with `kbs-config.toml`."""
    kbsAsConfigMapName: Maybe[str] = UNSET
    """The ConfigMap of the attestation service, where it has a container of its own."""
    kbsRvpsConfigMapName: Maybe[str] = UNSET
    """The ConfigMap of the reference value provider, where it has a container of its own."""
    kbsRvpsRefValuesConfigMapName: Maybe[str] = UNSET
    """The ConfigMap with the reference values, under `reference_value`."""
    kbsAuthSecretName: Maybe[str] = UNSET
    """The Secret with the administrator's public key."""
    kbsServiceType: Maybe[str] = UNSET
    """The type of the Service; ClusterIP when left out."""
    kbsDeploymentType: DeploymentType | UnsetType = UNSET
    """One container, or three."""
    kbsHttpsKeySecretName: Maybe[str] = UNSET
    """The Secret with the server's private key, under `privateKey`."""
    kbsHttpsCertSecretName: Maybe[str] = UNSET
    """The Secret with the server's certificate, under `certificate`."""
    kbsAttestationKeySecretName: Maybe[str] = UNSET
    """The Secret with the key that tokens are signed with, under `token.key`."""
    kbsAttestationCertSecretName: Maybe[str] = UNSET
    """The Secret with the certificate of tokens, under `token.crt`."""
    kbsSecretResources: Maybe[list[str]] = UNSET
    """The Secrets that attested clients can read, as `default/<Secret>/<key>`."""
    kbsAttestationPolicyConfigMapName: Maybe[str] = UNSET
    """The ConfigMap with the attestation policy, under `default_cpu.rego`."""
    kbsGpuAttestationPolicyConfigMapName: Maybe[str] = UNSET
    """The ConfigMap with the attestation policy of GPUs, under `default_gpu.rego`."""
    kbsResourcePolicyConfigMapName: Maybe[str] = UNSET
    """The ConfigMap with the policy of resources, under `resource-policy.rego`."""
    ibmSEConfigSpec: Maybe[IbmSeConfigSpec] = UNSET
    """IBM Secure Execution."""
    KbsEnvVars: Maybe[dict[str, str]] = UNSET
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
