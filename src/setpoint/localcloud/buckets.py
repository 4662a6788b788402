"""Buckets: read, created, changed, locked, deleted."""

from typing import Final

from setpoint.core.canonical import digest, same
from setpoint.localcloud import refusals
from setpoint.localcloud.bucket_defaults import completed
from setpoint.localcloud.bucket_rules import (
    check_autoclass,
    check_bucket,
    check_change,
    check_lock,
    check_name,
    check_preconditions,
)
from setpoint.localcloud.bucket_schema import BUCKET
from setpoint.localcloud.bucket_state import Bucket, CloudStorage, next_generation
from setpoint.localcloud.clock import stamp
from setpoint.localcloud.paging import page
from setpoint.localcloud.projects import project_number
from setpoint.localcloud.routes import Call
from setpoint.localcloud.schema import OUTPUT, Nulls, kept, read
from setpoint.localcloud.trees import Tree, member, merge_patch, with_member, without_member

API: Final = "https://www.googleapis.com/storage/v1"
_TEAMS: Final = {"owners": "OWNER", "editors": "OWNER", "viewers": "READER"}


def get_bucket(storage: CloudStorage, call: Call) -> Tree:
    """`GET /b/{bucket}`."""
    bucket = find(storage, call)
    check_preconditions(bucket.resource["metageneration"], call.query)
    return view(bucket, projection(call, "noAcl"))


def list_buckets(storage: CloudStorage, call: Call) -> Tree:
    """`GET /b?project=`."""
    project, prefix = _project(call), call.query.get("prefix", "")
    mine = [one for one in storage.state.buckets.values() if one.project == project]
    found = [one for one in mine if str(one.resource["name"]).startswith(prefix)]
    items, token = page(found, lambda one: str(one.resource["name"]), call)
    result: Tree = {"kind": "storage#buckets"}
    if items:
        result["items"] = [_listed(view(one, projection(call, "noAcl"))) for one in items]
    return result if token is None else {**result, "nextPageToken": token}


def _listed(bucket: Tree) -> Tree:
    """The bucket in a list: of a filter for requests, that shows whether it is in force, and not what it lets pass."""
    mode = member(bucket, "ipFilter.mode")
    return bucket if mode is None else {**bucket, "ipFilter": {"mode": mode}}


def insert_bucket(storage: CloudStorage, call: Call) -> Tree:
    """`POST /b?project=`."""
    project = _project(call)
    wanted = _with_switch(read(BUCKET, call.body))
    name = str(wanted.get("name", ""))
    check_name(name)
    owner = storage.state.buckets.get(name)
    if owner is not None:
        raise refusals.bucket_is_yours() if owner.project == project else refusals.bucket_is_taken()
    bucket = completed(wanted, {}, call.now)
    if member(bucket, "autoclass.enabled"):
        # Not refused here: with Autoclass the service chooses, and it starts with this one.
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
        "timeCreated": stamp(call.now),
        "updated": stamp(call.now),
    }
    storage.state.buckets[name] = Bucket(project, storage.faults.rewritten(resource))
    return view(storage.state.buckets[name], projection(call, "noAcl"))


def patch_bucket(storage: CloudStorage, call: Call) -> Tree:
    """`PATCH /b/{bucket}`: a JSON merge; the metageneration moves only if anything changes."""
    bucket = find(storage, call)
    check_preconditions(bucket.resource["metageneration"], call.query)
    live = bucket.resource
    body = _with_switch(read(BUCKET, call.body, Nulls.REMOVE))
    after = completed(merge_patch(kept(BUCKET, live), body), live, call.now)
    check_bucket(after)
    check_autoclass(after)
    check_change(live, after, call.now)
    service_owned = {name: value for name, value in live.items() if BUCKET.fields.get(name, OUTPUT) is OUTPUT}
    commit(storage, bucket, {**service_owned, **after}, call)
    return view(bucket, projection(call, "full"))


def lock_retention_policy(storage: CloudStorage, call: Call) -> Tree:
    """`POST /b/{bucket}/lockRetentionPolicy?ifMetagenerationMatch=`."""
    bucket = find(storage, call)
    if "ifMetagenerationMatch" not in call.query:
        raise refusals.missing_parameter("ifMetagenerationMatch")
    check_preconditions(bucket.resource["metageneration"], call.query)
    policy = bucket.resource.get("retentionPolicy")
    if policy is None or policy.get("isLocked"):
        raise refusals.bad_bucket(f"Bucket '{call.part('bucket')}' does not have an unlocked retention policy.")
    commit(storage, bucket, with_member(bucket.resource, "retentionPolicy.isLocked", True), call)
    return view(bucket, projection(call, "full"))


def delete_bucket(storage: CloudStorage, call: Call) -> None:
    """`DELETE /b/{bucket}`."""
    bucket = find(storage, call)
    check_preconditions(bucket.resource["metageneration"], call.query)
    if bucket.objects:
        raise refusals.bucket_not_empty()
    del storage.state.buckets[call.part("bucket")]


def find(storage: CloudStorage, call: Call) -> Bucket:
    """The bucket that the path names; a 404 when there is none."""
    bucket = storage.state.buckets.get(call.part("bucket"))
    if bucket is None:
        raise refusals.no_bucket()
    return bucket


def commit(storage: CloudStorage, bucket: Bucket, resource: Tree, call: Call) -> None:
    """The bucket becomes `resource`; its metageneration and time move if anything else does."""
    after = storage.faults.rewritten(resource)
    if same(_lasting(bucket.resource), _lasting(after)):
        return
    metageneration = str(int(bucket.resource["metageneration"]) + 1)
    bucket.resource = {**after, "metageneration": metageneration, "updated": stamp(call.now)}


def view(bucket: Bucket, projection: str) -> Tree:
    """The bucket as it looks from outside; access control lists only in full, and not with uniform access."""
    resource = {**bucket.resource, "etag": digest(bucket.resource)}
    is_uniform = member(resource, "iamConfiguration.uniformBucketLevelAccess.enabled")
    return resource if projection == "noAcl" or is_uniform else {**resource, **_access_lists(resource)}


def projection(call: Call, default: str) -> str:
    """How much of a bucket the caller wants to see."""
    wanted = call.query.get("projection", default)
    if wanted not in ("full", "noAcl"):
        raise refusals.wrong_value("projection", "TYPE_ENUM", wanted)
    return wanted


def _lasting(resource: Tree) -> Tree:
    return without_member(without_member(resource, "metageneration"), "updated")


def _with_switch(body: Tree) -> Tree:
    """Uniform access has two names: a request that uses only the older one means the newer one."""
    path = "iamConfiguration.bucketPolicyOnly"
    older = member(body, path)
    newer = "iamConfiguration.uniformBucketLevelAccess"
    return body if older is None or member(body, newer) is not None else with_member(body, newer, older)


def _access_lists(bucket: Tree) -> Tree:
    name, number = bucket["name"], bucket["projectNumber"]
    entries = [
        {"entity": f"project-{team}-{number}", "projectTeam": {"projectNumber": number, "team": team}, "role": role}
        for team, role in _TEAMS.items()
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


def _project(call: Call) -> str:
    if "project" not in call.query:
        raise refusals.missing_parameter("project")
    return call.query["project"]
