"""Line charts as SVG, readable on light and on dark pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 210, 44, 56
_COLOURS: Final = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#9a6700")
_DARK_COLOURS: Final = ("#58a6ff", "#f0883e", "#3fb950", "#bc8cff", "#f778ba", "#d29922")
_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))
_TICKS: Final = 5
_MARKED: Final = 12


@dataclass(frozen=True, slots=True)
class Line:
    """Points to join. Lines of the same `colour` belong together; a dashed one is to compare with."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """What is shown along an axis; `is_log` if equal distances are equal ratios, else it starts at zero."""

    label: str
    is_log: bool = False

    def ticks(self, values: Sequence[float]) -> list[float]:
        """Round values around all of these, ascending."""
        if self.is_log:
            low, high = floor(log10(min(values))), ceil(log10(max(values)))
            return [10.0**power for power in range(low, max(high, low + 1) + 1)]
        step = _round_up(max(*values, 1e-9) / _TICKS)
        return [step * number for number in range(ceil(max(values) / step - 1e-9) + 1)] or [0.0, step]

    def position(self, value: float, ticks: Sequence[float]) -> float:
        """Where a value is between the first tick, 0.0, and the last one, 1.0."""
        if self.is_log:
            return (log10(value) - log10(ticks[0])) / (log10(ticks[-1]) - log10(ticks[0]))
        return (value - ticks[0]) / (ticks[-1] - ticks[0])


def line_chart(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """The chart as an SVG document. On a logarithmic axis, points without a logarithm are left out."""
    drawn = [(line, [point for point in line.points if _is_drawable(point, x, y)]) for line in lines]
    every = [point for _, points in drawn for point in points]
    frame = _Frame(x, y, x.ticks([at for at, _ in every]), y.ticks([value for _, value in every]))
    curves = (text for place, (line, points) in enumerate(drawn) for text in _curve(line, place, points, frame))
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(title)}</title>",
            _style(),
            f'<text class="title" x="{_LEFT}" y="22">{escape(title)}</text>',
            *_grid(frame),
            *curves,
            "</svg>",
            "",
        ]
    )


def _is_drawable(point: tuple[float, float], x: Axis, y: Axis) -> bool:
    return not ((x.is_log and point[0] <= 0) or (y.is_log and point[1] <= 0))


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes with their ticks, and where points are on the page."""

    x: Axis
    y: Axis
    across: Sequence[float]
    up: Sequence[float]

    def left(self, value: float) -> float:
        return _LEFT + self.x.position(value, self.across) * (_WIDTH - _LEFT - _RIGHT)

    def top(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - self.y.position(value, self.up) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(frame: _Frame) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for tick in frame.up:
        at = frame.top(tick)
        yield f'<path class="grid" d="M{_LEFT} {at:.1f}H{right}"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_short(tick)}</text>'
    for tick in frame.across:
        at = frame.left(tick)
        yield f'<path class="grid" d="M{at:.1f} {_TOP}V{bottom}"/>'
        yield f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{_short(tick)}</text>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle:.0f}" y="{_HEIGHT - 14}" text-anchor="middle">{escape(frame.x.label)}</text>'
    centre = (_TOP + bottom) / 2
    yield (
        f'<text transform="translate(20 {centre:.0f}) rotate(-90)" text-anchor="middle">{escape(frame.y.label)}</text>'
    )


def _curve(line: Line, place: int, points: Sequence[tuple[float, float]], frame: _Frame) -> Iterator[str]:
    """The line, its points if they are few, and its row of the legend."""
    kind = f"c{line.colour % len(_COLOURS)}{' dashed' if line.is_dashed else ''}"
    spots = [(frame.left(at), frame.top(value)) for at, value in points]
    if spots:
        yield f'<path class="line {kind}" d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in spots)}"/>'
    if len(spots) <= _MARKED and not line.is_dashed:
        for x, y in spots:
            yield f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    left, top = _WIDTH - _RIGHT + 16, _TOP + 10 + 20 * place
    yield f'<path class="line {kind}" d="M{left} {top}h22"/>'
    yield f'<text x="{left + 30}" y="{top + 4}">{escape(line.name)}</text>'


def _short(value: float) -> str:
    """At most a few characters, with a prefix of SI."""
    if value == 0:
        return "0"
    factor, prefix = next((one for one in _PREFIXES if value >= one[0] * 0.9999), _PREFIXES[-1])
    return f"{value / factor:.3g}{prefix}"


def _round_up(value: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.9999)


def _style() -> str:
    def colours(values: Sequence[str]) -> str:
        return "".join(f".c{number}{{stroke:{one};fill:{one}}}" for number, one in enumerate(values))

    return (
        "<style>text{font:12px sans-serif;fill:#424a53}.title{font-size:14px;font-weight:600}"
        ".grid{stroke:#8c959f;stroke-opacity:.35;fill:none}.line{fill:none!important;stroke-width:2}"
        f".dashed{{stroke-dasharray:5 4}}{colours(_COLOURS)}"
        f"@media(prefers-color-scheme:dark){{text{{fill:#c9d1d9}}{colours(_DARK_COLOURS)}}}</style>"
    )
