"""What a run found, as a table for people or as JSON."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import Final

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import queue, sql_instance
from benchmarks.bars import COOKIE, Verdict
from benchmarks.measuring import Figure, Pace
from benchmarks.surveys import Reading, Unit, Unmeasured

SIZES: Final = ("1 KB", "6 KB", "60 KB")
_NO_SIZE: Final = ""
# What is measured in the same sizes stands in one table.
_TABLES: Final = (SIZES, queue.SIZES, (_NO_SIZE,))
_PIPE_WIDTH: Final = 140


@dataclass(frozen=True, slots=True)
class Report:
    """The figures and verdicts of one run, and what it ran on."""

    figures: tuple[Figure, ...]
    readings: tuple[Reading, ...]
    verdicts: tuple[Verdict, ...]
    versions: Mapping[str, str]
    pace: Pace
    unmeasured: tuple[Unmeasured, ...] = ()

    @property
    def bars_met(self) -> str:
        """The closing line."""
        return f"bars met: {sum(verdict.is_met for verdict in self.verdicts)} of {len(self.verdicts)}"


def as_json(report: Report) -> str:
    """The report for programs: nanoseconds, seconds, bytes and numbers, plain ratios, every verdict."""
    data = {
        "python": platform.python_version(),
        "versions": report.versions,
        "rounds": report.pace.rounds,
        "figures": [asdict(figure) for figure in report.figures],
        "readings": [asdict(reading) for reading in report.readings],
        "unmeasured": [asdict(one) for one in report.unmeasured],
        "bars": [asdict(verdict) for verdict in report.verdicts],
        "bars_met": sum(verdict.is_met for verdict in report.verdicts),
    }
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()


def show(report: Report) -> None:
    """Prints the report: drawn on a terminal, plain lines into a pipe."""
    console = Console()
    if console.is_terminal:
        _draw(report, console)
    else:
        print(as_text(report))


def as_text(report: Report) -> str:
    """The table in plain lines."""
    console = Console(file=StringIO(), width=_PIPE_WIDTH, no_color=True, force_terminal=False)
    with console.capture() as drawn:
        _draw(report, console)
    return "\n".join(line.rstrip() for line in drawn.get().splitlines())


def _draw(report: Report, console: Console) -> None:
    console.print(Text(_header(report)))
    for sizes in _TABLES:
        if sizes == SIZES or any(figure.size in sizes for figure in report.figures):
            console.print(_table(report, sizes))
    if report.readings:
        console.print(_readings_table(report))
    for one in report.unmeasured:
        console.print(Text(f"not measured: {one.subject}: {one.reason}\n", style="red"), soft_wrap=True)
    console.print(Text(report.bars_met))


def _header(report: Report) -> str:
    versions = (f"{name} {version}" for name, version in report.versions.items())
    modelled = ", ".join(f"{sql_instance.modelled_bytes(size) / 1000:.1f}" for size in sql_instance.SIZES)
    return (
        f"Python {platform.python_version()}, {', '.join(versions)}\n"
        f"CPU time to do the job once: the best of up to {report.pace.rounds} rounds in which contestants take turns.\n"
        f"Sizes are those of the JSON body; {modelled} KB of it are modelled: structs and plans hold no more.\n"
        "× is the multiple of the first line of each block.\n"
    )


def _table(report: Report, sizes: tuple[str, ...]) -> Table:
    """What was measured in `sizes`, side by side."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", overflow="fold")
    for size in sizes:
        table.add_column(size, justify="right", no_wrap=True)
        table.add_column("×", justify="right", no_wrap=True)
    table.add_column("bar")
    figures = [figure for figure in report.figures if figure.size in sizes]
    for subject in dict.fromkeys(figure.subject for figure in figures):
        table.add_row(Text(subject, style="bold"))
        for cells in _rows([figure for figure in figures if figure.subject == subject], sizes, report):
            table.add_row(*cells)
        table.add_row()
    for verdict in report.verdicts:
        if verdict.subject == COOKIE and sizes == SIZES:
            table.add_row(Text(COOKIE, style="bold"), *[""] * 2 * len(SIZES), _bar(verdict))
            table.add_row()
    return table


def _readings_table(report: Report) -> Table:
    """What surveys found."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", overflow="fold")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("×", justify="right", no_wrap=True)
    table.add_column("bar")
    for subject in dict.fromkeys(reading.subject for reading in report.readings):
        table.add_row(Text(subject, style="bold"))
        for reading in report.readings:
            if reading.subject == subject:
                table.add_row(*_amounts(reading), *_bars(report, subject, reading.name))
        table.add_row()
    return table


def _amounts(reading: Reading) -> tuple[Text, Text, Text]:
    ratio = "" if reading.ratio is None else _multiple(reading.ratio)
    return Text(f"  {reading.name}"), Text(_amount(reading)), Text(ratio, style="dim")


def _rows(figures: Sequence[Figure], sizes: tuple[str, ...], report: Report) -> Iterator[list[Text]]:
    """A line for each contestant, its sizes side by side."""
    for name in dict.fromkeys(figure.contestant for figure in figures):
        mine = {figure.size: figure for figure in figures if figure.contestant == name}
        cells = [cell for size in sizes for cell in _cells(mine.get(size))]
        yield [Text(f"  {name}"), *cells, *_bars(report, figures[0].subject, name)]


def _bars(report: Report, subject: str, name: str) -> list[Text]:
    """The bar of a line; one at most."""
    return [_bar(verdict) for verdict in report.verdicts if (verdict.subject, verdict.contestant) == (subject, name)]


def _cells(figure: Figure | None) -> tuple[Text, Text]:
    if figure is None:
        return Text(), Text()
    return Text(_duration(figure.nanoseconds)), Text(_multiple(figure.ratio), style="dim")


def _duration(nanoseconds: float) -> str:
    milliseconds, microseconds = nanoseconds / 1e6, nanoseconds / 1e3
    return f"{milliseconds:,.1f} ms" if milliseconds >= 1 else f"{microseconds:.1f} µs"


def _amount(reading: Reading) -> str:
    match reading.unit:
        case Unit.SECONDS:
            return _duration(reading.value * 1e9)
        case Unit.BYTES:
            return f"{reading.value / 1e6:,.0f} MB" if reading.value >= 1e6 else f"{reading.value:,.0f} bytes"
        case Unit.NUMBER:
            return f"{reading.value:,.0f}"


def _multiple(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _bar(verdict: Verdict) -> Text:
    return Text(str(verdict), style="green" if verdict.is_met else "red")
