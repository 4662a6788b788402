"""The effective desired state of a StorageBucket: the declared bucket over the live one, or as it is created."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.overlay import Declared, EffectiveState, effective_of_trees, overlay_at, rule_at, tree_of
from setpoint.core.schema.policy import FieldPolicy, Rule
from setpoint.core.schema.shape import Mark, shape_of, with_marks
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.json_types import Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, remove_at
from setpoint.errors import ImmutableFieldChanged
from setpoint.kinds.gcp.shared.config_connector import without_managed_label
from setpoint.kinds.gcp.storage_bucket.spec import LOCATION, STORAGE_CLASS, StorageBucketTree

LOCKED: Final = Path(("spec", "retentionPolicy", "isLocked"))
_AUTOCLASS: Final = Path(("spec", "autoclass", "enabled"))
_TERMINAL: Final = Path(("spec", "autoclass", "terminalStorageClass"))
_SERVICE_DECIDES: Final = {"spec.storageClass": Mark.OUTPUT_ONLY}


def effective_bucket(
    spec: StorageBucketTree, live: StorageBucketTree | Missing, policy: FieldPolicy
) -> EffectiveState[StorageBucketTree]:
    """What the bucket should be after this step; one that does not exist yet, as it is created.

    ImmutableFieldChanged when a locked retention policy would be unlocked.
    """
    declared = Declared(tree_of(spec), shape_of(type(spec)), policy)
    return effective_bucket_tree(declared, live if isinstance(live, Missing) else tree_of(live))


def effective_bucket_tree(declared: Declared, live: JsonObject | Missing) -> EffectiveState[StorageBucketTree]:
    """See `effective_bucket`, for trees."""
    found = effective_of_trees(declared, live, StorageBucketTree, _fit_unless_locked)
    if not isinstance(live, Missing):
        return found
    return replace(found, tree=_created_fields(found.declared, found.tree))


# --- A new bucket -----------------------------------------------------------------------------------------------------

# Sent with every insert, unless they are left to the service.
_ALWAYS_SENT: Final[Mapping[str, Json]] = {
    "location": LOCATION,
    "storageClass": STORAGE_CLASS,
    "uniformBucketLevelAccess": False,
    "lifecycleRule": [],
}
# The service takes the filter as a whole.
_WHOLE_FILTER: Final[Mapping[str, Json]] = {
    "vpcNetworkSources": [],
    "allowCrossOrgVpcs": False,
    "allowAllServiceAgentAccess": False,
}


def _created_fields(declared: Declared, wanted: JsonObject) -> JsonObject:
    """The fields of a new bucket: what the author declares, and the defaults that are always sent.

    No default is sent for a field that an annotation leaves to the service.
    """
    spec, own = _mapping(wanted["spec"]), _mapping(declared.tree["spec"])
    names = [name for name, value in spec.items() if own.get(name) is not None and not _is_initial(name, value)]
    created = {name: spec[name] for name in names}
    for name, value in _ALWAYS_SENT.items():
        if rule_at(declared, Path(("spec", name))) not in (Rule.LISTED, Rule.IGNORED):
            created[name] = spec.get(name, value)
    if "ipFilter" in created:
        created["ipFilter"] = {**_WHOLE_FILTER, **_mapping(created["ipFilter"])}
    tree: JsonObject = {**wanted, "spec": created}
    if isinstance(get_at(declared.tree, _TERMINAL), Missing):
        tree = _removed(tree, _TERMINAL)
    return tree if get_at(tree, LOCKED) is True else _removed(tree, LOCKED)


def _removed(tree: JsonObject, path: Path) -> JsonObject:
    return _mapping(remove_at(tree, path))


def _is_initial(name: str, value: Json) -> bool:
    """Whether a new bucket has this value anyway: it is left out of an insert."""
    if name == "autoclass":
        return _mapping(value).get("enabled") is not True
    return value in ({}, []) or (name in ("requesterPays", "defaultEventBasedHold") and value is False)


def _mapping(value: Json | Missing) -> Mapping[str, Json]:
    assert isinstance(value, Mapping)
    return value


# --- What the live bucket fixes or derives ----------------------------------------------------------------------------


def fit_bucket_to_live(declared: Declared, live: Mapping[str, Json]) -> Declared:
    """While Autoclass is on, the service sets the storage class: output only, and STANDARD when it is turned on."""
    declared = without_managed_label(declared, live)
    if not (_has_autoclass(declared.tree) or _has_autoclass(live)):
        # It has no default.
        return declared
    if overlay_at(declared, live, _AUTOCLASS) is not True:
        return _without_terminal(declared)
    if get_at(live, _AUTOCLASS) is True:
        return replace(declared, shape=with_marks(declared.shape, _SERVICE_DECIDES))
    spec = declared.tree["spec"]
    assert isinstance(spec, Mapping)
    return replace(declared, tree={**declared.tree, "spec": {**spec, "storageClass": STORAGE_CLASS}})


def _has_autoclass(tree: Mapping[str, Json]) -> bool:
    spec = tree.get("spec")
    return isinstance(spec, Mapping) and "autoclass" in spec


def _without_terminal(declared: Declared) -> Declared:
    """Without Autoclass there is no terminal class, even if the spec sets one and `enabled` is unmanaged."""
    return replace(declared, tree=_removed(declared.tree, _TERMINAL))


def _require_lock(declared: Declared, live: Mapping[str, Json]) -> None:
    """ImmutableFieldChanged when the live policy is locked and the desired one is not."""
    if get_at(live, LOCKED) is True and overlay_at(declared, live, LOCKED) is not True:
        raise ImmutableFieldChanged(
            f"{LOCKED} cannot change from true to false: a locked retention policy stays locked. Put true back",
            (str(LOCKED),),
        )


def _fit_unless_locked(declared: Declared, live: JsonObject) -> Declared:
    _require_lock(declared, live)
    return fit_bucket_to_live(declared, live)
