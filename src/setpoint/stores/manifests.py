"""Manifests: what an author may write, and which part of it a store keeps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from setpoint.core.canonical import canonical
from setpoint.core.kubernetes import title
from setpoint.core.paths import Path, nearest
from setpoint.engine.resource import ResourceRef, Tree
from setpoint.errors import ManifestInvalid, NotReady
from setpoint.stores.names import API_VERSION, KEY, KIND, LABEL_VALUE, NAME, NAMESPACE, NameRule
from setpoint.stores.records import decode
from setpoint.stores.secret_data import fold_secret, is_secret
from setpoint.stores.wording import sort_of

DEFAULT_NAMESPACE: Final = "default"

# Metadata that says something when its author writes it.
_AUTHORED: Final = ("name", "namespace", "labels", "annotations", "ownerReferences")
# Metadata that only a store writes. It is skipped, so that what `get` printed can be applied again.
_STORE_WRITES: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("finalizers", "managedFields", "selfLink", "generateName"),
)
# kubectl's copy of the whole manifest: for a Secret, its values in the clear.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class Authored:
    """The author's part of a manifest. `metadata` holds labels, annotations and ownerReferences that say something."""

    ref: ResourceRef
    metadata: Mapping[str, Any]
    body: bytes
    secret: bytes


def read_manifest(manifest: Tree) -> Authored:
    """The author's part of `manifest`; ManifestInvalid names the member, what is wrong and what to write."""
    if not isinstance(manifest, Mapping):
        raise ManifestInvalid(f"a manifest is {sort_of(manifest)}: write an object with apiVersion, kind and metadata")
    tree = decode(canonical(manifest))
    which = title(tree)
    try:
        return _read(tree)
    except _Problem as problem:
        raise ManifestInvalid(f"{which}: {problem}") from None


def being_deleted(ref: ResourceRef) -> NotReady:
    """Why a manifest cannot be taken now."""
    return NotReady(f"{ref} is being deleted: wait until it is gone, then apply it again")


def kept_at(ref: ResourceRef) -> ResourceRef:
    """Where a store that knows nothing of scopes keeps it: what is in no namespace is in the default one."""
    return ref if ref.namespace else ref._replace(namespace=DEFAULT_NAMESPACE)


def require_same(seen: ResourceRef, said: ResourceRef) -> None:
    """ManifestInvalid unless a document that says it is `said` can take the place of `seen`."""
    if kept_at(said) != kept_at(seen):
        raise ManifestInvalid(f"{seen} cannot become {said}: make that one, and delete this one")


class _Problem(Exception):
    """What is wrong, before anybody says with which manifest."""


def _read(tree: dict[str, Any]) -> Authored:
    api_version = _name(tree, Path(("apiVersion",)), API_VERSION)
    kind = _name(tree, Path(("kind",)), KIND)
    metadata = tree.pop("metadata", None)
    tree.pop("status", None)
    if not isinstance(metadata, dict):
        raise _Problem(f"metadata is {sort_of(metadata)}: write an object with a name")
    ref = ResourceRef(api_version.rpartition("/")[0], kind, *_where(metadata))
    kept = _kept(metadata)
    secret = b""
    if is_secret(ref):
        kept.get("annotations", {}).pop(_LAST_APPLIED, None)
        secret = _secret(tree)
    return Authored(ref, kept, canonical(tree), secret)


def _secret(tree: dict[str, Any]) -> bytes:
    try:
        data = fold_secret(tree)
    except ValueError as error:
        raise _Problem(str(error)) from None
    return canonical(data) if data else b""


def _where(metadata: dict[str, Any]) -> tuple[str, str]:
    path = Path(("metadata",))
    if metadata.get("namespace") in (None, ""):
        metadata["namespace"] = DEFAULT_NAMESPACE
    return _name(metadata, path / "namespace", NAMESPACE), _name(metadata, path / "name", NAME)


def _name(holder: dict[str, Any], path: Path, rule: NameRule) -> str:
    text = holder.get(str(path.steps[-1]))
    if text is None or text == "":
        raise _Problem(f"{path} is missing: write {rule}")
    if not isinstance(text, str):
        raise _Problem(f"{path} is {sort_of(text)}: write it as text, in quotes")
    if not rule.allows(text):
        raise _Problem(f"{path} cannot be {text!r}: write {rule}")
    return text


def _kept(metadata: dict[str, Any]) -> dict[str, Any]:
    """The members that say something, checked."""
    for name in metadata:
        if name not in _AUTHORED and name not in _STORE_WRITES:
            near = nearest(name, _AUTHORED)
            hint = f"write {near[0]}, or take it out" if near else "take it out"
            raise _Problem(f"{Path(('metadata', name))} means nothing: {hint}")
    kept = {name: metadata[name] for name in ("labels", "annotations", "ownerReferences") if metadata.get(name)}
    for name in ("labels", "annotations"):
        _check_texts(kept.get(name, {}), Path(("metadata", name)))
    for key, value in kept.get("labels", {}).items():
        if not LABEL_VALUE.allows(value):
            raise _Problem(f"{Path(('metadata', 'labels', key))} cannot be {value!r}: write {LABEL_VALUE}")
    owners = kept.get("ownerReferences", [])
    if not isinstance(owners, list) or not all(isinstance(owner, dict) for owner in owners):
        raise _Problem("metadata.ownerReferences is no list of objects: write one object for each owner")
    return kept


def _check_texts(pairs: object, path: Path) -> None:
    if not isinstance(pairs, dict):
        raise _Problem(f"{path} is {sort_of(pairs)}: write an object of texts")
    for key, value in pairs.items():
        if not KEY.allows(key):
            raise _Problem(f"{path / key} cannot have that key: write {KEY}")
        if not isinstance(value, str):
            raise _Problem(f"{path / key} is {sort_of(value)}: write it as text, in quotes")
