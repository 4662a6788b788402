"""The state of Cloud Storage, and its buckets: get, list, insert, patch, lock, delete."""

from typing import Final

from msgspec import Struct, field

from setpoint.core.values.canonical import digest, same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud import api_errors
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.faults import Faults
from setpoint.localcloud.routing import ServiceCall, page, project_number
from setpoint.localcloud.schema import (
    OUTPUT,
    JsonBody,
    NullMeaning,
    client_fields,
    member,
    merge_patch,
    validate,
    with_member,
    without_member,
)
from setpoint.localcloud.storage.bucket_model import (
    BUCKET,
    check_autoclass,
    check_bucket,
    check_change,
    check_lock,
    check_name,
    check_preconditions,
    with_defaults,
)


class StoredBucket(Struct):
    """A bucket, its project, and every version of every object in it, oldest first."""

    project: str
    resource: JsonBody
    objects: list[JsonBody] = field(default_factory=list)


class StorageState(Struct):
    """All buckets of all projects, which share one namespace. `count` is the last generation assigned."""

    buckets: dict[str, StoredBucket] = field(default_factory=dict)
    count: int = 0


@dataclass(slots=True)
class CloudStorage:
    """The service: its state, and its active faults."""

    state: StorageState
    faults: Faults


def next_generation(state: StorageState, call: ServiceCall) -> str:
    """A new generation number: microseconds since the epoch, as the real ones are, and never the same twice."""
    state.count = max(state.count + 1, int(call.now.timestamp() * 1_000_000))
    return str(state.count)


API: Final = "https://www.googleapis.com/storage/v1"
_TEAM_ROLES: Final = {"owners": "OWNER", "editors": "OWNER", "viewers": "READER"}


def get_bucket(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`GET /b/{bucket}`."""
    bucket = find_bucket(storage, call)
    check_preconditions(bucket.resource["metageneration"], call.query)
    return bucket_view(bucket, projection(call, "noAcl"))


def list_buckets(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`GET /b?project=`."""
    project, prefix = _project_parameter(call), call.query.get("prefix", "")
    mine = [one for one in storage.state.buckets.values() if one.project == project]
    found = [one for one in mine if str(one.resource["name"]).startswith(prefix)]
    items, token = page(found, lambda one: str(one.resource["name"]), call)
    result: JsonBody = {"kind": "storage#buckets"}
    if items:
        result["items"] = [_listed(bucket_view(one, projection(call, "noAcl"))) for one in items]
    return result if token is None else {**result, "nextPageToken": token}


def _listed(bucket: JsonBody) -> JsonBody:
    """The bucket in a list, where an IP filter shows its mode only."""
    mode = member(bucket, "ipFilter.mode")
    return bucket if mode is None else {**bucket, "ipFilter": {"mode": mode}}


def insert_bucket(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`POST /b?project=`."""
    project = _project_parameter(call)
    wanted = _with_uniform_access(validate(BUCKET, call.body))
    name = str(wanted.get("name", ""))
    check_name(name)
    owner = storage.state.buckets.get(name)
    if owner is not None:
        raise api_errors.bucket_is_yours() if owner.project == project else api_errors.bucket_is_taken()
    bucket = with_defaults(wanted, {}, call.now)
    if member(bucket, "autoclass.enabled"):
        # Not refused in an insert: with Autoclass the service chooses the class, and starts with this one.
        bucket["storageClass"] = "STANDARD"
    check_bucket(bucket)
    check_lock({}, bucket)
    resource = {
        **bucket,
        "generation": next_generation(storage.state, call),
        "id": name,
        "metageneration": "1",
        "projectNumber": project_number(project),
        "selfLink": f"{API}/b/{name}",
        "timeCreated": timestamp(call.now),
        "updated": timestamp(call.now),
    }
    storage.state.buckets[name] = StoredBucket(project, storage.faults.rewritten(resource))
    return bucket_view(storage.state.buckets[name], projection(call, "noAcl"))


def patch_bucket(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`PATCH /b/{bucket}`: a merge patch; the metageneration moves only if anything changes."""
    bucket = find_bucket(storage, call)
    check_preconditions(bucket.resource["metageneration"], call.query)
    live = bucket.resource
    body = _with_uniform_access(validate(BUCKET, call.body, NullMeaning.REMOVE))
    after = with_defaults(merge_patch(client_fields(BUCKET, live), body), live, call.now)
    check_bucket(after)
    check_autoclass(after)
    check_change(live, after, call.now)
    service_owned = {name: value for name, value in live.items() if BUCKET.fields.get(name, OUTPUT) is OUTPUT}
    commit_bucket(storage, bucket, {**service_owned, **after}, call)
    return bucket_view(bucket, projection(call, "full"))


def lock_retention_policy(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`POST /b/{bucket}/lockRetentionPolicy?ifMetagenerationMatch=`."""
    bucket = find_bucket(storage, call)
    if "ifMetagenerationMatch" not in call.query:
        raise api_errors.missing_parameter("ifMetagenerationMatch")
    check_preconditions(bucket.resource["metageneration"], call.query)
    policy = bucket.resource.get("retentionPolicy")
    if policy is None or policy.get("isLocked"):
        raise api_errors.invalid_bucket(f"Bucket '{call.part('bucket')}' does not have an unlocked retention policy.")
    commit_bucket(storage, bucket, with_member(bucket.resource, "retentionPolicy.isLocked", True), call)
    return bucket_view(bucket, projection(call, "full"))


def delete_bucket(storage: CloudStorage, call: ServiceCall) -> None:
    """`DELETE /b/{bucket}`."""
    bucket = find_bucket(storage, call)
    check_preconditions(bucket.resource["metageneration"], call.query)
    if bucket.objects:
        raise api_errors.bucket_not_empty()
    del storage.state.buckets[call.part("bucket")]


def find_bucket(storage: CloudStorage, call: ServiceCall) -> StoredBucket:
    """The bucket in the path; a 404 when there is none."""
    bucket = storage.state.buckets.get(call.part("bucket"))
    if bucket is None:
        raise api_errors.no_bucket()
    return bucket


def commit_bucket(storage: CloudStorage, bucket: StoredBucket, resource: JsonBody, call: ServiceCall) -> None:
    """Replaces the bucket; its metageneration and update time move if anything changes."""
    after = storage.faults.rewritten(resource)
    if same(_without_volatile(bucket.resource), _without_volatile(after)):
        return
    metageneration = str(int(bucket.resource["metageneration"]) + 1)
    bucket.resource = {**after, "metageneration": metageneration, "updated": timestamp(call.now)}


def bucket_view(bucket: StoredBucket, projection: str) -> JsonBody:
    """The bucket as the body of a GET; with ACLs only in the full projection, and not with uniform access."""
    resource = {**bucket.resource, "etag": digest(bucket.resource)}
    is_uniform = member(resource, "iamConfiguration.uniformBucketLevelAccess.enabled")
    return resource if projection == "noAcl" or is_uniform else {**resource, **_access_lists(resource)}


def projection(call: ServiceCall, default: str) -> str:
    """The projection in the query: `full` or `noAcl`."""
    wanted = call.query.get("projection", default)
    if wanted not in ("full", "noAcl"):
        raise api_errors.wrong_value("projection", "TYPE_ENUM", wanted)
    return wanted


def _without_volatile(resource: JsonBody) -> JsonBody:
    return without_member(without_member(resource, "metageneration"), "updated")


def _with_uniform_access(body: JsonBody) -> JsonBody:
    """A body with the current name of uniform access, where the request uses only the older one."""
    path = "iamConfiguration.bucketPolicyOnly"
    older = member(body, path)
    newer = "iamConfiguration.uniformBucketLevelAccess"
    return body if older is None or member(body, newer) is not None else with_member(body, newer, older)


def _access_lists(bucket: JsonBody) -> JsonBody:
    name, number = bucket["name"], bucket["projectNumber"]
    entries = [
        {"entity": f"project-{team}-{number}", "projectTeam": {"projectNumber": number, "team": team}, "role": role}
        for team, role in _TEAM_ROLES.items()
    ]
    return {
        "acl": [
            {
                **entry,
                "bucket": name,
                "etag": bucket["etag"],
                "id": f"{name}/{entry['entity']}",
                "kind": "storage#bucketAccessControl",
                "selfLink": f"{API}/b/{name}/acl/{entry['entity']}",
            }
            for entry in entries
        ],
        "defaultObjectAcl": [
            {**entry, "etag": bucket["etag"], "kind": "storage#objectAccessControl"} for entry in entries
        ],
        "owner": {"entity": f"project-owners-{number}"},
    }


def _project_parameter(call: ServiceCall) -> str:
    if "project" not in call.query:
        raise api_errors.missing_parameter("project")
    return call.query["project"]
