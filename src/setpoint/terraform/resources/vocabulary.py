"""The vocabulary of this front end: the attributes of a configuration, for the fields of a KubernetesObject."""

import re
from typing import Final, assert_never

from setpoint.core.values.messages import (
    AnnotationTerm,
    FieldTerm,
    ManifestAdvice,
    MemberTerm,
    MessageTerm,
    SettingTerm,
    SubjectTerm,
)
from setpoint.core.wait.wait_for import WAIT_CRITERIA
from setpoint.errors import SetpointError
from setpoint.terraform.cty.values import AttributePath
from setpoint.terraform.framework.diagnostics import Diagnostic, diagnostics_for, error

_FIRST_WORD: Final = re.compile(r"\w+")
_WORD_BOUNDARY: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def attribute_name(member: str) -> str:
    """The attribute for a member of a spec: `field_value` for `fieldValue`."""
    return _WORD_BOUNDARY.sub("_", member).lower()


# The fields of a spec that come from an attribute; the fields below them keep their names.
_ATTRIBUTES: Final = {
    **{f"spec.waitFor.{one.member}": f"wait_for.{attribute_name(one.member)}" for one in WAIT_CRITERIA},
    "spec.waitFor": "wait_for",
    "spec.ignoreFields": "ignore_fields",
    "spec.deleteProtection": "delete_protection",
    "spec.deletion.timeout": "delete_timeout",
    "spec.forceConflicts": "force_conflicts",
    "spec.takeOverFrom": "take_over_from",
    "spec.manifest": "the manifest",
}


def attribute_words(term: MessageTerm) -> str:
    """A term of a message in the words of a configuration."""
    match term:
        case FieldTerm(path):
            return _attribute(path)
        case MemberTerm(holder, name):
            return _attribute(f"{holder}.{name}").removeprefix(f"{_attribute(holder)}.")
        case SettingTerm(path, value):
            return f"{_attribute(path)} = {value}"
        case SubjectTerm() | ManifestAdvice():
            # A user knows the object by its Terraform address, and has no manifest of a KubernetesObject.
            return ""
        case AnnotationTerm():
            return str(term)
        case _:
            assert_never(term)


def _attribute(path: str) -> str:
    # A wait that is parsed outside of a spec is named without it.
    whole = path if path.startswith("spec.") else f"spec.{path}"
    for field, attribute in _ATTRIBUTES.items():
        rest = whole.removeprefix(field)
        if rest != whole and rest[:1] in ("", ".", "["):
            return f"{attribute}{rest}"
    return path


def engine_diagnostic(fault: SetpointError, path: AttributePath = ()) -> Diagnostic:
    """The diagnostic of an error of the engine: at the attribute that it begins with, else at `path`."""
    (diagnostic,) = diagnostics_for(fault, attribute_words)
    named = _FIRST_WORD.match(diagnostic.detail)
    at = (named[0],) if path and named is not None and named[0] in _ATTRIBUTES.values() else path
    return error(diagnostic.summary, diagnostic.detail, at)
