"""What the status of a TrusteeConfig shows."""

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType


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
    """How the KbsConfig is, and what the next pass has to know of this one."""

    isReady: bool | UnsetType = UNSET
    """Whether the KbsConfig is."""
    kbsConfigRef: KbsConfigRef | UnsetType = UNSET
    """The KbsConfig."""
    statusDescription: str | UnsetType = UNSET
    """The same in words."""
    lastGenerated: dict[str, Any] | UnsetType = UNSET
    """Digests of what was generated, by object and field: what tells a person's edit from an older value of ours."""
    conflicts: list[str] | UnsetType = UNSET
    """Where a person's edit was kept although what is generated changed, too."""


_READY: Final = "TrusteeConfig is ready and KbsConfig is deployed successfully"
_NOT_YET: Final = "TrusteeConfig reconciled but KbsConfig deployment is in progress"


def status_of(child: KbsConfigRef, *, is_ready: bool) -> TrusteeConfigStatus:
    """The status that follows from the child's."""
    return TrusteeConfigStatus(
        # Left out when it is not so: that is how trustee-operator writes it.
        isReady=True if is_ready else UNSET,
        kbsConfigRef=child,
        statusDescription=_READY if is_ready else _NOT_YET,
    )
