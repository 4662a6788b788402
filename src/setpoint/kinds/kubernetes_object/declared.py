"""What a KubernetesObject declares besides its manifest: waits, what is left alone, how it is deleted."""

from dataclasses import dataclass
from typing import Final

from msgspec import UNSET

from setpoint.core.durations import seconds_of
from setpoint.core.hiding import is_secret
from setpoint.core.paths import Path, Selector
from setpoint.core.policy import DEFAULT_TO_GCP, IGNORE_UNSPECIFIED, UNMANAGED
from setpoint.core.rollout import require_rollout
from setpoint.core.wait_for import FieldWait, RolloutWait, WaitFor, parse_wait
from setpoint.engine.resource import Resource
from setpoint.errors import ManifestInvalid
from setpoint.kinds.kubernetes_object.manifest import manifest_of, spec_of
from setpoint.kinds.kubernetes_object.spec import KubernetesObjectSpec, Propagation

# Lifts the protection of a resource whose deletion was asked for: then its spec is past.
DELETE_PROTECTION: Final = "setpoint.dev/delete-protection"
_DELETION_SECONDS: Final = 300.0
# What makes the object this one, and no other.
_IDENTITY: Final = tuple(Path.parse(text) for text in ("apiVersion", "kind", "metadata.name", "metadata.namespace"))


@dataclass(frozen=True, slots=True)
class Removal:
    """How an object is deleted."""

    is_protected: bool
    propagation: Propagation
    seconds: float


def wait_of(resource: Resource) -> WaitFor | None:
    """What is waited for; ManifestInvalid for a wait that means nothing, or would show what nobody may see."""
    data = resource.spec.get("waitFor")
    if data is None:
        return None
    try:
        wait_for = parse_wait(data)
        tree = manifest_of(resource, spec_of(resource)).tree
        if isinstance(wait_for.wait, RolloutWait):
            require_rollout(tree)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{resource.ref}: spec.{error}") from error
    if isinstance(wait_for.wait, FieldWait) and is_secret(tree):
        _refuse_to_show(wait_for.wait.path, resource)
    return wait_for


def _refuse_to_show(path: Path, resource: Resource) -> None:
    if path.steps[:1] != ("metadata",) and path.steps[:1] != ("type",):
        raise ManifestInvalid(
            f"{resource.ref}: spec.waitFor.field is {path}: the values of a Secret do not become outputs, for "
            "anybody to read; wait for something else"
        )


def ignored_by(resource: Resource, spec: KubernetesObjectSpec) -> tuple[Path, ...]:
    """The paths of `ignoreFields`; ManifestInvalid for one that means nothing."""
    texts = spec.ignoreFields
    if texts is None or texts is UNSET:
        return ()
    return tuple(_ignored(text, f"{resource.ref}: spec.ignoreFields[{index}]") for index, text in enumerate(texts))


def _ignored(text: str, where: str) -> Path:
    try:
        path = Path.parse(text)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{where}: {error}") from error
    if not path or any(path.covers(one) for one in _IDENTITY):
        raise ManifestInvalid(f"{where} is {text!r}: what makes the object this one cannot be left to others")
    if any(isinstance(step, Selector) and not step.pairs for step in path.steps):
        raise ManifestInvalid(f"{where} is {text!r}: write a path such as spec.replicas")
    return path


def removal_of(resource: Resource, spec: KubernetesObjectSpec) -> Removal:
    """How the object is deleted; ManifestInvalid for a timeout that is no duration."""
    said = spec.deletion
    propagation: Propagation = "Background"
    seconds = _DELETION_SECONDS
    if said is not None and said is not UNSET:
        if said.propagation is not None and said.propagation is not UNSET:
            propagation = said.propagation
        if said.timeout is not None and said.timeout is not UNSET:
            seconds = _seconds(said.timeout, resource)
    is_lifted = resource.annotations.get(DELETE_PROTECTION) == "false"
    return Removal(spec.deleteProtection is True and not is_lifted, propagation, seconds)


def _seconds(timeout: str | int, resource: Resource) -> float:
    try:
        return seconds_of(timeout)
    except ManifestInvalid as error:
        raise ManifestInvalid(f"{resource.ref}: spec.deletion.timeout: {error}") from error


def refuse_policies(resource: Resource) -> None:
    """ManifestInvalid for annotations by which other kinds leave fields to others."""
    for annotation in (UNMANAGED, DEFAULT_TO_GCP, IGNORE_UNSPECIFIED):
        if annotation in resource.annotations:
            raise ManifestInvalid(
                f"{resource.ref}: {annotation} is not for objects of a cluster, where what a manifest leaves out is "
                "left alone anyway: list what is to be left to others in spec.ignoreFields"
            )
