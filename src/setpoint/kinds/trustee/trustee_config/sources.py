"""What a TrusteeConfig needs that others made: Secrets with certificates, and a volume."""

from typing import Final, NamedTuple

from setpoint.core.kubernetes import text_at
from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.errors import DependencyInvalid, DependencyNotFound
from setpoint.kinds.trustee.trustee_config.spec import ProfileType, TrusteeConfigSpec

_TLS_TYPE: Final = "kubernetes.io/tls"


class TlsPair(NamedTuple):
    """A private key and its certificate, as a Secret's data has them: in base64."""

    key: str
    certificate: str


class Sources(NamedTuple):
    """What others made, as it is; None for what is not there."""

    https: Tree | None = None
    token: Tree | None = None
    volume: Tree | None = None
    claim: Tree | None = None


def tls_pair(purpose: str, name: str, secret: Tree | None) -> TlsPair:
    """The pair in a Secret; an error says what is wrong with it. `purpose` is `HTTPS` or `attestation`."""
    if secret is None:
        raise DependencyNotFound(
            f"{purpose} secrets: Secret {name} not found: create it, of type {_TLS_TYPE}, in the same namespace"
        )
    if text_at(secret, "type") != _TLS_TYPE:
        raise DependencyInvalid(f"{purpose} secrets: Secret {name} is not of type {_TLS_TYPE}: create one that is")
    return TlsPair(_member(purpose, name, secret, "tls.key"), _member(purpose, name, secret, "tls.crt"))


def _member(purpose: str, name: str, secret: Tree, key: str) -> str:
    found = text_at(secret, "data", key)
    if not found:
        raise DependencyInvalid(f"{purpose} secrets: {key} not found in TLS secret {name}: add it")
    return found


def check_volume(name: str, volume: Tree | None, claim: Tree | None) -> None:
    """An error unless the volume is there and an older claim, if any, is on it."""
    if volume is None:
        raise DependencyNotFound(f"IBM SE PVC: PersistentVolume {name} not found: create it, and put the files there")
    bound: Json = None if claim is None else text_at(claim, "spec", "volumeName")
    if bound and bound != name:
        raise DependencyInvalid(
            f"IBM SE PVC: {text_at(claim, 'metadata', 'name')} is bound to volume {bound}, not {name}: "
            "delete the claim, or name its volume in spec.ibmSE.pvName"
        )


def gaps(spec: TrusteeConfigSpec) -> tuple[str, ...]:
    """What a spec leaves out that the server will not start without."""
    if spec.profile is not ProfileType.RESTRICTED:
        return ()
    told = {
        "spec.httpsSpec.tlsSecretName": spec.https_secret,
        "spec.attestationTokenVerificationSpec.tlsSecretName": spec.token_secret,
    }
    return tuple(
        f"{field} is not set: a Restricted TrusteeConfig cannot start without it"
        for field, name in told.items()
        if not name
    )
