"""The live screen of `setpoint run --live`: redrawn a few times a second, ended with `q`."""

import asyncio
import io
import os
import sys
import termios
import tty
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from setpoint.cli.views.process_snapshot import (
    DELETING,
    NOT_READY,
    READY,
    ProcessSnapshot,
    StepCounter,
    StoreSummary,
    snapshot_process,
    summarize_store,
)
from setpoint.cli.views.table import one_line
from setpoint.cli.views.terminal import SafeConsole
from setpoint.clients.ratelimit.circuit_breaker import BreakerState
from setpoint.clients.ratelimit.limiter import LimiterStats, QuotaBudgets
from setpoint.runtime.manager import Manager

_REDRAW_SECONDS: Final = 0.25
# Summing up a large store takes long: it is done so seldom that it takes a small share of the time.
_SUMMARY_SECONDS, _SUMMARY_SHARE = 1.0, 50
_MAX_LOG_LINES: Final = 200
_MAX_STEPS_SHOWN: Final = 3


class LogBuffer(io.StringIO):
    """Keeps the last lines of the log while the terminal shows the live screen."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=_MAX_LOG_LINES)

    def write(self, text: str) -> int:
        """See io.TextIOBase."""
        self.lines.extend(text.splitlines(keepends=True))
        return len(text)


@asynccontextmanager
async def live_screen(
    console: SafeConsole, manager: Manager, steps: StepCounter, budgets: QuotaBudgets
) -> AsyncIterator[None]:
    """Redraws the screen while the block runs; `q` starts a graceful shutdown."""
    now = manager.engine.clock.monotonic
    began, summary = now(), StoreSummary()

    async def draw() -> None:
        while True:
            shown = draw_snapshot(snapshot_process(manager, began, steps, budgets, summary), console.height)
            live.update(shown, refresh=True)
            await asyncio.sleep(_REDRAW_SECONDS)

    async def refresh_summary() -> None:
        nonlocal summary
        while True:
            start = now()
            summary = await summarize_store(manager, console.height)
            await asyncio.sleep(max(_SUMMARY_SECONDS, _SUMMARY_SHARE * (now() - start)))

    def press(key: str) -> None:
        if key == "q":
            manager.stop()

    with Live(console=console, screen=True, auto_refresh=False) as live, key_presses(press):
        tasks = [asyncio.create_task(draw()), asyncio.create_task(refresh_summary())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def draw_snapshot(snapshot: ProcessSnapshot, height: int) -> RenderableType:
    """The screen: as many lines as fit. Below the upper part, unready resources and events share the rest."""
    upper = [_heading(snapshot), Text(), *_kinds(snapshot), Text(), *_work(snapshot), *_services(snapshot), Text()]
    left = max(0, height - len(upper))
    troubles = _unready(snapshot.summary, max(min(left, 3), left // 2, left - len(snapshot.summary.notes) - 1))
    return Group(*upper, *troubles, *_events(snapshot.summary, left - len(troubles)))


def _heading(snapshot: ProcessSnapshot) -> Text:
    seconds = int(snapshot.seconds)
    time = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    phase = Text(snapshot.phase, style="green" if snapshot.phase == "running" else "yellow")
    return _line(Text("setpoint run  ", style="bold"), phase, Text(f"  for {time}  (q ends it)", style="dim"))


def _kinds(snapshot: ProcessSnapshot) -> list[Text]:
    counts = snapshot.summary.resources
    rows = [
        (kind, *(str(counts.get((kind, how), 0)) for how in (READY, NOT_READY, DELETING))) for kind in snapshot.kinds
    ]
    return _columns(("KIND", "READY", "NOT READY", "DELETING"), rows)


def _work(snapshot: ProcessSnapshot) -> list[Text]:
    waiting = ", ".join(f"{number} {one.name.lower()}" for one, number in sorted(snapshot.depth.items()) if number)
    busy = ", ".join(f"{one.ref} ({one.seconds:.0f}s, after {one.trigger})" for one in snapshot.busy[:_MAX_STEPS_SHOWN])
    if len(snapshot.busy) > _MAX_STEPS_SHOWN:
        busy = f"{len(snapshot.busy)}: {busy}, …"
    first = "; ".join(f"{ref}: {one_line(why)}" for ref, why in snapshot.retrying[:1])
    steps = snapshot.steps
    checks = steps.hits + steps.misses
    hits = f"{steps.hits / checks:.0%} of {checks}" if checks else "none yet"
    facts = (
        ("QUEUE", waiting or "empty"),
        ("IN WORK", busy or "nothing"),
        ("TO COME", f"{snapshot.delayed} steps; {snapshot.retries} retries so far"),
        ("RETRYING", f"{len(snapshot.retrying)}: {first}" if snapshot.retrying else "nothing"),
        ("COOKIE HITS", f"{hits}; {steps.all} steps"),
        *([] if snapshot.shards is None else [("SHARDS", "{} of {} held here".format(*snapshot.shards))]),
    )
    return [_line(Text(f"{name:<13}", style="bold"), Text(text)) for name, text in facts]


def _services(snapshot: ProcessSnapshot) -> list[Text]:
    return [_service(limiter, snapshot) for limiter in snapshot.services.limiters]


def _service(limiter: LimiterStats, snapshot: ProcessSnapshot) -> Text:
    budgets = [one for one in snapshot.services.budgets if one.key.service == limiter.service]
    waiting, throttles = sum(one.waiting for one in budgets), sum(one.throttles for one in budgets)
    is_down = limiter.breaker is not BreakerState.CLOSED
    breaker = Text(f"does not answer (breaker {limiter.breaker.value}); " if is_down else "", style="red")
    text = f"{limiter.in_flight} calls under way, {waiting} waiting, {sum(one.rate for one in budgets):.1f}/s allowed"
    text += f", throttled {throttles} times" if throttles else ""
    return _line(Text(f"{'SERVICE':<13}", style="bold"), Text(f"{limiter.service}: "), breaker, Text(text))


def _unready(summary: StoreSummary, room: int) -> list[Text]:
    rows = [(str(one.ref), one.reason, one_line(one.message)) for one in summary.troubles[: max(0, room - 2)]]
    return [*_columns(("NOT READY", "REASON", "MESSAGE"), rows, "yellow"), Text()] if rows else []


def _events(summary: StoreSummary, room: int) -> list[Text]:
    shown = summary.notes[-(room - 1) :] if room > 1 else ()
    rows = [(note.at, str(note.ref), note.reason, one_line(note.message)) for note in shown]
    return _columns(("EVENT", "RESOURCE", "REASON", "MESSAGE"), rows) if rows else []


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]], style: str = "") -> list[Text]:
    widths = [max(cell_len(row[number]) for row in (header, *rows)) for number in range(len(header))]
    lines = [(header, "bold"), *((row, style) for row in rows)]
    return [
        _line(Text("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), style=one))
        for cells, one in lines
    ]


def _line(*parts: Text) -> Text:
    """One line, cut off at the right edge."""
    line = Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        line.append_text(part)
    return line


@contextmanager
def key_presses(press: Callable[[str], None]) -> Iterator[None]:
    """Calls `press` with each key, without waiting for Enter; restores the terminal. Ctrl-C stays a signal."""
    terminal, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(terminal)

    def read() -> None:
        data = os.read(terminal, 64)
        if not data:
            # The terminal was closed.
            loop.remove_reader(terminal)
        for key in data.decode(errors="replace"):
            press(key)

    tty.setcbreak(terminal)
    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
