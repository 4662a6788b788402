"""All that a write goes by."""

from dataclasses import dataclass

from setpoint.core.paths import Path
from setpoint.core.values import Json
from setpoint.engine.kind import Intent
from setpoint.kinds.kubernetes_object.declared import Removal, ignored_by, removal_of
from setpoint.kinds.kubernetes_object.manifest import spec_of
from setpoint.kinds.kubernetes_object.ownership import manager_of


@dataclass(frozen=True, slots=True)
class Asked:
    """An object, who asks for it, what is left to others, and how far one may go."""

    tree: dict[str, Json]
    manager: str
    left_alone: tuple[Path, ...]
    removal: Removal
    forces: bool
    may_replace: bool


def asked_by(intent: Intent) -> Asked:
    """What `intent` asks for; what it is not to follow for a while is left alone, too."""
    resource = intent.resource
    spec, declared = spec_of(resource), intent.declared
    written = declared.tree["spec"]
    assert isinstance(written, dict)
    tree = written["manifest"]
    assert isinstance(tree, dict)
    left_alone = (*ignored_by(resource, spec), *declared.policy.unmanaged)
    flags = spec.forceConflicts is True, spec.replace is True
    return Asked(tree, manager_of(resource.ref), left_alone, removal_of(resource, spec), *flags)
