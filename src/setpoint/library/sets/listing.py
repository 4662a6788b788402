"""The sets on record, as a session returns them."""

from collections.abc import Iterator

import msgspec

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.engine.sets.resource_set import SetRecord
from setpoint.library.declared import SessionValue


@dataclass(frozen=True, slots=True, eq=False)
class SetListing(SessionValue):
    """Sets, sorted by name."""

    sets: tuple[SetRecord, ...]

    def __iter__(self) -> Iterator[SetRecord]:
        return iter(self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> SetRecord:
        return self.sets[index]

    def to_data(self) -> Json:
        """A list with the record of each; a member is left out where there is nothing to say."""
        return [set_data(one) for one in self.sets]

    def __repr__(self) -> str:
        return f"<{len(self)} set{'s' * (len(self) != 1)}>"


def set_data(record: SetRecord) -> dict[str, Json]:
    """The record of a set as JSON, with its state and its number of resources."""
    data: dict[str, Json] = msgspec.to_builtins(record)
    return {**data, "count": record.count, "state": record.state.value}
