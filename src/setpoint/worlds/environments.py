"""The environment as a part of the world: what was asked of it is on record, and nothing besides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from setpoint.errors import NotRecorded


@dataclass(frozen=True, slots=True)
class WatchedEnvironment(Mapping[str, str]):
    """An environment that notes what it is asked for, and whether that is there."""

    source: Mapping[str, str] = field(repr=False)
    asked: dict[str, str | None]

    def __getitem__(self, name: str) -> str:
        self.asked[name] = self.source.get(name)
        return self.source[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.source)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class RecordedEnvironment(Mapping[str, str]):
    """An environment as it was; NotRecorded for what nobody asked."""

    known: Mapping[str, str | None]

    def __getitem__(self, name: str) -> str:
        if name not in self.known:
            raise NotRecorded(f"the variable {name} was not asked for when this world was recorded: record it again")
        found = self.known[name]
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, text in self.known.items() if text is not None)

    def __len__(self) -> int:
        return sum(text is not None for text in self.known.values())
