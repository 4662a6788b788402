"""Drift on request: a live object is changed behind everybody's back, without asking any rule."""

import re
from datetime import datetime
from typing import Final

from setpoint.core.canonical import same
from setpoint.localcloud import refusals
from setpoint.localcloud.bucket_state import Bucket, StorageState
from setpoint.localcloud.clock import stamp
from setpoint.localcloud.schema import OUTPUT
from setpoint.localcloud.sql_schema import INSTANCE
from setpoint.localcloud.sql_state import Instance, SqlState
from setpoint.localcloud.trees import Tree, merge_patch, with_member

_SQL: Final = re.compile(r"/sql/v1beta4/projects/([^/]+)/instances/([^/]+)(?:/databases/([^/]+))?")
_BUCKET: Final = re.compile(r"(?:/storage/v1)?/b/([^/]+)")


def edit_sql(state: SqlState, path: str, patch: Tree) -> bool:
    """Merges `patch` into the instance or database at `path`; False when no such thing is meant."""
    found = _SQL.fullmatch(path)
    if found is None:
        return False
    instance = state.instances.get(f"{found[1]}/{found[2]}")
    if instance is None:
        raise refusals.no_instance()
    if found[3] is None:
        edit_instance(instance, patch)
    elif found[3] in instance.databases:
        instance.databases[found[3]] = merge_patch(instance.databases[found[3]], patch)
    else:
        raise refusals.not_found()
    return True


def edit_instance(instance: Instance, patch: Tree) -> None:
    """The version of the settings moves, as it does when a person clicks through a console."""
    decided = {name: value for name, value in patch.items() if INSTANCE.fields.get(name, OUTPUT) is not OUTPUT}
    edited = merge_patch(instance.resource, decided)
    if not same(edited, instance.resource):
        version = int(instance.resource["settings"]["settingsVersion"]) + 1
        instance.resource = with_member(edited, "settings.settingsVersion", str(version))
    # What the service itself says of an instance is worked out anew with every write; the edit outlives that.
    instance.overrides = {**instance.overrides, **{name: patch[name] for name in patch if name not in decided}}


def edit_bucket(state: StorageState, path: str, patch: Tree, now: datetime) -> bool:
    """Merges `patch` into the bucket at `path`; False when no bucket is meant."""
    found = _BUCKET.fullmatch(path)
    if found is None:
        return False
    bucket = state.buckets.get(found[1])
    if bucket is None:
        raise refusals.no_bucket()
    edited = merge_patch(bucket.resource, patch)
    if not same(edited, bucket.resource):
        _move(bucket, edited, now)
    return True


def _move(bucket: Bucket, edited: Tree, now: datetime) -> None:
    metageneration = str(int(bucket.resource["metageneration"]) + 1)
    bucket.resource = {**edited, "metageneration": metageneration, "updated": stamp(now)}
