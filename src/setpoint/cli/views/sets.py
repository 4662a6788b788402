"""Sets as text: the table of `setpoint get sets`."""

from collections.abc import Iterable
from typing import Final

from rich.text import Text

from setpoint.cli.views.table import TextTable
from setpoint.engine.sets.resource_set import SetRecord, SetState, short_revision

_COLUMNS: Final = ("NAME", "STATE", "RESOURCES", "REVISION", "DECLARED")
_FAILURE: Final = ("REFUSED", "AT", "ERROR")
_STYLES: Final = {SetState.FAILED: "red", SetState.PRUNING: "yellow", SetState.WAITING: "yellow"}


def sets_table(sets: Iterable[SetRecord], *, wide: bool) -> Text:
    """A line for each set, with the reason why its newest version is refused; revisions in full with `wide`."""
    found = list(sets)
    has_failure = any(one.error for one in found)
    table = TextTable(*_COLUMNS, *(_FAILURE if has_failure else ()), "SOURCE")
    return table.lines((_row(one, wide=wide, has_failure=has_failure), _STYLES.get(one.state, "")) for one in found)


def _row(one: SetRecord, *, wide: bool, has_failure: bool) -> tuple[str, ...]:
    revision, refused = one.revision, one.failed_revision
    if not wide:
        revision, refused = short_revision(revision), short_revision(refused)
    good = (one.name, one.state.value, str(one.count), revision or "none", one.declared_at or "never")
    failure = (refused, one.failed_at, one.error) if has_failure else ()
    return (*good, *failure, one.source)
