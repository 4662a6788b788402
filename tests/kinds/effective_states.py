"""The effective desired state by a kind's own function, as a step uses it: for intents, without a service."""

from typing import Any

import msgspec

from setpoint.core.decide import Decision
from setpoint.core.overlay import EffectiveState, struct_of, tree_overlay_of
from setpoint.core.plan import Plan, plan_effective
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.engine.kind import AnyKind, Intent
from setpoint.kinds.gcp.sql_instance import SqlInstance, SqlInstanceSpec
from setpoint.kinds.gcp.sql_instance.normalization import instance_view
from setpoint.kinds.gcp.storage_bucket import StorageBucket, StorageBucketSpec
from setpoint.kinds.gcp.storage_bucket.live_view import bucket_view


def effective_over(kind: AnyKind, intent: Intent, view: JsonObject | Missing = MISSING) -> EffectiveState[Any]:
    """The effective desired state over a live object, or of one that is to be created."""
    live = MISSING if isinstance(view, Missing) else struct_of(view, kind.tree_type)
    declared = intent.declared
    found: EffectiveState[Any] = kind.effective(struct_of(declared.tree, kind.tree_type), live, declared.policy)
    by_trees = tree_overlay_of(kind)
    # A step uses trees where a kind can: both have to agree, whatever a law draws.
    assert by_trees is None or same(by_trees(declared, view).tree, found.tree)
    return found


def plan_over(kind: AnyKind, intent: Intent, view: JsonObject | Missing = MISSING) -> Plan:
    """The plan over a live object, or of the creation."""
    found, options = effective_over(kind, intent, view), kind.sending(intent)
    return plan_effective(Decision.FIRST_LOOK, found.declared, view, wanted=found.tree, options=options)


def instance_as_spec(instance: SqlInstance) -> SqlInstanceSpec:
    """The live instance as a spec that declares exactly this."""
    spec: Any = instance_view(instance)["spec"]
    settings = dict(spec["settings"])
    if "bucketRef" not in settings.get("sqlServerAuditConfig", {}):
        # No spec can declare an audit without a bucket.
        settings.pop("sqlServerAuditConfig", None)
    return msgspec.convert({**spec, "settings": settings}, SqlInstanceSpec)


def bucket_as_spec(bucket: StorageBucket) -> StorageBucketSpec:
    """The live bucket as a spec that declares exactly this."""
    return msgspec.convert(bucket_view(bucket)["spec"], StorageBucketSpec)
