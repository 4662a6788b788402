"""What was sent for one intent: a later step finishes the update, and does not take its effect for drift."""

from collections.abc import Iterable
from typing import Final

from setpoint.core.decide import Cookie, Decision
from setpoint.core.values.canonical import canonical
from setpoint.core.values.deferred_dataclass import dataclass, replace

# The most bytes of a list or map of fields.
MAX_FIELDS_BYTES: Final = 2048
# What a decision is called while an update is under way: its writes are what changed the live object.
_WITHOUT_OWN_WRITES: Final = {
    Decision.BOTH: Decision.INTENT_CHANGED,
    Decision.REVISED_AND_CHANGED: Decision.REVISED,
}


@dataclass(frozen=True, slots=True)
class WriteAttempt:
    """The fields sent so far for one intent; once none is left to send, the cookie at which some still differed."""

    intent: str
    sent: tuple[str, ...] = ()
    unconverged_at: Cookie | None = None
    # The names of writes that had too many fields to list: all fields of such a write count as sent.
    sent_writes: tuple[str, ...] = ()
    # The fields of the writes that follow the one sent last.
    pending: tuple[str, ...] = ()

    def with_sent(self, write: str, paths: tuple[str, ...]) -> "WriteAttempt":
        """The attempt once the write of this name has been sent, with the fields at `paths`."""
        sent = tuple(dict.fromkeys((*self.sent, *paths)))
        if len(canonical(sent)) <= MAX_FIELDS_BYTES:
            return replace(self, sent=sent)
        return replace(self, sent_writes=tuple(dict.fromkeys((*self.sent_writes, write))))

    def with_pending(self, paths: tuple[str, ...]) -> "WriteAttempt":
        """The attempt with the fields that the author changed and that follow; too many to list are not known."""
        is_listed = not paths or len(canonical(paths)) <= MAX_FIELDS_BYTES
        return replace(self, pending=paths if is_listed else ())

    def explains(self, field: str, intent: str) -> bool:
        """Whether a field differs because the update to this intent is under way."""
        return self._has_begun(intent) and (field in self.sent or field in self.pending)

    def continued(self, decision: Decision, intent: str, differing: Iterable[str]) -> Decision:
        """The decision of a step that finishes this attempt, given the fields that still differ.

        The live object differs from the cookie because of what was sent. Only a field that was neither sent nor
        pending shows that another writer changed it, too.
        """
        if not self._has_begun(intent) or not all(self.explains(one, intent) for one in differing):
            return decision
        return _WITHOUT_OWN_WRITES.get(decision, decision)

    def _has_begun(self, intent: str) -> bool:
        return self.intent == intent and bool(self.sent or self.sent_writes) and self.unconverged_at is None
