"""Progress while a command runs: a line per resource, a bar for a preview of all resources, a spinner.

Drawn on a terminal; plain lines in a pipe.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.text import Text

from setpoint.cli.views.table import one_line
from setpoint.cli.views.terminal import SafeConsole, error_console
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.resource import ResourceRef
from setpoint.library.command_record import NOT_STEPPED
from setpoint.library.outcome import ExitCode, OutcomeSummary

# What draws on a terminal is imported there: it takes as long as the command does.
if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress, TaskID

    from setpoint.engine.step.preview import PreviewResult

_CODE_ORDER: Final = (ExitCode.DONE, ExitCode.CHANGES, ExitCode.WAITING, ExitCode.FAILED)
# The columns kept free for a word and a time beside a name.
_MARGIN: Final = 20


@dataclass(slots=True)
class ResourceProgress:
    """A line for each resource with its latest outcome: redrawn on a terminal, a line per change in a pipe.

    What is not done is in the last lines. With `is_shown` False nothing is printed before `print_unfinished` is called.
    """

    console: SafeConsole
    is_shown: bool = True
    states: dict[ResourceRef, OutcomeSummary] = field(default_factory=dict)
    # The resources in the order of their last lines in a pipe.
    _printed: dict[ResourceRef, None] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)
    _took: dict[ResourceRef, float] = field(default_factory=dict)
    _live: "Live | None" = None
    _is_finished: bool = False

    def __enter__(self) -> Self:
        # A pipe with forced colours cannot be redrawn.
        if self.is_shown and self.console.is_interactive and self.console.file.isatty():
            from rich.live import Live

            self._live = Live(get_renderable=self._render, console=self.console, refresh_per_second=8)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_finished = True
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def expect(self, refs: Iterable[ResourceRef]) -> None:
        """Shows resources that are going to be reconciled."""
        self.states = dict(sorted({**dict.fromkeys(refs, NOT_STEPPED), **self.states}.items()))

    def set_state(self, ref: ResourceRef, state: OutcomeSummary) -> None:
        """Shows what became of a resource so far."""
        before = self.states.get(ref)
        self.states[ref] = state
        self._took[ref] = time.monotonic() - self._since
        if self._live is None and state != before:
            self._printed.pop(ref, None)
            self._printed[ref] = None
            if self.is_shown:
                self.console.print(self._line(ref, state), soft_wrap=True)

    def print_unfinished(self) -> None:
        """Prints what is not done, failures last: again, where other lines have followed. Drawn lines end so anyway."""
        unfinished = [ref for ref in self._by_code(self.states) if self.states[ref].code is not ExitCode.DONE]
        lines = [ref for ref in unfinished if ref in self._printed]
        last = list(self._printed)[len(self._printed) - len(lines) :]
        if self.is_shown and last == self._by_code(last) and set(last) == set(lines):
            return
        for ref in lines:
            self.console.print(self._line(ref, self.states[ref]), soft_wrap=True)

    def _by_code(self, refs: Iterable[ResourceRef]) -> list[ResourceRef]:
        """The resources: first what is done, last what failed; otherwise in the order given."""
        return sorted(refs, key=lambda ref: _CODE_ORDER.index(self.states[ref].code))

    def _render(self) -> RenderableType:
        return self._final_lines() if self._is_finished else self._table_while_running()

    def _table_while_running(self) -> RenderableType:
        """One line each; unfinished resources first when the screen is too small for all."""
        room = max(1, self.console.height - 2)
        refs = list(self.states)
        if len(refs) > room:
            refs = sorted(refs, key=lambda ref: self.states[ref].code is not ExitCode.WAITING)[:room]
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for ref in refs:
            state = self.states[ref]
            cells = (str(ref), state.word, self._time(ref), one_line(state.detail))
            table.add_row(*(Text(cell, overflow="ellipsis", no_wrap=True) for cell in cells), style=state.style)
        return Group(table, *self._left_out(len(refs)))

    def _left_out(self, shown: int) -> list[Text]:
        if shown == len(self.states):
            return []
        done = sum(state.code is not ExitCode.WAITING for state in self.states.values())
        total = len(self.states)
        text = f"… and {total - shown} more; {done} of {total} done"
        return [Text(text, style="dim", overflow="ellipsis", no_wrap=True)]

    def _final_lines(self) -> RenderableType:
        """The final state. No message is cut: one that does not fit beside the name is printed below it."""
        from rich.padding import Padding

        room = max(1, self.console.width - _MARGIN)
        names = min(max((cell_len(str(ref)) for ref in self.states), default=1), room)
        words = max((len(state.word) for state in self.states.values()), default=0)
        parts: list[RenderableType] = []
        for ref in self._by_code(self.states):
            state = self.states[ref]
            head = f"{ref!s:<{names}}  {state.word:<{words}}  {self._time(ref)}"
            detail = one_line(state.detail)
            line = f"{head}  {detail}" if detail else head
            if cell_len(line) <= self.console.width or not detail:
                parts.append(Text(line, style=state.style))
            else:
                parts += [Text(head, style=state.style), Padding(Text(detail, style=state.style), (0, 0, 0, 2))]
        return Group(*parts)

    def _time(self, ref: ResourceRef) -> str:
        is_open = self.states[ref].code is ExitCode.WAITING
        took = time.monotonic() - self._since if is_open else self._took.get(ref, 0.0)
        return f"{took:.0f}s"

    def _line(self, ref: ResourceRef, state: OutcomeSummary) -> Text:
        detail = one_line(state.detail)
        return Text(f"{ref} {state.word}" + (f": {detail}" if detail else ""), style=state.style)


# In a pipe, one line for so many resources.
_LINE_EVERY: Final = 1000


def _progress_bar() -> "Progress | None":
    if not sys.stderr.isatty():
        return None
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (TextColumn("planning"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*parts, console=error_console(), transient=True)


@dataclass(slots=True)
class PreviewProgress:
    """The progress of a preview of all resources. `total` is their number, where it is known."""

    total: int | None = None
    done: int = 0
    _bar: "Progress | None" = field(default_factory=_progress_bar)
    _task: "TaskID | None" = None

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

    def advance(self, _found: "PreviewResult") -> None:
        """Counts one more resource."""
        self.done += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self.done)
        elif self.done % _LINE_EVERY == 0:
            of = "" if self.total is None else f" of {self.total}"
            sys.stderr.write(f"{self.done}{of} planned\n")


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """A spinner with this text on a terminal's standard error; nothing in a pipe."""
    if sys.stderr.isatty():
        with error_console().status(Text(what)):
            yield
    else:
        yield
