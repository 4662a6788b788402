"""What Terraform shows to people: errors and warnings, each at the attribute that it is about."""

import re
import traceback
from enum import IntEnum
from typing import Final

import msgspec

from setpoint.errors import SetpointError
from setpoint.terraform.attribute_path import Path

_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Severity(IntEnum):
    """Whether Terraform goes on; numbers as on the wire."""

    ERROR = 1
    WARNING = 2


class Diagnostic(msgspec.Struct, frozen=True):
    """One thing to tell. Without a path it is about the whole resource."""

    severity: Severity
    summary: str
    detail: str = ""
    path: Path = ()


class Refused(Exception):
    """A call that comes to nothing, with all the reasons."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(one.summary for one in diagnostics))
        self.diagnostics = diagnostics


class Interrupted(Exception):
    """A call that ends early, because Terraform was asked to stop."""


def error(summary: str, detail: str = "", path: Path = ()) -> Diagnostic:
    """A reason why something cannot be."""
    return Diagnostic(Severity.ERROR, summary, detail, path)


def warning(summary: str, detail: str = "", path: Path = ()) -> Diagnostic:
    """Something to know, which stops nothing."""
    return Diagnostic(Severity.WARNING, summary, detail, path)


def diagnosed(fault: Exception) -> tuple[Diagnostic, ...]:
    """What to tell of a call that ended with `fault`.

    Our own errors have their message. Of any other nobody knows what its message holds: it may be a secret.
    """
    match fault:
        case Refused():
            return fault.diagnostics
        case Interrupted():
            return (
                error(
                    "Interrupted", "Terraform was asked to stop before this was done. The next plan shows what is left."
                ),
            )
        case SetpointError():
            return (error(_WORD.sub(" ", type(fault).__name__).capitalize(), str(fault)),)
        case _:
            return (
                error(
                    "A mistake of the provider",
                    f"{type(fault).__name__} in {frames_of(fault)[-1]}. This is a bug: please report it with the log "
                    "that TF_LOG_PROVIDER=debug gives. Nothing of the configuration is in this message.",
                ),
            )


def frames_of(fault: BaseException) -> list[str]:
    """Where a fault came from, outermost first: files, lines and functions, and none of the values there."""
    frames = traceback.extract_tb(fault.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames] or ["an unknown place"]
