"""What each resource is doing, how long, and what it waits for: drawn on a terminal, a line per change in a pipe."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from setpoint.cli.states import Exit, State, state_of
from setpoint.engine.resource import ResourceRef
from setpoint.engine.scene import Outcome

_LOOKING = State("looking", "", "dim", Exit.WAITING)


@dataclass(slots=True)
class Progress:
    """A line for each resource, kept up to date while it is open."""

    console: Console
    refs: Iterable[ResourceRef]
    states: dict[ResourceRef, State] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)
    _took: dict[ResourceRef, float] = field(default_factory=dict)
    _live: Live | None = None

    def __enter__(self) -> Self:
        self.states = dict.fromkeys(sorted(self.refs), _LOOKING)
        if self.console.is_terminal:
            self._live = Live(get_renderable=self._table, console=self.console, refresh_per_second=8)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def hear(self, ref: ResourceRef, outcome: Outcome) -> None:
        """Takes note of what a step came to."""
        state = state_of(outcome)
        before = self.states.get(ref)
        self.states[ref] = state
        self._took[ref] = time.monotonic() - self._since
        if self._live is None and state != before:
            self.console.print(self._line(ref, state), soft_wrap=True)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for ref, state in self.states.items():
            took = time.monotonic() - self._since if state.code is Exit.WAITING else self._took.get(ref, 0.0)
            cells = (str(ref), state.word, f"{took:.0f}s", state.detail)
            table.add_row(*(Text(cell, overflow="ellipsis", no_wrap=True) for cell in cells), style=state.style)
        return table

    def _line(self, ref: ResourceRef, state: State) -> Text:
        return Text(f"{ref} {state.word}" + (f": {state.detail}" if state.detail else ""), style=state.style)
