"""Diagnostics: the errors and warnings that Terraform shows, and those of a call that raised an exception."""

import re
import traceback
from enum import IntEnum
from typing import Final

import msgspec

from setpoint.core.values.messages import Vocabulary, worded
from setpoint.errors import SetpointError
from setpoint.terraform.cty.values import AttributePath

_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Severity(IntEnum):
    """The severity of a diagnostic; numbers of the protocol."""

    ERROR = 1
    WARNING = 2


class Diagnostic(msgspec.Struct, frozen=True):
    """An error or a warning. Without a path it is about the whole resource."""

    severity: Severity
    summary: str
    detail: str = ""
    path: AttributePath = ()


class DiagnosticsError(Exception):
    """A call that failed, with its diagnostics."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(one.summary for one in diagnostics))
        self.diagnostics = diagnostics


class Interrupted(Exception):
    """A call that ended early, because Terraform was stopped."""


def error(summary: str, detail: str = "", path: AttributePath = ()) -> Diagnostic:
    """A diagnostic that fails the call."""
    return Diagnostic(Severity.ERROR, summary, detail, path)


def warning(summary: str, detail: str = "", path: AttributePath = ()) -> Diagnostic:
    """A diagnostic that does not fail the call."""
    return Diagnostic(Severity.WARNING, summary, detail, path)


def diagnostics_for(fault: Exception, vocabulary: Vocabulary = str) -> tuple[Diagnostic, ...]:
    """The diagnostics of a call that raised `fault`.

    The message of a SetpointError is shown, in the words of `vocabulary`. The message of any other exception is not: it
    may hold a secret.
    """
    match fault:
        case DiagnosticsError():
            return fault.diagnostics
        case Interrupted():
            return (
                error(
                    "Interrupted", "Terraform was asked to stop before this was done. The next plan shows what is left."
                ),
            )
        case SetpointError():
            return (error(_WORD_BOUNDARY.sub(" ", type(fault).__name__).capitalize(), worded(fault, vocabulary)),)
        case _:
            return (
                error(
                    "A mistake of the provider",
                    f"{type(fault).__name__} in {traceback_frames(fault)[-1]}. This is a bug: please report it "
                    "with the log that TF_LOG_PROVIDER=debug gives. Nothing of the configuration is in this message.",
                ),
            )


def traceback_frames(fault: BaseException) -> list[str]:
    """The traceback of `fault`, outermost frame first: file, line and function, without any values."""
    frames = traceback.extract_tb(fault.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames] or ["an unknown place"]
