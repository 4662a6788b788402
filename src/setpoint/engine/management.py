"""What an author and an operator decide about steps: what a step may do, and where its cookie is written."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import annotation_value

MANAGEMENT: Final = known_annotations.MANAGEMENT
# Labels of an object that say that it is managed, as Config Connector has them, whatever the spec says.
MANAGED_LABEL: Final = "managed-by-cnrm"
# On objects whose ids the service makes: the uid of the resource, by which a created object is found again.
MARK_LABEL: Final = "managed-by-setpoint"
MANAGED_LABELS: Final = (MANAGED_LABEL, MARK_LABEL)


class CookieLocation(StrEnum):
    """Where the cookie is written; both are read, and the next step moves one that is in the other place."""

    STATUS = "status"
    ANNOTATION = "annotation"


class Management(StrEnum):
    """What a step may do: everything, observe only, or nothing."""

    FULL = "full"
    OBSERVE = "observe"
    PAUSED = "paused"


def management_of(annotations: Mapping[str, str]) -> Management:
    """The management that the author asks for; ManifestInvalid for an unknown word."""
    # Asked many times in each step: mostly there is none.
    word = annotation_value(annotations, MANAGEMENT) if MANAGEMENT in annotations else None
    return Management.FULL if word is None else Management(word)
