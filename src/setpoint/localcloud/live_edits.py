"""Edits of live objects through the control API: drift, without validation."""

import re
from datetime import datetime
from typing import Final

from setpoint.core.values.canonical import same
from setpoint.localcloud import api_errors
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.schema import OUTPUT, JsonBody, merge_patch, with_member
from setpoint.localcloud.sql.operations import SqlState, StoredInstance
from setpoint.localcloud.sql.schema import INSTANCE
from setpoint.localcloud.storage.buckets import StorageState, StoredBucket

_SQL_PATH: Final = re.compile(r"/sql/v1beta4/projects/([^/]+)/instances/([^/]+)(?:/databases/([^/]+))?")
_BUCKET_PATH: Final = re.compile(r"(?:/storage/v1)?/b/([^/]+)")


def edit_sql(state: SqlState, path: str, patch: JsonBody) -> bool:
    """Merges `patch` into the instance or database at `path`; False when the path is neither."""
    found = _SQL_PATH.fullmatch(path)
    if found is None:
        return False
    instance = state.instances.get(f"{found[1]}/{found[2]}")
    if instance is None:
        raise api_errors.no_instance()
    if found[3] is None:
        edit_instance(instance, patch)
    elif found[3] in instance.databases:
        instance.databases[found[3]] = merge_patch(instance.databases[found[3]], patch)
    else:
        raise api_errors.not_found()
    return True


def edit_instance(instance: StoredInstance, patch: JsonBody) -> None:
    """Merges `patch` into an instance; the settings version moves, as with an edit in the console."""
    decided = {name: value for name, value in patch.items() if INSTANCE.fields.get(name, OUTPUT) is not OUTPUT}
    edited = merge_patch(instance.resource, decided)
    if not same(edited, instance.resource):
        version = int(instance.resource["settings"]["settingsVersion"]) + 1
        instance.resource = with_member(edited, "settings.settingsVersion", str(version))
    # Outputs are computed again with every write; an edit of one is kept as an override.
    instance.overrides = {**instance.overrides, **{name: patch[name] for name in patch if name not in decided}}


def edit_bucket(state: StorageState, path: str, patch: JsonBody, now: datetime) -> bool:
    """Merges `patch` into the bucket at `path`; False when the path is no bucket."""
    found = _BUCKET_PATH.fullmatch(path)
    if found is None:
        return False
    bucket = state.buckets.get(found[1])
    if bucket is None:
        raise api_errors.no_bucket()
    edited = merge_patch(bucket.resource, patch)
    if not same(edited, bucket.resource):
        _replace_bucket(bucket, edited, now)
    return True


def _replace_bucket(bucket: StoredBucket, edited: JsonBody, now: datetime) -> None:
    metageneration = str(int(bucket.resource["metageneration"]) + 1)
    bucket.resource = {**edited, "metageneration": metageneration, "updated": timestamp(now)}
