"""The methods of the Cloud Storage JSON API, v1, that the local cloud has."""

from typing import Final

from setpoint.localcloud.bucket_state import CloudStorage
from setpoint.localcloud.buckets import (
    delete_bucket,
    get_bucket,
    insert_bucket,
    list_buckets,
    lock_retention_policy,
    patch_bucket,
)
from setpoint.localcloud.objects import delete_object, get_object, insert_object, list_objects
from setpoint.localcloud.routes import Answer, Call, Route, dispatch

_PRECONDITIONS: Final = frozenset({"ifMetagenerationMatch", "ifMetagenerationNotMatch"})
_SHOWN: Final = frozenset({"projection"})
_PAGES: Final = frozenset({"maxResults", "pageToken", "prefix"})
_VERSION: Final = _PRECONDITIONS | {"generation"}

_BUCKET: Final = "/b/{bucket}"
_OBJECTS: Final = f"{_BUCKET}/o"
_OBJECT: Final = f"{_OBJECTS}/{{object}}"

ROUTES: Final[tuple[Route[CloudStorage], ...]] = (
    Route("GET", "/b", list_buckets, _PAGES | _SHOWN | {"project"}),
    Route("POST", "/b", insert_bucket, _SHOWN | {"project"}),
    Route("GET", _BUCKET, get_bucket, _PRECONDITIONS | _SHOWN),
    Route("PATCH", _BUCKET, patch_bucket, _PRECONDITIONS | _SHOWN),
    Route("DELETE", _BUCKET, delete_bucket, _PRECONDITIONS),
    Route("POST", f"{_BUCKET}/lockRetentionPolicy", lock_retention_policy, frozenset({"ifMetagenerationMatch"})),
    Route("GET", _OBJECTS, list_objects, _PAGES | _SHOWN | {"delimiter", "versions"}),
    Route("GET", _OBJECT, get_object, _VERSION | _SHOWN),
    Route("DELETE", _OBJECT, delete_object, _VERSION),
    Route("POST", f"/upload{_OBJECTS}", insert_object, frozenset({"name"})),
)


def answer(storage: CloudStorage, call: Call) -> Answer:
    """The answer of the service to one request."""
    return dispatch(ROUTES, storage, call)
