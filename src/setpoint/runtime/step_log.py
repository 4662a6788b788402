"""The log lines of steps: one for each write, each drift and each refusal, with the paths of the fields."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from setpoint.core.values.paths import Path
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.reports import HistoryEntry, ReportedWrite, StepSubject
from setpoint.errors import SetpointError

_log: Final = logging.getLogger(__name__)
# So many fields are named in a line, and so many resources with drift are remembered.
_MAX_FIELDS: Final = 50
_MAX_DRIFTED: Final = 10_000


class StepLog:
    """Logs what steps report. Drift that stays, as of a resource that is only observed, is logged once."""

    def __init__(self) -> None:
        # The last drift of each resource that was logged, and is not corrected yet.
        self._drifted: dict[ResourceRef, tuple[str, ...]] = {}

    @contextmanager
    def writing(self, writes: Sequence[ReportedWrite]) -> Iterator[None]:
        """See StepReporter. A write that fails is logged as a refusal, or as a step to be retried."""
        yield
        for write in writes:
            self._drifted.pop(write.subject.ref, None)
            fields = {"action": write.action.value, "target": write.target, "why": write.decision}
            paths = named_fields([change.path for change in write.changes])
            _log.info("written", extra={**_subject(write.subject), **fields, "fields": paths})

    def drift(self, subject: StepSubject, fields: Sequence[str], *, is_deleted: bool = False) -> None:
        """See StepReporter."""
        found = (*fields, *(("(deleted)",) if is_deleted else ()))
        if self._drifted.get(subject.ref, ()) == found:
            return
        if not found:
            del self._drifted[subject.ref]
            return
        if len(self._drifted) >= _MAX_DRIFTED:
            self._drifted.clear()
        self._drifted[subject.ref] = found
        event = "object deleted by another writer" if is_deleted else "drift found"
        _log.info(event, extra={**_subject(subject), "fields": named_fields(fields)})

    def take_history(self, ref: ResourceRef) -> Sequence[HistoryEntry]:  # as in the protocol
        """See StepReporter."""
        return ()

    def refused(self, subject: StepSubject, error: SetpointError) -> None:
        """See StepReporter."""
        _log.warning("refused", extra={**_subject(subject), "error": type(error).__name__, "why": str(error)})


def named_fields(paths: Sequence[str | Path]) -> list[str]:
    """The paths as a line names them: the first ones, and how many more there are."""
    more = len(paths) - _MAX_FIELDS
    return [*map(str, paths[:_MAX_FIELDS]), *([f"and {more} more"] if more > 0 else [])]


def _subject(subject: StepSubject) -> dict[str, object]:
    source = {"source": subject.source} if subject.source else {}
    return {"ref": str(subject.ref), "trigger": subject.trigger, **source}
