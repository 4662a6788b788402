"""What the status of a KbsConfig shows."""

from msgspec import Struct


class KbsConfigStatus(Struct, frozen=True):
    """Whether Trustee runs."""

    isReady: bool
    """Whether all pods that were asked for run, and run what was asked for. Always written."""
