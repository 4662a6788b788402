"""The mistakes of an author, collected, so that one error tells all of them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, ParamSpec, TypeVar

from setpoint.core.values.messages import Message, field_named_by, message_of
from setpoint.errors import ManifestInvalid, UserError

# So many mistakes are told at once: an input may have as many as it has bytes.
MAX_PROBLEMS: Final = 50
P = ParamSpec("P")
T = TypeVar("T")


class Problems:
    """Collects the errors of checks. Of several about one field the first counts: the others often follow from it."""

    def __init__(self) -> None:
        self.found: list[UserError] = []
        self._about = set[object]()

    def collect(self, check: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
        """The result of `check`; None when it raises a UserError, which is kept."""
        try:
            return check(*args, **options)
        except UserError as error:
            self.add(problems_of(error))
            return None

    def add(self, problems: Iterable[UserError]) -> None:
        """Keeps these problems, as many as are told, but for those about a field that has one already."""
        for problem in islice(problems, MAX_PROBLEMS - len(self.found)):
            about = field_named_by(problem) or str(problem)
            if about not in self._about:
                self._about.add(about)
                self.found.append(problem)

    def require_none(self) -> None:
        """Raises the one problem that was found, or all of them as one ManifestInvalid."""
        if self.found:
            raise joined_problems(self.found)


def problems_of(error: UserError) -> Sequence[UserError]:
    """The error of each mistake that `error` tells: itself, when that is one."""
    problems = error.problems if isinstance(error, ManifestInvalid) else ()
    return problems or (error,)


def joined_problems(problems: Iterable[UserError]) -> UserError:
    """The one problem, or an error with a line for each of them, as many as are told. There has to be one."""
    first, *others = islice(problems, MAX_PROBLEMS)
    if not others:
        return first
    parts = [part for one in others for part in ("\n", message_of(one))]
    return ManifestInvalid(Message(message_of(first), *parts), problems=(first, *others))
