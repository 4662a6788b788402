"""Config Connector's conventions: project, resource ID, labels, references, names that are already taken."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from msgspec import UNSET, Struct, UnsetType

from setpoint.core.overlay import Declared
from setpoint.core.schema.policy import Rule
from setpoint.core.schema.shape import Check
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import Absent, CrdDetails, LiveObservation, Reference, ResolvedReferences
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotReady, ManifestInvalid, RemoteConflict, RemoteRefused

PROJECT_ANNOTATION: Final = "cnrm.cloud.google.com/project-id"
MANAGED_LABEL: Final = "managed-by-cnrm"
# For the checks of a spec with a resourceID.
RESOURCE_ID_CHECK: Final = Check(
    "!has(self.resourceID) || self.resourceID != ''", "write the name in the service, or leave it out", "resourceID"
)
# For the checks of a secret that is written out, or kept in a Secret.
SECRET_CHECK: Final = Check("has(self.value) != has(self.valueFrom)", "write value or valueFrom, and not both")
_ONE_OF_TWO: Final = "(has(self.name) && self.name != '') != (has(self.external) && self.external != '')"
# A name in a service may be written short or in full; and what was external may have become a resource.
_SAME_REFERENCE: Final = """
    (!has(self.name) || !has(oldSelf.name) || self.name == oldSelf.name)
    && (!has(self.external) || !has(oldSelf.external)
      || self.external.find('[^/:]*$') == oldSelf.external.find('[^/:]*$'))
"""
_LABELS: Final = Path(("metadata", "labels"))


class SpecReference(Struct, forbid_unknown_fields=True, frozen=True):
    """A reference as authors write it: another resource by name, or anything by its name in the service."""

    external: str | None | UnsetType = UNSET
    """What it is called in its service, for what is not a resource here."""
    name: str | None | UnsetType = UNSET
    """The name of the resource."""
    namespace: str | None | UnsetType = UNSET
    """The namespace of the resource; the same as here when left out."""

    __unit__: ClassVar = True
    __checks__: ClassVar = (Check(_ONE_OF_TWO, "write name or external, and not both"),)
    __unchanged__: ClassVar = _SAME_REFERENCE


def definition_for(kind: str, outputs: type[Struct], description: str) -> CrdDetails:
    """A kind in a cluster under the names that Config Connector gives it."""
    name = f"gcp{kind.lower()}"
    return CrdDetails(description, outputs, (name, f"{name}s"), ("gcp",))


@dataclass(frozen=True, slots=True)
class ReferenceTarget:
    """The kind of resource that a reference names."""

    group: str
    kind: str


def project_of(resource: Resource) -> str:
    """The project that the resource belongs to: its annotation says so, or else its namespace."""
    return resource.annotations.get(PROJECT_ANNOTATION) or resource.ref.namespace


def resource_id(resource: Resource) -> str:
    """The object's own name in its service."""
    found = resource.spec.get("resourceID")
    if found is not None and not (isinstance(found, str) and found):
        raise ManifestInvalid(f"{resource.ref}: spec.resourceID is not a name: write text, or leave it out")
    return found or resource.ref.name


def google_labels(resource: Resource) -> Mapping[str, str]:
    """The labels to send: those of Kubernetes' own tools, with one slash in the key, are none of Google's business."""
    own = {key: value for key, value in resource.labels.items() if key.count("/") != 1}
    return {**own, MANAGED_LABEL: "true"}


def without_managed_label(declared: Declared, live: JsonObject) -> Declared:
    """Where what nobody said is left alone, so is an object without the label that says who looks after it."""
    labels, theirs = get_at(declared.tree, _LABELS), get_at(live, _LABELS)
    if declared.policy.unspecified is not Rule.IGNORED or not isinstance(labels, Mapping):
        return declared
    if isinstance(theirs, Mapping) and MANAGED_LABEL in theirs:
        return declared
    said = {key: value for key, value in labels.items() if key != MANAGED_LABEL}
    return replace(declared, tree={**declared.tree, "metadata": {"labels": said}})


def reference_at(at: str, ref: SpecReference, resource: Resource, target: ReferenceTarget) -> Reference | None:
    """What has to be read for the reference in the field `at`; None when it names an object of the service."""
    if bool(ref.external) == bool(ref.name):
        raise ManifestInvalid(f"{resource.ref}: {at} needs name or external, and not both: write one of them")
    if not ref.name:
        return None
    return Reference(at, ResourceRef(target.group, target.kind, ref.namespace or resource.ref.namespace, ref.name))


def self_link(at: str, ref: SpecReference, resolved: ResolvedReferences) -> str:
    """What the reference in the field `at` comes to: the object's name in its service."""
    if ref.external:
        return ref.external
    found = get_at(resolved.resources[at].document, Path(("status", "selfLink")))
    if not isinstance(found, str):
        raise DependencyNotReady(f"reference {resolved.resources[at].ref} is not ready: it has no status.selfLink")
    return found


def relative_link(link: str) -> str:
    """A link without its host and version: `projects/p/…`; whatever has no projects in it is left as it is."""
    _, found, rest = link.partition("/projects/")
    return f"projects/{rest}" if found else link


async def name_taken_error(
    conflict: RemoteConflict, look: Awaitable[LiveObservation]
) -> RemoteConflict | RemoteRefused:
    """The conflict itself when the object can be seen by now; a refusal when there is nothing that could be adopted."""
    if isinstance(await look, Absent):
        return RemoteRefused(
            f"{conflict}. Nothing can be seen under that name: it was deleted a short time ago, or belongs to somebody "
            "else. Wait, or choose another spec.resourceID"
        )
    return conflict
