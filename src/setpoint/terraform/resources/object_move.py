"""`moved` blocks to `setpoint_object`: the states of `kubernetes_manifest`, `kubectl_manifest` and `k8sconnect_object`.

A moved object is not read before its first apply, which adopts it: until then only its manifest is known, and the field
managers that the former tool applied it with.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from setpoint.core.unstructured import text_at
from setpoint.core.values.canonical import digest
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, set_at
from setpoint.core.values.yaml_documents import write_document
from setpoint.errors import ManifestInvalid
from setpoint.terraform.connections.clusters import CLUSTER
from setpoint.terraform.cty.json_trees import from_untyped
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.framework.call import InstanceState
from setpoint.terraform.framework.diagnostics import Diagnostic, DiagnosticsError, error, warning
from setpoint.terraform.framework.provider import MovedState
from setpoint.terraform.framework.schema import NestedAttributes, attribute_type
from setpoint.terraform.resources.object_config import MANIFEST, YAML, first_id, object_identity, read_manifest
from setpoint.terraform.resources.object_state import PrivateState, dynamic_value, object_ref
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA

if TYPE_CHECKING:
    from setpoint.clients.kubernetes.kubeconfig import ClusterConnection

_NAMESPACE: Final = Path(("metadata", "namespace"))
_Former: TypeAlias = Mapping[str, Json]
# The manager of an apply on the client: the agent of the provider, and kubectl itself.
_KUBECTL_APPLY: Final = ("HashiCorp", "kubectl-client-side-apply")


class FormerObject(NamedTuple):
    """An object of another provider: attributes of ours, its namespace, its uid, and the managers that applied it.

    Without a namespace it is cluster-scoped.
    """

    attributes: AttributeValues
    namespace: str
    uid: str
    managers: tuple[str, ...]


def move_object(source: MovedState) -> InstanceState:
    """The state of an object that another provider kept; DiagnosticsError for a resource that is no object."""
    provider, read = _SOURCES.get(source.type_name, ("", None))
    # Whole in Terraform, and a bare name in OpenTofu.
    if read is None or source.provider_address.rpartition("/")[2] != provider:
        known = ", ".join(sorted(_SOURCES))
        raise DiagnosticsError(
            error(
                f"{source.type_name} cannot become setpoint_object",
                f"States of {known} can be moved, and this is one of {source.type_name} of "
                f"{source.provider_address or 'an unknown provider'}. Import the object instead.",
            )
        )
    try:
        return _moved_state(source.type_name, read(source.state))
    except (DiagnosticsError, ManifestInvalid) as fault:
        raise _unreadable(source, fault) from fault


def _moved_state(type_name: str, former: FormerObject) -> InstanceState:
    state: dict[str, CtyValue] = {**dict.fromkeys(OBJECT_SCHEMA.attributes), **former.attributes}
    tree = read_manifest(state)
    ref = {**object_ref(tree), "namespace": former.namespace or None}
    # The same in every plan until it is applied: a process that is killed meanwhile has adopted it under this ID.
    id_ = first_id(digest([type_name, former.uid, *object_identity(tree)]))
    state |= {"id": id_, "object_ref": ref, "projection": {}}
    return InstanceState(state, PrivateState(taken_over=former.managers).to_bytes())


def _unreadable(source: MovedState, fault: Exception) -> DiagnosticsError:
    why = "; ".join(one.detail for one in fault.diagnostics) if isinstance(fault, DiagnosticsError) else str(fault)
    return DiagnosticsError(
        error(
            f"The state of {source.type_name} cannot be read",
            f"Its schema has version {source.schema_version}: {why} Apply it with the newest version of that provider "
            "first; or remove it with `terraform state rm` and import the object here.",
        )
    )


# --- States of other providers ---------------------------------------------------------------------------------------


def _kubernetes_manifest(state: _Former) -> FormerObject:
    """hashicorp/kubernetes: dynamic values are stored with their type."""
    manifest, live = (_dynamic(state.get(name)) for name in ("manifest", "object"))
    namespace = text_at(live, "metadata", "namespace") or text_at(manifest, "metadata", "namespace")
    manager = text_at(_first(state.get("field_manager")), "name") or "Terraform"
    return FormerObject({MANIFEST: dynamic_value(manifest)}, namespace, text_at(live, "metadata", "uid"), (manager,))


def _kubectl_manifest(state: _Former) -> FormerObject:
    """gavinbunney/kubectl and alekc/kubectl: by default `kubectl apply` on the client, under the name of its agent."""
    override, yaml = text_at(state, "override_namespace"), text_at(state, YAML)
    if override:
        yaml = write_document(set_at(read_manifest({YAML: yaml}), _NAMESPACE, override))
    applier = (text_at(state, "field_manager") or "kubectl",) if state.get("server_side_apply") is True else ()
    namespace = override or text_at(state, "namespace") or "default"
    return FormerObject({YAML: yaml}, namespace, text_at(state, "uid"), (*applier, *_KUBECTL_APPLY))


def _k8sconnect_object(state: _Former) -> FormerObject:
    """jmorris0x0/k8sconnect: the cluster is in the state, which a destroy before the first apply needs."""
    carried = (YAML, "delete_protection", "delete_timeout", "ignore_fields")
    types = {name: attribute_type(OBJECT_SCHEMA.attributes[name]) for name in carried}
    values = {name: from_untyped(state.get(name), type_, (name,)) for name, type_ in types.items()}
    cluster = from_untyped(_known_members(state.get("cluster"), CLUSTER.type), attribute_type(CLUSTER), ("cluster",))
    namespace = text_at(state, "object_ref", "namespace")
    return FormerObject({**values, "cluster": cluster}, namespace, text_at(state, "id"), ("k8sconnect",))


_SOURCES: Final[Mapping[str, tuple[str, Callable[[_Former], FormerObject]]]] = {
    "k8sconnect_object": ("k8sconnect", _k8sconnect_object),
    "kubectl_manifest": ("kubectl", _kubectl_manifest),
    "kubernetes_manifest": ("kubernetes", _kubernetes_manifest),
}


def _dynamic(stored: Json) -> Json:
    """The value of an attribute of the dynamic type."""
    return stored.get("value") if isinstance(stored, Mapping) else None


def _first(block: Json) -> Json:
    """A block of which there is one at most."""
    return block[0] if isinstance(block, list) and block else None


def _known_members(tree: Json, type_: object) -> Json:
    """The members that our schema has, too, at any depth."""
    if not isinstance(tree, Mapping) or not isinstance(type_, NestedAttributes):
        return tree
    return {name: _known_members(tree[name], one.type) for name, one in type_.attributes.items() if name in tree}


# --- The first plan --------------------------------------------------------------------------------------------------


def is_moved_object(prior: AttributeValues, tree: Json, default_namespace: str) -> bool:
    """Whether a manifest is that of the moved object, whether or not either of them names the default namespace."""
    before, after, ref = object_identity(read_manifest(prior)), object_identity(tree), prior.get("object_ref")
    namespace = ref.get("namespace") if isinstance(ref, Mapping) else None
    is_same_place = namespace is None or namespace == (after.namespace or default_namespace)
    return is_same_place and before._replace(namespace="") == after._replace(namespace="")


def not_there_warning(tree: Json, connection: "ClusterConnection") -> Diagnostic:
    """The diagnostic of a moved object that does not exist in the cluster of the configuration."""
    ref = object_ref(tree)
    return warning(
        "The moved object is not there",
        f"{connection.server} has no {ref['kind']} {ref['name']}: the apply creates it. If it exists in another "
        "cluster, correct the attribute cluster of the resource or of the provider's block first.",
    )
