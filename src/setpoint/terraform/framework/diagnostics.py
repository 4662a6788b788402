"""Diagnostics: the errors and warnings that Terraform shows; errors of the engine in the terms of a configuration."""

import re
import traceback
from enum import IntEnum
from typing import Final

import msgspec

from setpoint.core.wait.wait_for import WAIT_CRITERIA
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


def diagnostics_for(fault: Exception) -> tuple[Diagnostic, ...]:
    """The diagnostics of a call that raised `fault`.

    The message of a SetpointError is shown. The message of any other exception is not: it may hold a secret.
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
                    "with the log that TF_LOG_PROVIDER=debug gives. Nothing of the configuration is in this message.",
                ),
            )


def traceback_frames(fault: BaseException) -> list[str]:
    """The traceback of `fault`, outermost frame first: file, line and function, without any values."""
    frames = traceback.extract_tb(fault.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames] or ["an unknown place"]


def attribute_name(member: str) -> str:
    """The attribute for a member of a spec: `field_value` for `fieldValue`."""
    return _WORD_BOUNDARY.sub("_", member).lower()


# Members of a KubernetesObject's spec in messages of the engine, and the attributes that they come from.
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
    *((one.member, attribute_name(one.member)) for one in WAIT_CRITERIA),
    ("spec.manifest", "the manifest"),
)
# The name of the KubernetesObject means nothing to a user, who knows the object by its Terraform address.
_RESOURCE_PREFIX: Final = re.compile(r"KubernetesObject \S+/tf-[0-9a-f]+: ")


def in_terraform_terms(text: str) -> str:
    """A message of the engine, with the attributes of a configuration in place of the members of a spec."""
    for engine_term, terraform_term in _TERMS:
        text = text.replace(engine_term, terraform_term)
    return _RESOURCE_PREFIX.sub("", text)


def engine_diagnostic(fault: SetpointError, path: AttributePath = ()) -> Diagnostic:
    """The diagnostic of an error of the engine."""
    (diagnostic,) = diagnostics_for(fault)
    return error(diagnostic.summary, in_terraform_terms(diagnostic.detail), path)
