"""What the engine says, in the words of a Terraform configuration."""

import re
from typing import Final

from setpoint.errors import SetpointError
from setpoint.terraform.attribute_path import Path
from setpoint.terraform.diagnostics import Diagnostic, diagnosed, error

_WORDS: Final = (
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
_KEEPER: Final = re.compile(r"KubernetesObject \S+/tf-[0-9a-f]+: ")


def in_terraform(text: str) -> str:
    """The same, in these words."""
    for ours, theirs in _WORDS:
        text = text.replace(ours, theirs)
    return _KEEPER.sub("", text)


def told(fault: SetpointError, path: Path = ()) -> Diagnostic:
    """What to tell of an error of the engine's."""
    (said,) = diagnosed(fault)
    return error(said.summary, in_terraform(said.detail), path)
