"""How far a look at everything has come: drawn on a terminal, a line now and then in a pipe; on standard error."""

import sys
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from setpoint.engine.previews import Previewed

# In a pipe there is a line for each so many.
_STRIDE: Final = 1000


def _drawn() -> Progress | None:
    if not sys.stderr.isatty():
        return None
    parts = (TextColumn("looking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*parts, console=Console(stderr=True), transient=True)


@dataclass(slots=True)
class SurveyProgress:
    """Open while everything is looked at. `total` is how much that is, where it is known."""

    total: int | None = None
    done: int = 0
    _bar: Progress | None = field(default_factory=_drawn)
    _task: TaskID = field(default=TaskID(0))

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def hear(self, _found: Previewed) -> None:
        """One more was looked at."""
        self.done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done)
        elif self.done % _STRIDE == 0:
            of = "" if self.total is None else f" of {self.total}"
            sys.stderr.write(f"{self.done}{of} looked at\n")
