"""`terraform import` of `setpoint_object`, by an identifier such as `apiVersion=v1,kind=ConfigMap,name=a`."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.secret_paths import without_secrets
from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, remove_at
from setpoint.core.values.yaml_documents import write_document
from setpoint.terraform.connections.clusters import CLUSTER, ClusterConnections, cluster_needed
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.framework.call import InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.schema import NestedAttributes
from setpoint.terraform.resources.object_config import ID_PATH, annotated_id, new_id, next_id
from setpoint.terraform.resources.object_state import PrivateState, object_ref, session_for
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA

_PARTS: Final = ("apiVersion", "kind", "namespace", "name", "context")
_REQUIRED_PARTS: Final = ("apiVersion", "kind", "name")
# Fields that the server sets, or has used up once it has made a name of one; and annotations of other tools.
_SERVER_FIELDS: Final = (
    Path(("status",)),
    *(
        Path(("metadata", name))
        for name in (
            *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"),
            "generateName",
        )
    ),
    Path(("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")),
    Path(("metadata", "annotations", "deployment.kubernetes.io/revision")),
    ID_PATH,
)


async def import_object(identifier: str, clusters: ClusterConnections) -> InstanceState:
    """The state of the object that `identifier` names: `apiVersion=v1,kind=ConfigMap,namespace=a,name=b`."""
    parts = _parse_identifier(identifier)
    names: Json = {name: text for name, text in parts.items() if name in ("namespace", "name")}
    tree: dict[str, Json] = {"apiVersion": parts["apiVersion"], "kind": parts["kind"], "metadata": names}
    cluster = _cluster_values(parts.get("context"))
    state: dict[str, CtyValue] = {**dict.fromkeys(OBJECT_SCHEMA.attributes), "cluster": cluster}
    session = session_for(clusters, {**state, "yaml_body": write_document(tree)}, new_id(), PrivateState())
    with cluster_needed(session.connection):
        live = await session.observe()
    if not isinstance(live, Mapping):
        raise DiagnosticsError(error("No such object", f"There is no {parts['kind']} {parts['name']} in that cluster."))
    computed: AttributeValues = {
        # A plan, `show` and a generated configuration would print the values of a Secret.
        "yaml_body": write_document(without_secrets(_without_server_fields(live))),
        "object_ref": object_ref(live),
        "projection": {},
    }
    # With the next ID, a resource that managed the object before finds that it does no longer, once this is applied.
    before = annotated_id(live)
    id_ = next_id(before) if before else new_id()
    private = PrivateState(takes=before, uid=text_at(live, "metadata", "uid"))
    return InstanceState({**state, **computed, "id": id_}, private.to_bytes())


def _parse_identifier(identifier: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in identifier.split(",")]
    parts = {name.strip(): value.strip() for name, _, value in pairs}
    unknown = [name for name in parts if name not in _PARTS]
    missing = [name for name in _REQUIRED_PARTS if not parts.get(name)]
    if unknown or missing:
        raise DiagnosticsError(
            error(
                "No such identifier",
                f"{identifier!r} does not name an object: write apiVersion=apps/v1,kind=Deployment,namespace=shop,"
                "name=web; add context=NAME for a context of the kubeconfig that is not the current one.",
            )
        )
    return parts


def _cluster_values(context: str | None) -> CtyValue:
    if context is None:
        return None
    assert isinstance(CLUSTER.type, NestedAttributes)
    attributes: AttributeValues = {**dict.fromkeys(CLUSTER.type.attributes), "context": context}
    return attributes


def _without_server_fields(live: Mapping[str, Json]) -> Json:
    tree: Json = dict(live)
    for path in _SERVER_FIELDS:
        tree = remove_at(tree, path)
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if isinstance(metadata, dict) and metadata.get("annotations") == {}:
        tree = remove_at(tree, Path(("metadata", "annotations")))
    return tree
