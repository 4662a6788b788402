"""`terraform import`: an object that somebody else has made, by a text that names it."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.paths import Path, remove_at
from setpoint.core.values import Json
from setpoint.core.yaml_documents import write_document
from setpoint.terraform.calls import Stored
from setpoint.terraform.cluster_attribute import CLUSTER
from setpoint.terraform.cty_values import Value, Values
from setpoint.terraform.declared import ID_PATH, id_on, new_id, next_id
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.memory import Memory
from setpoint.terraform.object_schema import OBJECT
from setpoint.terraform.object_state import object_ref, single_of
from setpoint.terraform.schema import Nested
from setpoint.terraform.sites import Sites

_PARTS: Final = ("apiVersion", "kind", "namespace", "name", "context")
_NEEDED: Final = ("apiVersion", "kind", "name")
# What only a cluster says, or tools leave behind.
_NOT_DECLARED: Final = (
    Path(("status",)),
    *(
        Path(("metadata", name))
        for name in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
    ),
    Path(("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")),
    Path(("metadata", "annotations", "deployment.kubernetes.io/revision")),
    ID_PATH,
)


async def imported(identifier: str, sites: Sites) -> Stored:
    """What is stored of the object that `identifier` names: `apiVersion=v1,kind=ConfigMap,namespace=a,name=b`."""
    parts = _read(identifier)
    names: Json = {name: text for name, text in parts.items() if name in ("namespace", "name")}
    tree: dict[str, Json] = {"apiVersion": parts["apiVersion"], "kind": parts["kind"], "metadata": names}
    cluster = _cluster(parts.get("context"))
    state: dict[str, Value] = {**dict.fromkeys(OBJECT.attributes), "cluster": cluster}
    single = single_of(sites, {**state, "yaml_body": write_document(tree)}, new_id(), Memory())
    live = await single.look()
    if not isinstance(live, Mapping):
        raise Refused(error("No such object", f"There is no {parts['kind']} {parts['name']} in that cluster."))
    seen: Values = {"yaml_body": write_document(_declared(live)), "object_ref": object_ref(live), "projection": {}}
    # Whoever kept it so far finds that it does no more, as soon as this is applied.
    before = id_on(live)
    id_ = next_id(before) if before else new_id()
    return Stored({**state, **seen, "id": id_}, Memory(takes=before).to_bytes())


def _read(identifier: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in identifier.split(",")]
    parts = {name.strip(): value.strip() for name, _, value in pairs}
    unknown = [name for name in parts if name not in _PARTS]
    missing = [name for name in _NEEDED if not parts.get(name)]
    if unknown or missing:
        raise Refused(
            error(
                "No such identifier",
                f"{identifier!r} does not name an object: write apiVersion=apps/v1,kind=Deployment,namespace=shop,"
                "name=web; add context=NAME for a context of the kubeconfig that is not the current one.",
            )
        )
    return parts


def _cluster(context: str | None) -> Value:
    if context is None:
        return None
    assert isinstance(CLUSTER.type, Nested)
    attributes: Values = {**dict.fromkeys(CLUSTER.type.attributes), "context": context}
    return attributes


def _declared(live: Mapping[str, Json]) -> Json:
    tree: Json = dict(live)
    for path in _NOT_DECLARED:
        tree = remove_at(tree, path)
    metadata = tree.get("metadata") if isinstance(tree, dict) else None
    if isinstance(metadata, dict) and metadata.get("annotations") == {}:
        tree = remove_at(tree, Path(("metadata", "annotations")))
    return tree
