"""Spec and status of an IAMServiceAccountKey: type and mutability of each field."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.schema.checks import AnyOf, Check, Given, Not
from setpoint.core.schema.constraints import Matches
from setpoint.core.schema.shape import Mark
from setpoint.kind.spec_references import RefersTo
from setpoint.kind.typed_spec import Maybe, SpecStruct
from setpoint.kinds.gcp.shared.config_connector import RESOURCE_ID_CHECK, SpecReference

GROUP: Final = "iam.cnrm.cloud.google.com"
VERSION: Final = "v1beta1"
# What a creation asks for where the spec says nothing else, and how the public key is read.
DEFAULT_ALGORITHM: Final = "KEY_ALG_RSA_2048"
CREDENTIALS_FILE: Final = "TYPE_GOOGLE_CREDENTIALS_FILE"
PKCS12_FILE: Final = "TYPE_PKCS12_FILE"
X509_FILE: Final = "TYPE_X509_PEM_FILE"
BASE64: Final = Matches("[A-Za-z0-9+/_=\\s-]+", "a certificate (X.509, PEM) in base64", 65536, or_empty=False)
KEY_ID: Final = Matches("[0-9a-f]+", "the id of a key: hexadecimal digits", 64, or_empty=False)
_UPLOADED: Final = "is for a key that the service generates: leave it out, or leave publicKeyData out"


class ServiceAccountKeySpec(SpecStruct, frozen=True):
    """The spec of an IAMServiceAccountKey. Nothing of it can change: another key is another resource."""

    serviceAccountRef: Annotated[SpecReference, RefersTo(GROUP, "IAMServiceAccount"), Mark.IMMUTABLE]
    """The service account that the key is of."""
    keyAlgorithm: Annotated[
        Maybe[Literal["KEY_ALG_UNSPECIFIED", "KEY_ALG_RSA_1024", "KEY_ALG_RSA_2048"]], Mark.IMMUTABLE
    ] = UNSET
    """The algorithm of the key; RSA with 2048 bits when left out."""
    privateKeyType: Annotated[
        Maybe[Literal["TYPE_UNSPECIFIED", "TYPE_PKCS12_FILE", "TYPE_GOOGLE_CREDENTIALS_FILE"]],
        Mark.IMMUTABLE,
        Mark.ASKED,
    ] = UNSET
    """What the Secret has: a file of credentials in the entry `key.json`, the default, or PKCS 12 in `key.p12`."""
    publicKeyData: Annotated[Maybe[str], BASE64, Mark.IMMUTABLE] = UNSET
    """The certificate of a key pair of your own, in base64. Then no key is generated, and there is no Secret."""
    publicKeyType: Annotated[
        Maybe[Literal["TYPE_NONE", "TYPE_X509_PEM_FILE", "TYPE_RAW_PUBLIC_KEY"]], Mark.IMMUTABLE, Mark.ASKED
    ] = UNSET
    """The form of the public key in the status: a certificate, the default, a bare key, or none."""
    resourceID: Annotated[Maybe[str], KEY_ID, Mark.IMMUTABLE] = UNSET
    """The id of a key that exists already. Its private part cannot be read: no Secret is written."""

    __checks__: ClassVar = (
        RESOURCE_ID_CHECK,
        Check(AnyOf(Not(Given("publicKeyData")), Not(Given("keyAlgorithm"))), _UPLOADED, "keyAlgorithm"),
        Check(AnyOf(Not(Given("publicKeyData")), Not(Given("privateKeyType"))), _UPLOADED, "privateKeyType"),
    )


class ServiceAccountKeyTree(Struct, frozen=True):
    """The compared tree. The service account and the id are the location."""

    spec: ServiceAccountKeySpec


class ServiceAccountKeyStatus(Struct, frozen=True):
    """The status: what the service reports of the key. The private key is in the Secret alone."""

    name: str | UnsetType = UNSET
    """The name of the key in the service."""
    publicKey: str | UnsetType = UNSET
    """The public key, in base64."""
    validAfter: str | UnsetType = UNSET
    """From when on the key can be used."""
    validBefore: str | UnsetType = UNSET
    """Until when the key can be used."""
    disabled: bool | UnsetType = UNSET
    """Whether another writer has disabled the key: it stays so."""
