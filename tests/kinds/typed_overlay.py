"""The effective desired state of Google's kinds with typed specs on both sides: what the engine does with trees."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from setpoint.core.overlay import Declared, overlay
from setpoint.core.schema.policy import PRUNE, FieldPolicy
from setpoint.core.schema.shape import shape_of
from setpoint.core.values.json_types import MISSING, JsonObject, Missing
from setpoint.kinds.gcp.sql_database import SqlDatabaseSpec, SqlDatabaseTree, fit_database_to_live
from setpoint.kinds.gcp.sql_instance import SqlInstance, SqlInstanceSpec, SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.declared import fit_instance_to_live
from setpoint.kinds.gcp.sql_instance.normalization import instance_view
from setpoint.kinds.gcp.sql_user import SqlUserSpec, SqlUserTree
from setpoint.kinds.gcp.storage_bucket import StorageBucket, StorageBucketSpec, StorageBucketTree
from setpoint.kinds.gcp.storage_bucket.live_view import bucket_view
from setpoint.kinds.gcp.storage_bucket.spec import fit_bucket_to_live

S = TypeVar("S", bound=msgspec.Struct)
FitToLive: TypeAlias = Callable[[Declared, JsonObject], Declared]


def overlay_typed(spec: S, live: S | Missing, policy: FieldPolicy = PRUNE, fit_to_live: FitToLive | None = None) -> S:
    """`overlay` for a spec and a live object of one struct type, the live one in the terms of the spec."""
    live_tree = MISSING if isinstance(live, Missing) else msgspec.to_builtins(live)
    declared = Declared(msgspec.to_builtins(spec), shape_of(type(spec)), policy)
    if fit_to_live is not None and not isinstance(live_tree, Missing):
        declared = fit_to_live(declared, live_tree)
    return msgspec.convert(overlay(declared, live_tree), type(spec))


def desired_database(spec: SqlDatabaseSpec, live: SqlDatabaseSpec | Missing, policy: FieldPolicy) -> SqlDatabaseSpec:
    """What the database should be; paths of the policy start with `spec`."""
    before = live if isinstance(live, Missing) else SqlDatabaseTree(live)
    return overlay_typed(SqlDatabaseTree(spec), before, policy, fit_database_to_live).spec


def desired_user(spec: SqlUserSpec, live: SqlUserSpec | Missing, policy: FieldPolicy) -> SqlUserSpec:
    """What the user should be; paths of the policy start with `spec`."""
    before = live if isinstance(live, Missing) else SqlUserTree(live)
    return overlay_typed(SqlUserTree(spec), before, policy).spec


def desired_instance(spec: SqlInstanceSpec, live: SqlInstanceSpec | Missing, policy: FieldPolicy) -> SqlInstanceSpec:
    """What the instance should be; paths of the policy start with `spec`."""
    before = live if isinstance(live, Missing) else SqlInstanceTree(spec=live)
    return overlay_typed(SqlInstanceTree(spec=spec), before, policy, fit_instance_to_live).spec


def desired_bucket(
    spec: StorageBucketSpec, live: StorageBucketSpec | Missing, policy: FieldPolicy
) -> StorageBucketSpec:
    """What the bucket should be; paths of the policy start with `spec`."""
    before = live if isinstance(live, Missing) else StorageBucketTree(spec=live)
    return overlay_typed(StorageBucketTree(spec=spec), before, policy, fit_bucket_to_live).spec


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
