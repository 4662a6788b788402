"""What a command tells of its resources, by the outcomes of their steps."""

import pytest

from setpoint.core.plan import Action
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.observe import IDLE
from setpoint.engine.step.outcomes import Stopped
from setpoint.errors import OperationRunning, SetpointError, WriteConflict
from setpoint.library.command_record import CommandObserver, CommandRecord, ReportedCommand

REF = ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", "logs")


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (OperationRunning("it runs", begun=Action.CREATE.value), "created"),
        (WriteConflict("another writer was first", begun=Action.CREATE.value), "created"),
        (WriteConflict("another writer was first", begun=Action.UPDATE.value), "updated"),
        (WriteConflict("another writer was first"), "unchanged"),
    ],
)
def test_what_a_step_began_is_told_once_a_later_one_has_nothing_to_write(error: SetpointError, word: str) -> None:
    record = CommandRecord(ReportedCommand.APPLY, CommandObserver())

    record.add_outcome(REF, Stopped(error))
    record.add_outcome(REF, IDLE)

    assert record.states[REF].word == word
