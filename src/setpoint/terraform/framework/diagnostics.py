"""Diagnostics: the errors and warnings that Terraform shows; errors of the engine in the terms of a configuration."""

import re
import traceback
from enum import IntEnum
from typing import Final

import msgspec

from setpoint.errors import SetpointError
from setpoint.terraform.cty.values import AttributePath

_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Severity(IntEnum):
    """Whether Terraform goes on; numbers as on the wire."""

    ERROR = 1
    WARNING = 2


class Diagnostic(msgspec.Struct, frozen=True):
    """One thing to tell. Without a path it is about the whole resource."""

    severity: Severity
    summary: str
    detail: str = ""
    path: AttributePath = ()


class DiagnosticsError(Exception):
    """A call that comes to nothing, with all the reasons."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(one.summary for one in diagnostics))
        self.diagnostics = diagnostics


class Interrupted(Exception):
    """A call that ends early, because Terraform was asked to stop."""


def error(summary: str, detail: str = "", path: AttributePath = ()) -> Diagnostic:
    """A reason why something cannot be."""
    return Diagnostic(Severity.ERROR, summary, detail, path)


def warning(summary: str, detail: str = "", path: AttributePath = ()) -> Diagnostic:
    """Something to know, which stops nothing."""
    return Diagnostic(Severity.WARNING, summary, detail, path)


def diagnostics_for(fault: Exception) -> tuple[Diagnostic, ...]:
    """What to tell of a call that ended with `fault`.

    Our own errors have their message. Of any other nobody knows what its message holds: it may be a secret.
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
            return (error(_WORD_BOUNDARY.sub(" ", type(fault).__name__).capitalize(), str(fault)),)
        case _:
            return (
                error(
                    "A mistake of the provider",
                    f"{type(fault).__name__} in {traceback_frames(fault)[-1]}. This is a bug: please report it "
                    "with the log "
                    "that TF_LOG_PROVIDER=debug gives. Nothing of the configuration is in this message.",
                ),
            )


def traceback_frames(fault: BaseException) -> list[str]:
    """Where a fault came from, outermost first: files, lines and functions, and none of the values there."""
    frames = traceback.extract_tb(fault.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames] or ["an unknown place"]


_TERMS: Final = (
    ("Set spec.forceConflicts: true", "Set force_conflicts = true"),
    ("take it over with spec.forceConflicts: true", "take it over with force_conflicts = true"),
    (", with cnrm.cloud.google.com/deletion-policy: abandon if the object is to stay", ""),
    (", or set spec.replace: true to have it deleted and made anew", ""),
    ("spec.ignoreFields", "ignore_fields"),
    ("spec.deleteProtection: false", "delete_protection = false"),
    ("spec.deleteProtection", "delete_protection"),
    ("spec.deletion.timeout", "delete_timeout"),
    ("spec.waitFor", "wait_for"),
    ("waitFor", "wait_for"),
    ("fieldValue", "field_value"),
    ("spec.manifest", "the manifest"),
)
# Who keeps an object is of no interest to somebody who has a Terraform address for it.
_RESOURCE_PREFIX: Final = re.compile(r"KubernetesObject \S+/tf-[0-9a-f]+: ")


def in_terraform_terms(text: str) -> str:
    """The same, in these words."""
    for ours, theirs in _TERMS:
        text = text.replace(ours, theirs)
    return _RESOURCE_PREFIX.sub("", text)


def engine_diagnostic(fault: SetpointError, path: AttributePath = ()) -> Diagnostic:
    """What to tell of an error of the engine's."""
    (said,) = diagnostics_for(fault)
    return error(said.summary, in_terraform_terms(said.detail), path)
