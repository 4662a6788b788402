"""Manifests of several texts: split into documents, keyed by kind, namespace and name, and grouped into stages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from setpoint.core.unstructured import GroupKind, group_kind, text_at
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.core.values.yaml_documents import YamlDocument, read_documents, write_document
from setpoint.errors import ManifestInvalid

# The stages, in the order in which they are applied; and all of them together.
CRDS, NAMESPACES, CLUSTER_SCOPED, NAMESPACED = "crds", "namespaces", "cluster_scoped", "namespaced"
STAGES: Final = (CRDS, NAMESPACES, CLUSTER_SCOPED, NAMESPACED)
ALL: Final = "all"

_DEFINITION: Final[GroupKind] = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE: Final[GroupKind] = ("", "Namespace")
_ADMISSION, _STORAGE = "admissionregistration.k8s.io", "storage.k8s.io"
_CLUSTER_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("ComponentStatus", "Namespace", "Node", "PersistentVolume"),
    _ADMISSION: (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ),
    "apiextensions.k8s.io": ("CustomResourceDefinition",),
    "apiregistration.k8s.io": ("APIService",),
    "certificates.k8s.io": ("CertificateSigningRequest", "ClusterTrustBundle"),
    "flowcontrol.apiserver.k8s.io": ("FlowSchema", "PriorityLevelConfiguration"),
    "networking.k8s.io": ("IPAddress", "IngressClass", "ServiceCIDR"),
    "node.k8s.io": ("RuntimeClass",),
    "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding"),
    "resource.k8s.io": ("DeviceClass", "DeviceTaintRule", "ResourceSlice"),
    "scheduling.k8s.io": ("PriorityClass",),
    _STORAGE: ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"),
    "storagemigration.k8s.io": ("StorageVersionMigration",),
}
# The kinds of Kubernetes itself whose objects are in no namespace.
CLUSTER_SCOPED_KINDS: Final[frozenset[GroupKind]] = frozenset(
    (group, kind) for group, kinds in _CLUSTER_KINDS.items() for kind in kinds
)


@dataclass(frozen=True, slots=True)
class ManifestText:
    """A text with manifests, and what it is called in messages."""

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class _Manifest:
    tree: Mapping[str, Json]
    where: str


def split_manifests(texts: Sequence[ManifestText]) -> dict[str, dict[str, str]]:
    """The YAML of each object by its key, for each stage and for all; ManifestInvalid names the text and the line.

    The key is `Kind/namespace/name`, or `Kind/name` without a namespace.
    """
    found = [one for text in texts for one in _manifests_in(text)]
    cluster_kinds = CLUSTER_SCOPED_KINDS | frozenset(_cluster_scoped_kinds(found))
    places: dict[str, _Manifest] = {}
    stages: dict[str, dict[str, str]] = {name: {} for name in (ALL, *STAGES)}
    for one in found:
        is_clusterwide = group_kind(one.tree) in cluster_kinds
        key = _key(one.tree, is_clusterwide=is_clusterwide)
        if key in places:
            raise _duplicate(key, one, places[key])
        places[key] = one
        stage = _stage(group_kind(one.tree), is_clusterwide=is_clusterwide)
        stages[ALL][key] = stages[stage][key] = write_document(dict(one.tree))
    return stages


def _manifests_in(text: ManifestText) -> Iterator[_Manifest]:
    for document in read_documents(text.text, text.name):
        yield from _flattened(document, document.value, Path())


def _flattened(document: YamlDocument, tree: Json, at: Path) -> Iterator[_Manifest]:
    """The object at a path of a document; of a list of objects, such as `kind: List`, each of its items."""
    items = tree.get("items") if isinstance(tree, Mapping) and text_at(tree, "kind").endswith("List") else None
    if isinstance(items, list):
        for position, item in enumerate(items):
            yield from _flattened(document, item, at / "items" / position)
        return
    names = (("apiVersion",), ("kind",), ("metadata", "name"))
    if not isinstance(tree, Mapping) or not all(text_at(tree, *steps) for steps in names):
        raise ManifestInvalid(
            f"{document.where(at)}: an object needs apiVersion, kind and metadata.name: write all three"
        )
    yield _Manifest(tree, document.where(at))


def _cluster_scoped_kinds(manifests: Sequence[_Manifest]) -> Iterator[GroupKind]:
    """The cluster-scoped kinds that CustomResourceDefinitions among the manifests define."""
    for one in manifests:
        if group_kind(one.tree) == _DEFINITION and text_at(one.tree, "spec", "scope") == "Cluster":
            yield text_at(one.tree, "spec", "group"), text_at(one.tree, "spec", "names", "kind")


def _key(tree: Mapping[str, Json], *, is_clusterwide: bool) -> str:
    namespace = "" if is_clusterwide else text_at(tree, "metadata", "namespace")
    return "/".join(part for part in (text_at(tree, "kind"), namespace, text_at(tree, "metadata", "name")) if part)


def _stage(kind: GroupKind, *, is_clusterwide: bool) -> str:
    if kind == _DEFINITION:
        return CRDS
    if kind == _NAMESPACE:
        return NAMESPACES
    return CLUSTER_SCOPED if is_clusterwide else NAMESPACED


def _duplicate(key: str, one: _Manifest, first: _Manifest) -> ManifestInvalid:
    if group_kind(one.tree) == group_kind(first.tree):
        return ManifestInvalid(f"{one.where}: {key} is at {first.where} already: remove one of them")
    groups = " and ".join(text_at(tree, "apiVersion") for tree in (first.tree, one.tree))
    return ManifestInvalid(
        f"{one.where}: {key} is at {first.where} already, of another group ({groups}): split the two by two calls"
    )
