"""Rare responses of a service, and the errors that they become."""

import asyncio
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest

from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpResponse
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import AnyKind, Location, Present, RemoteOperation, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import RemoteConflict, RemoteRefused, RemoteUnavailable, SetpointError
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.storage_bucket import StorageBucket, StorageBucketKind
from tests.clients.scripted_http import ScriptedHttp, error_response, response
from tests.kinds.effective_states import effective_over
from tests.kinds.kind_harness import bucket, database

BUCKET = Location("projects/p/buckets/some-bucket")
DATABASE = Location("projects/p/instances/main/databases/some-database")
ABSENT = error_response(404, "notFound")
TAKEN = error_response(409, "conflict")


def google(*answers: HttpResponse) -> GoogleClient:
    return GoogleClient(ScriptedHttp(*answers), GoogleSettings(), AnonymousCredentials())


@pytest.mark.parametrize("body", [b"", b"<html>welcome</html>", b"[]", b"{}", b'{"name": 7}', b'{"name": "\xff"}'])
@pytest.mark.parametrize(("kind", "place"), [(StorageBucketKind, BUCKET), (SqlDatabaseKind, DATABASE)])
def test_a_response_that_is_no_object_is_neither_absent_nor_present(
    kind: Callable[[GoogleClient], AnyKind], place: Location, body: bytes
) -> None:
    observing = kind(google(HttpResponse(200, {}, body))).observe(place)

    with pytest.raises(RemoteUnavailable, match="the answer is not what it should be"):
        asyncio.run(observing)


@pytest.mark.parametrize(
    ("after", "error"), [(ABSENT, RemoteRefused), (response(200, {"name": "some-bucket"}), RemoteConflict)]
)
@pytest.mark.parametrize("kind", [StorageBucketKind, SqlDatabaseKind])
def test_a_conflict_about_a_name_is_observed_again(
    kind: Callable[[GoogleClient], AnyKind], after: HttpResponse, error: type[SetpointError]
) -> None:
    manifest = bucket({}) if kind is StorageBucketKind else database({"instanceRef": {"external": "main"}})
    one = kind(google(TAKEN, after))
    intent = intent_of(Resource(manifest), one, ResolvedReferences())

    with pytest.raises(error):
        asyncio.run(one.create(intent, effective_over(one, intent).tree))


def test_an_expired_operation_is_done() -> None:
    assert asyncio.run(SqlDatabaseKind(google(ABSENT)).poll(RemoteOperation("projects/p/operations/o")))


def test_an_empty_first_page_does_not_mean_an_empty_bucket() -> None:
    pages = [response(200, {"nextPageToken": "next"}), response(200, {"items": [{"name": "a", "generation": "1"}]})]
    http = ScriptedHttp(*pages)
    kind = StorageBucketKind(GoogleClient(http, GoogleSettings(), AnonymousCredentials()))

    with pytest.raises(RemoteRefused, match="is not empty: it holds 'a'"):
        asyncio.run(kind.delete(BUCKET, Present(StorageBucket(name="some-bucket")), Resource(bucket({}))))

    asked = [dict(parse_qsl(urlsplit(request.url).query)).get("pageToken") for request in http.requests]
    assert asked == [None, "next"]


def test_a_bucket_whose_contents_cannot_be_read_is_not_deleted() -> None:
    http = ScriptedHttp(response(200, {"items": 7}))
    kind = StorageBucketKind(GoogleClient(http, GoogleSettings(), AnonymousCredentials()))

    with pytest.raises(RemoteUnavailable):
        asyncio.run(kind.delete(BUCKET, Present(StorageBucket(name="some-bucket")), Resource(bucket({}))))

    assert [request.method for request in http.requests] == ["GET"]
