"""The report of a run, as text tables or as JSON."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import Final

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import sql_instance, work_queue
from benchmarks.comparison import BenchmarkSettings, Timing
from benchmarks.scenarios import Measurement, Unit, Unmeasured
from benchmarks.targets import COOKIE, TargetResult

SIZES: Final = ("1 KB", "6 KB", "60 KB")
_NO_SIZE: Final = ""
# Timings of the same sizes share a table.
_TABLES: Final = (SIZES, work_queue.SIZES, (_NO_SIZE,))
_PIPE_WIDTH: Final = 140


@dataclass(frozen=True, slots=True)
class Report:
    """Timings, measurements and target results of a run, with the versions of the packages."""

    timings: tuple[Timing, ...]
    measurements: tuple[Measurement, ...]
    target_results: tuple[TargetResult, ...]
    versions: Mapping[str, str]
    settings: BenchmarkSettings
    unmeasured: tuple[Unmeasured, ...] = ()

    @property
    def targets_met(self) -> str:
        """The last line of the report."""
        return f"bars met: {sum(result.is_met for result in self.target_results)} of {len(self.target_results)}"


def as_json(report: Report) -> str:
    """The report for programs: nanoseconds, seconds, bytes and numbers, plain ratios, every target."""
    data = {
        "python": platform.python_version(),
        "versions": report.versions,
        "rounds": report.settings.rounds,
        "figures": [_timing_fields(timing) for timing in report.timings],
        "readings": [asdict(measurement) for measurement in report.measurements],
        "unmeasured": [asdict(unmeasured) for unmeasured in report.unmeasured],
        "bars": [_target_fields(result) for result in report.target_results],
        "bars_met": sum(result.is_met for result in report.target_results),
    }
    return orjson.dumps(data, option=orjson.OPT_INDENT_2).decode()


def _timing_fields(timing: Timing) -> Mapping[str, object]:
    return {
        "subject": timing.subject,
        "size": timing.size,
        "contestant": timing.candidate,
        "nanoseconds": timing.nanoseconds,
        "ratio": timing.ratio,
    }


def _target_fields(result: TargetResult) -> Mapping[str, object]:
    return {
        "subject": result.subject,
        "contestant": result.candidate,
        "bar": result.target,
        "figure": result.measured,
        "is_met": result.is_met,
    }


def show(report: Report) -> None:
    """Prints the report: with colours on a terminal, as plain lines into a pipe."""
    console = Console()
    if console.is_terminal:
        _draw(report, console)
    else:
        print(as_text(report))


def as_text(report: Report) -> str:
    """The tables as plain lines."""
    console = Console(file=StringIO(), width=_PIPE_WIDTH, no_color=True, force_terminal=False)
    with console.capture() as capture:
        _draw(report, console)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _draw(report: Report, console: Console) -> None:
    console.print(Text(_header(report)))
    for sizes in _TABLES:
        if sizes == SIZES or any(timing.size in sizes for timing in report.timings):
            console.print(_table(report, sizes))
    if report.measurements:
        console.print(_measurements_table(report))
    for unmeasured in report.unmeasured:
        console.print(Text(f"not measured: {unmeasured.subject}: {unmeasured.reason}\n", style="red"), soft_wrap=True)
    console.print(Text(report.targets_met))


def _header(report: Report) -> str:
    rounds = report.settings.rounds
    versions = (f"{name} {version}" for name, version in report.versions.items())
    modelled = ", ".join(f"{sql_instance.modelled_bytes(size) / 1000:.1f}" for size in sql_instance.SIZES)
    return (
        f"Python {platform.python_version()}, {', '.join(versions)}\n"
        f"CPU time to do the job once: the best of up to {rounds} rounds in which candidates take turns.\n"
        f"Sizes are those of the JSON body; {modelled} KB of it are modelled: structs and plans hold no more.\n"
        "× is the multiple of the first line of each block.\n"
    )


def _table(report: Report, sizes: tuple[str, ...]) -> Table:
    """The timings of these sizes, side by side."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", overflow="fold")
    for size in sizes:
        table.add_column(size, justify="right", no_wrap=True)
        table.add_column("×", justify="right", no_wrap=True)
    table.add_column("bar")
    timings = [timing for timing in report.timings if timing.size in sizes]
    for subject in dict.fromkeys(timing.subject for timing in timings):
        table.add_row(Text(subject, style="bold"))
        for cells in _rows([timing for timing in timings if timing.subject == subject], sizes, report):
            table.add_row(*cells)
        table.add_row()
    for result in report.target_results:
        if result.subject == COOKIE and sizes == SIZES:
            table.add_row(Text(COOKIE, style="bold"), *[""] * 2 * len(SIZES), _target_text(result))
            table.add_row()
    return table


def _measurements_table(report: Report) -> Table:
    """The measurements of scenarios."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", overflow="fold")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("×", justify="right", no_wrap=True)
    table.add_column("bar")
    for subject in dict.fromkeys(measurement.subject for measurement in report.measurements):
        table.add_row(Text(subject, style="bold"))
        for measurement in report.measurements:
            if measurement.subject == subject:
                table.add_row(*_amounts(measurement), *_target_cells(report, subject, measurement.name))
        table.add_row()
    return table


def _amounts(measurement: Measurement) -> tuple[Text, Text, Text]:
    ratio = "" if measurement.ratio is None else _multiple(measurement.ratio)
    return Text(f"  {measurement.name}"), Text(_amount(measurement)), Text(ratio, style="dim")


def _rows(timings: Sequence[Timing], sizes: tuple[str, ...], report: Report) -> Iterator[list[Text]]:
    """A line for each candidate, its sizes side by side."""
    for name in dict.fromkeys(timing.candidate for timing in timings):
        by_size = {timing.size: timing for timing in timings if timing.candidate == name}
        cells = [cell for size in sizes for cell in _cells(by_size.get(size))]
        yield [Text(f"  {name}"), *cells, *_target_cells(report, timings[0].subject, name)]


def _target_cells(report: Report, subject: str, name: str) -> list[Text]:
    """The target result of a line; at most one."""
    return [
        _target_text(result)
        for result in report.target_results
        if (result.subject, result.candidate) == (subject, name)
    ]


def _cells(timing: Timing | None) -> tuple[Text, Text]:
    if timing is None:
        return Text(), Text()
    return Text(_duration(timing.nanoseconds)), Text(_multiple(timing.ratio), style="dim")


def _duration(nanoseconds: float) -> str:
    milliseconds, microseconds = nanoseconds / 1e6, nanoseconds / 1e3
    return f"{milliseconds:,.1f} ms" if milliseconds >= 1 else f"{microseconds:.1f} µs"


def _amount(measurement: Measurement) -> str:
    match measurement.unit:
        case Unit.SECONDS:
            return _duration(measurement.value * 1e9)
        case Unit.BYTES:
            return (
                f"{measurement.value / 1e6:,.0f} MB" if measurement.value >= 1e6 else f"{measurement.value:,.0f} bytes"
            )
        case Unit.NUMBER:
            return f"{measurement.value:,.0f}"
        case Unit.PER_OBJECT | Unit.EXPONENT:
            return f"{measurement.value:,.2f}"


def _multiple(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


def _target_text(result: TargetResult) -> Text:
    return Text(str(result), style="green" if result.is_met else "red")
