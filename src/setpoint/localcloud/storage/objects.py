"""Objects of a bucket: upload, list, get, delete. Their contents are measured, not kept."""

import base64
import hashlib
from datetime import datetime, timedelta

from setpoint.core.values.canonical import digest
from setpoint.localcloud import api_errors
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.routing import ServiceCall, page
from setpoint.localcloud.schema import JsonBody, member
from setpoint.localcloud.storage.bucket_model import check_preconditions
from setpoint.localcloud.storage.buckets import API, CloudStorage, StoredBucket, find_bucket, next_generation


def list_objects(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`GET /b/{bucket}/o`: live objects, and old versions too with `versions=true`."""
    bucket = find_bucket(storage, call)
    shows_all = call.query.get("versions") == "true"
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    found = [one for one in bucket.objects if one["name"].startswith(prefix) and (shows_all or is_live(one))]
    folders = {_folder(one["name"], prefix, delimiter) for one in found} - {None}
    plain = [one for one in found if _folder(one["name"], prefix, delimiter) is None]
    items, token = page(plain, lambda one: f"{one['name']}#{one['generation']:>20}", call)
    result: JsonBody = {"kind": "storage#objects"}
    if items:
        result["items"] = items
    if folders:
        result["prefixes"] = sorted(str(one) for one in folders)
    return result if token is None else {**result, "nextPageToken": token}


def get_object(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`GET /b/{bucket}/o/{object}`: the metadata; contents are not kept."""
    if call.query.get("alt") == "media":
        raise api_errors.invalid_bucket("The local cloud measures objects and does not keep their contents")
    return find_object(find_bucket(storage, call), call)


def insert_object(storage: CloudStorage, call: ServiceCall) -> JsonBody:
    """`POST /upload/storage/v1/b/{bucket}/o?uploadType=media&name=`."""
    bucket = find_bucket(storage, call)
    if call.query.get("uploadType", "media") != "media":
        raise api_errors.invalid_bucket("The local cloud takes simple uploads only: uploadType=media")
    name = call.query.get("name", "")
    if not name or len(name.encode()) > 1024:
        raise api_errors.missing_parameter("name")
    archive_live_version(bucket, name, call.now)
    new = _new_object(bucket, call, next_generation(storage.state, call))
    bucket.objects = [*bucket.objects, new]
    return new


def delete_object(storage: CloudStorage, call: ServiceCall) -> None:
    """`DELETE /b/{bucket}/o/{object}`: deletes the live object, or permanently the version in the query."""
    bucket = find_bucket(storage, call)
    found = find_object(bucket, call)
    if "generation" in call.query or not keeps_versions(bucket):
        refuse_while_retained(bucket, found, call.now)
        bucket.objects = [one for one in bucket.objects if one is not found]
    else:
        archive_live_version(bucket, found["name"], call.now)


def find_object(bucket: StoredBucket, call: ServiceCall) -> JsonBody:
    """The version in the query, or else the live object; a 404 when it does not exist."""
    name, generation = call.part("object"), call.query.get("generation")
    for one in bucket.objects:
        if one["name"] == name and (is_live(one) if generation is None else one["generation"] == generation):
            check_preconditions(one["metageneration"], call.query)
            return one
    raise api_errors.no_object(call.part("bucket"), name)


def archive_live_version(bucket: StoredBucket, name: str, now: datetime) -> None:
    """Turns the live object into an old version, or removes it if the bucket keeps none."""
    for one in bucket.objects:
        if one["name"] == name and is_live(one):
            old = {**one, "timeDeleted": timestamp(now), "updated": timestamp(now)}
            if not keeps_versions(bucket):
                refuse_while_retained(bucket, one, now)
            replaced = [old] if keeps_versions(bucket) else []
            bucket.objects = [*(other for other in bucket.objects if other is not one), *replaced]
            return


def is_live(one: JsonBody) -> bool:
    """Whether this is the live version of an object."""
    return "timeDeleted" not in one


def keeps_versions(bucket: StoredBucket) -> bool:
    """Whether the bucket keeps old versions."""
    return bool(member(bucket.resource, "versioning.enabled"))


def refuse_while_retained(bucket: StoredBucket, one: JsonBody, now: datetime) -> None:
    """Refuses to remove an object before the end of its retention period."""
    period = member(bucket.resource, "retentionPolicy.retentionPeriod")
    if isinstance(period, str):
        until = datetime.fromisoformat(one["timeCreated"]) + timedelta(seconds=int(period))
        if now < until:
            raise api_errors.retained(str(bucket.resource["name"]), one["name"], timestamp(until))


def _new_object(bucket: StoredBucket, call: ServiceCall, generation: str) -> JsonBody:
    name, place = call.query["name"], call.part("bucket")
    one: JsonBody = {
        "bucket": place,
        "contentType": call.content_type or "application/octet-stream",
        "generation": generation,
        "id": f"{place}/{name}/{generation}",
        "kind": "storage#object",
        "md5Hash": base64.b64encode(hashlib.md5(call.media, usedforsecurity=False).digest()).decode(),
        "metageneration": "1",
        "name": name,
        "selfLink": f"{API}/b/{place}/o/{name}",
        "size": str(len(call.media)),
        "storageClass": bucket.resource["storageClass"],
        "timeCreated": timestamp(call.now),
        "updated": timestamp(call.now),
    }
    return {**one, "etag": digest(one)}


def _folder(name: str, prefix: str, delimiter: str) -> str | None:
    head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
    return f"{prefix}{head}{found}" if found else None
