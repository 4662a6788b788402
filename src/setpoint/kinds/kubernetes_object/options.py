"""Options of a KubernetesObject besides its manifest: wait, ignored fields, deletion; and the intent of an apply."""

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET, to_builtins

from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import annotation_value
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.durations import parse_duration
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.messages import FieldTerm, Message, SubjectTerm, below, message_of
from setpoint.core.values.paths import Path, Selector, get_at, remove_at, set_at
from setpoint.core.wait.judge import secrecy_of
from setpoint.core.wait.rollout import require_rollout
from setpoint.core.wait.wait_for import RolloutWait, WaitFor, parse_wait
from setpoint.engine.kind import Intent
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid, UnknownField
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.kubernetes_object.managed_fields import FieldSet, extract, field_manager_of, owned_below
from setpoint.kinds.kubernetes_object.manifest import manifest_of, spec_of
from setpoint.kinds.kubernetes_object.spec import IN_CLUSTER_ALONE, KubernetesObjectSpec, PropagationPolicy
from setpoint.kinds.kubernetes_object.takeover import Takeover

# Lifts the protection of a resource that is being deleted, whose spec cannot be applied any more.
DELETE_PROTECTION: Final = known_annotations.DELETE_PROTECTION
_DELETION_SECONDS: Final = 300.0
_IGNORE: Final = "spec.ignoreFields"
# The fields that identify the object.
_IDENTITY: Final = tuple(Path.parse(text) for text in ("apiVersion", "kind", "metadata.name", "metadata.namespace"))


@dataclass(frozen=True, slots=True)
class DeletionSettings:
    """How an object is deleted."""

    is_protected: bool
    propagation: PropagationPolicy
    seconds: float


def wait_of(resource: Resource) -> WaitFor | None:
    """The declared wait; ManifestInvalid for one that is malformed."""
    data = resource.spec.get("waitFor")
    if data is None:
        return None
    try:
        wait_for = parse_wait(data)
        if isinstance(wait_for.wait, RolloutWait):
            require_rollout(manifest_of(resource, spec_of(resource)).tree)
    except (ManifestInvalid, UnknownField) as error:
        raise ManifestInvalid(Message(SubjectTerm(str(resource.ref)), below("spec", message_of(error)))) from error
    return wait_for


def check_wait(resource: Resource) -> None:
    """ManifestInvalid for a wait that is malformed, or about a secret value of the object that is declared.

    The kind of the live object has the last word: a reference in the manifest may yield it.
    """
    wait_for = wait_of(resource)
    refusal = None if wait_for is None else secrecy_of(wait_for.wait, manifest_of(resource, spec_of(resource)).tree)
    if wait_for is not None and refusal is not None:
        raise field_invalid(resource, f"spec.waitFor.{wait_for.wait.member}", f": {refusal}; wait for something else")


def check_cluster(resource: Resource, spec: KubernetesObjectSpec) -> None:
    """ManifestInvalid for `inCluster` together with a context or a kubeconfig."""
    cluster = spec.cluster
    if cluster is None or cluster is UNSET:
        return
    if not IN_CLUSTER_ALONE.rule.holds(to_builtins(cluster)):
        advice = "write inCluster alone, or leave it out"
        problem = f" is the cluster around setpoint, which has no context and no kubeconfig: {advice}"
        raise field_invalid(resource, "spec.cluster.inCluster", problem)


def ignored_fields_of(resource: Resource, spec: KubernetesObjectSpec) -> tuple[Path, ...]:
    """The paths of `ignoreFields`; ManifestInvalid for one that is malformed."""
    texts = spec.ignoreFields
    if texts is None or texts is UNSET:
        return ()
    fields = (Message(SubjectTerm(str(resource.ref)), FieldTerm(f"{_IGNORE}[{index}]")) for index in range(len(texts)))
    return tuple(_ignored(text, where) for text, where in zip(texts, fields, strict=True))


def _ignored(text: str, where: Message) -> Path:
    try:
        path = Path.parse(text)
    except ManifestInvalid as error:
        raise ManifestInvalid(Message(where, ": ", message_of(error))) from error
    if not path or any(path.covers(one) for one in _IDENTITY):
        raise ManifestInvalid(Message(where, f" is {text!r}: a field that identifies the object cannot be ignored"))
    if any(isinstance(step, Selector) and not step.pairs for step in path.steps):
        raise ManifestInvalid(Message(where, f" is {text!r}: write a path such as spec.replicas"))
    return path


def deletion_settings_of(resource: Resource, spec: KubernetesObjectSpec) -> DeletionSettings:
    """The deletion settings; ManifestInvalid for a timeout that is no duration."""
    declared = spec.deletion
    propagation: PropagationPolicy = "Background"
    seconds = _DELETION_SECONDS
    if declared is not None and declared is not UNSET:
        if declared.propagation is not None and declared.propagation is not UNSET:
            propagation = declared.propagation
        if declared.timeout is not None and declared.timeout is not UNSET:
            seconds = _seconds(declared.timeout, resource)
    is_lifted = annotation_value(resource.annotations, DELETE_PROTECTION) == "false"
    return DeletionSettings(spec.deleteProtection is True and not is_lifted, propagation, seconds)


def _seconds(timeout: str | int, resource: Resource) -> float:
    try:
        return parse_duration(timeout)
    except ManifestInvalid as error:
        raise field_invalid(resource, "spec.deletion.timeout", f": {error}") from error


@dataclass(frozen=True, slots=True)
class ApplyIntent:
    """What an apply needs: the object, its field manager, ignored fields, and whether it may force or replace."""

    tree: dict[str, Json]
    takeover: Takeover
    ignored_fields: tuple[Path, ...]
    deletion: DeletionSettings
    force_conflicts: bool
    may_replace: bool

    @property
    def manager(self) -> str:
        """The field manager."""
        return self.takeover.manager


def apply_intent_of(intent: Intent) -> ApplyIntent:
    """The apply of `intent`; fields that are unmanaged for the moment are ignored, too."""
    resource = intent.resource
    spec, declared = spec_of(resource), intent.declared
    written = declared.tree["spec"]
    assert isinstance(written, dict)
    tree = written["manifest"]
    assert isinstance(tree, dict)
    ignored_fields = (*ignored_fields_of(resource, spec), *declared.policy.unmanaged)
    flags = spec.forceConflicts is True, spec.replace is True
    takeover = Takeover(field_manager_of(resource.ref), spec.takeOverFrom or ())
    return ApplyIntent(tree, takeover, ignored_fields, deletion_settings_of(resource, spec), *flags)


# --- Ignored fields --------------------------------------------------------------------------------------------------


def with_ignored_fields(wanted: Json, live: Json, owned: FieldSet, paths: Iterable[Path]) -> Json:
    """`wanted` with the live value of each of `paths`.

    Owned fields are sent with their live value: an apply deletes owned fields that it leaves out. Others are left out.
    """
    for path in paths:
        wanted = _with_ignored_field(wanted, live, owned, path)
    return wanted


def _with_ignored_field(wanted: Json, live: Json, owned: FieldSet, path: Path) -> Json:
    value, owned_here = get_at(live, path), owned_below(owned, live, path)
    if owned_here is None or isinstance(value, Missing):
        return _without_field(wanted, path)
    if any(not isinstance(step, str) for step in path.steps) and isinstance(get_at(wanted, path.parent), Missing):
        # The list element that contains it is removed.
        return wanted
    return set_at(wanted, path, extract(value, owned_here))


def _without_field(wanted: Json, path: Path) -> Json:
    """`wanted` without the field, and without the objects that held nothing else: an empty one would be declared."""
    if isinstance(get_at(wanted, path), Missing):
        return wanted
    wanted = remove_at(wanted, path)
    while (path := path.parent) and isinstance(path.steps[-1], str) and get_at(wanted, path) == {}:
        wanted = remove_at(wanted, path)
    return wanted
