"""Spec and status of a TrusteeConfig."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from setpoint.core.schema.checks import Check, InOrder
from setpoint.core.schema.constraints import Matches, OneOf
from setpoint.core.schema.shape import Default
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.problems import Problems
from setpoint.errors import ManifestInvalid
from setpoint.kind.typed_spec import OBJECT_NAME, REQUIRED_OBJECT_NAME, Maybe, SpecStruct
from setpoint.kinds.trustee.constants import LONGEST_LABEL, SERVICE_TYPE, NameForLabel

INTERMEDIATE: Final = "intermediate"
CUSTOM: Final = "custom"
VERSION_PATTERN: Final = r"^1\.[0-3]$"
VERSIONS_IN_ORDER: Final = Check(InOrder("minVersion", "maxVersion"), "minVersion must not be greater than maxVersion")
_SUITE: Final = Matches("[A-Za-z0-9_-]+", "the name of one cipher suite or group: letters, digits, '-' and '_'", 128)
_Suites: TypeAlias = Annotated[list[Annotated[str, _SUITE]], Meta(max_length=256)]


class ProfileType(StrEnum):
    """The profile of a TrusteeConfig."""

    PERMISSIVE = "Permissive"
    RESTRICTED = "Restricted"


class HttpsSpec(SpecStruct, frozen=True):
    tlsSecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret of type `kubernetes.io/tls`, in the same namespace, with the server's key and certificate."""


class AttestationTokenVerificationSpec(SpecStruct, frozen=True):
    tlsSecretName: Annotated[Maybe[str], OBJECT_NAME] = UNSET
    """The Secret of type `kubernetes.io/tls`, in the same namespace, that tokens are signed and verified with."""


class IbmSe(SpecStruct, frozen=True):
    pvName: Annotated[str, REQUIRED_OBJECT_NAME]
    """The PersistentVolume with the certificates of IBM Secure Execution. It has to exist already."""


class TlsConfig(SpecStruct, frozen=True):
    profile: Annotated[Literal["old", "intermediate", "modern", "custom"] | UnsetType, Default(INTERMEDIATE)] = UNSET
    """Mozilla's profile; `custom` uses the other fields."""
    minVersion: Annotated[str, Meta(pattern=VERSION_PATTERN)] | UnsetType = UNSET
    """The oldest accepted version of TLS, with `custom`: 1.0 to 1.3."""
    maxVersion: Annotated[str, Meta(pattern=VERSION_PATTERN)] | UnsetType = UNSET
    """The newest accepted version of TLS, with `custom`: 1.0 to 1.3."""
    ciphers: Maybe[_Suites] = UNSET
    """The cipher suites, with `custom`, by the names of IANA or OpenSSL."""
    groups: Maybe[_Suites] = UNSET
    """The key exchange groups, with `custom`, such as x25519."""

    __checks__: ClassVar = (VERSIONS_IN_ORDER,)


class TrusteeConfigSpec(SpecStruct, frozen=True):
    """The spec of a TrusteeConfig."""

    profileType: Annotated[Maybe[str], OneOf(*ProfileType)] = UNSET
    """`Restricted` requires HTTPS and attested clients; `Permissive`, the default, is for tests."""
    kbsServiceType: Annotated[Maybe[str], SERVICE_TYPE] = UNSET
    """The type of the Service: ClusterIP, NodePort or LoadBalancer."""
    httpsSpec: Maybe[HttpsSpec] = UNSET
    """The server's certificate."""
    attestationTokenVerificationSpec: Maybe[AttestationTokenVerificationSpec] = UNSET
    """The certificate of attestation tokens."""
    ibmSE: Maybe[IbmSe] = UNSET
    """IBM Secure Execution instead of the usual attestation policies."""
    tlsConfig: Maybe[TlsConfig] = UNSET
    """The TLS settings. Only a Restricted TrusteeConfig uses TLS."""

    @property
    def profile(self) -> ProfileType:
        """The profile of that name; Permissive for any unknown one."""
        return ProfileType.RESTRICTED if self.profileType == ProfileType.RESTRICTED else ProfileType.PERMISSIVE

    @property
    def https_secret(self) -> str:
        """The Secret with the server's certificate; "" for none."""
        return (self.httpsSpec.tlsSecretName or "") if self.httpsSpec else ""

    @property
    def token_secret(self) -> str:
        """The Secret with the certificate of tokens; "" for none."""
        token = self.attestationTokenVerificationSpec
        return (token.tlsSecretName or "") if token else ""


class TrusteeConfigTree(Struct, frozen=True):
    """What the author of a TrusteeConfig writes."""

    spec: TrusteeConfigSpec

    __checks__: ClassVar = (
        Check(
            NameForLabel(),
            f"write {LONGEST_LABEL} characters at most, for its children have it as a label",
            "metadata.name",
        ),
    )


def check_tls(config: TlsConfig) -> None:
    """ManifestInvalid when the minimum version is above the maximum."""
    if not VERSIONS_IN_ORDER.rule.holds(to_builtins(config)):
        found = f"{config.minVersion} is greater than {config.maxVersion}"
        raise ManifestInvalid(Message(FieldTerm("spec.tlsConfig"), f": {VERSIONS_IN_ORDER.message}: {found}"))


def check_spec(spec: TrusteeConfigSpec) -> None:
    """ManifestInvalid for a spec that is invalid whatever the live state."""
    problems = Problems()
    if spec.tlsConfig:
        problems.collect(check_tls, spec.tlsConfig)
    if spec.ibmSE and not spec.ibmSE.pvName:
        advice = " must be set: name the PersistentVolume with the certificates"
        problems.add([ManifestInvalid(Message(FieldTerm("spec.ibmSE.pvName"), advice))])
    problems.require_none()


class KbsConfigRef(Struct, frozen=True):
    apiVersion: str | UnsetType = UNSET
    """The version of its API."""
    kind: str | UnsetType = UNSET
    """KbsConfig."""
    name: str | UnsetType = UNSET
    """Its name."""
    namespace: str | UnsetType = UNSET
    """Its namespace."""


class TrusteeConfigStatus(Struct, frozen=True):
    """The status: readiness of the KbsConfig, and the last generated values for the next merge."""

    isReady: bool | UnsetType = UNSET
    """Whether the KbsConfig is ready."""
    kbsConfigRef: KbsConfigRef | UnsetType = UNSET
    """The KbsConfig."""
    statusDescription: str | UnsetType = UNSET
    """The readiness in words."""
    lastGenerated: dict[str, Any] | UnsetType = UNSET
    """Digests of the last generated values, by object and field: they tell edits from older generated values."""
    conflicts: list[str] | UnsetType = UNSET
    """Fields where an edit was kept although the generated value changed, too."""


_READY: Final = "TrusteeConfig is ready and KbsConfig is deployed successfully"
_CONTRADICTED: Final = "TrusteeConfig is not ready: an edit contradicts its profile"
_NOT_YET: Final = "TrusteeConfig reconciled but KbsConfig deployment is in progress"


def trustee_status(child: KbsConfigRef, *, is_ready: bool, contradicts: bool = False) -> TrusteeConfigStatus:
    """The status from the readiness of the KbsConfig; `contradicts`: an edit leaves open what the profile closes."""
    ready = _CONTRADICTED if contradicts else _READY
    return TrusteeConfigStatus(
        # Left out when it is not so: that is how trustee-operator writes it.
        isReady=True if is_ready and not contradicts else UNSET,
        kbsConfigRef=child,
        statusDescription=ready if is_ready else _NOT_YET,
    )
