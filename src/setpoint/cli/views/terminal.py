"""The edge of every output: consoles that print no character which a terminal interprets, whatever text comes in."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from setpoint.core.values.messages import printable


class SafeConsole(Console):
    """A console whose colours and cursor movements are its own: those in a text are printed as escapes.

    Texts come from manifests, services, stores, file names and errors: each of them may have another author than the
    person at the terminal. A file or a pipe gets the same, since it may be shown on a terminal later.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # those of Console
        # No markup, either: `[link=…]` in a text is text.
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See Console. Everything that is printed comes through here."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)

    def write(self, text: str) -> None:
        """Writes a long text as it is, apart from what is not printable: without wrapping and styles, and faster."""
        self.file.write(printable(text))


def error_console() -> SafeConsole:
    """The console of standard error."""
    return SafeConsole(stderr=True)
