"""Rare responses about users, and the errors that they become."""

import asyncio
from typing import Any

import pytest

from setpoint.clients.google.client import AnonymousCredentials, GoogleClient, GoogleSettings
from setpoint.clients.http import HttpResponse
from setpoint.core.decide import Decision
from setpoint.core.plan import plan_fields
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Absent, Location, Present, RemoteOperation, ResolvedReferences, Unchanged
from setpoint.engine.resource import Resource
from setpoint.errors import OperationRunning, RemoteConflict, RemoteRefused, RemoteUnavailable, SetpointError
from setpoint.kinds.gcp.sql_user import SqlUser, SqlUserKind
from tests.clients.scripted_http import ScriptedHttp, error_response, response
from tests.kinds.effective_states import effective_over
from tests.kinds.test_sql_user import EXTERNAL, user

PLACE = Location("projects/p/instances/main/users/some-user")
FROM_ONE_HOST = Location("projects/p/instances/main/users/some-user?host=10.0.0.1")
ABSENT = error_response(404, "instanceDoesNotExist")


def kind(*answers: HttpResponse) -> SqlUserKind:
    return SqlUserKind(GoogleClient(ScriptedHttp(*answers), GoogleSettings(), AnonymousCredentials()))


def listing(*users: dict[str, Any]) -> HttpResponse:
    return response(200, {"kind": "sql#usersList", **({"items": list(users)} if users else {})})


def operation(status: str, **more: Any) -> HttpResponse:
    return response(200, {"name": "o", "status": status, "operationType": "UPDATE_USER", "targetId": "main", **more})


# --- Observation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>welcome</html>", b"[]", b"{}", b'{"items": []}', b'{"kind": "sql#instancesList"}', b'{"items": 7}'],
)
def test_a_response_that_is_no_list_proves_no_absence(body: bytes) -> None:
    observing = kind(HttpResponse(200, {}, body)).observe(PLACE)

    with pytest.raises(RemoteUnavailable, match="the answer is not what it should be"):
        asyncio.run(observing)


@pytest.mark.parametrize(
    "answer",
    [
        ABSENT,
        listing(),
        listing({"name": "somebody"}, {"host": "%"}, {"name": "some-use"}, {"name": "Some-User", "host": "%"}),
        listing({"name": "some-user", "host": "10.0.0.1"}),
    ],
    ids=["no instance", "no user", "other users", "another host"],
)
def test_a_user_that_is_not_listed_is_absent(answer: HttpResponse) -> None:
    assert asyncio.run(kind(answer).observe(PLACE)) == Absent()


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503])
def test_an_error_response_proves_no_absence(status: int) -> None:
    with pytest.raises(SetpointError):
        asyncio.run(kind(error_response(status, "backendError")).observe(PLACE))


@pytest.mark.parametrize(
    ("place", "hosts", "found"),
    [
        (PLACE, ["10.0.0.1", "", "%"], "%"),
        (PLACE, ["10.0.0.1", ""], ""),
        (FROM_ONE_HOST, ["", "%", "10.0.0.1"], "10.0.0.1"),
        (FROM_ONE_HOST, ["%", ""], ""),
    ],
)
def test_an_entry_without_a_host_matches_when_no_other_does(place: Location, hosts: list[str], found: str) -> None:
    users = [{"name": "some-user", "host": host} if host else {"name": "some-user"} for host in hosts]
    observation = asyncio.run(kind(listing(*users)).observe(place))

    assert isinstance(observation, Present)
    assert observation.live == SqlUser("some-user", found)


@pytest.mark.parametrize(
    ("listed", "is_meant"),
    [
        ({"name": "ann@example.com", "type": "CLOUD_IAM_USER"}, True),
        ({"name": "ann", "type": "CLOUD_IAM_USER", "iamEmail": "ann@example.com"}, True),
        ({"name": "ann", "type": "CLOUD_IAM_USER"}, True),
        ({"name": "ann", "type": "CLOUD_IAM_USER", "iamEmail": "ann@corp.example"}, False),
        ({"name": "ann"}, False),
        ({"name": "ann", "type": "BUILT_IN"}, False),
    ],
)
def test_an_iam_user_is_found_by_its_email_address(listed: dict[str, str], is_meant: bool) -> None:
    place = Location("projects/p/instances/main/users/ann%40example.com")

    assert isinstance(asyncio.run(kind(listing({**listed, "host": "%"})).observe(place)), Present) is is_meant


def test_the_digest_of_a_user_does_not_depend_on_the_rest_of_the_list() -> None:
    me, rest = {"name": "some-user", "host": "%"}, ({"name": "a"}, {"name": "b"})
    one = kind(listing(me), listing(*rest, me), listing({**me, "etag": "2"}))

    async def observe_twice() -> Any:
        first = await one.observe(PLACE)
        assert isinstance(first, Present)
        return [await one.observe(PLACE, first.body), await one.observe(PLACE, first.body)]

    same, moved = asyncio.run(observe_twice())

    assert same == Unchanged()
    assert isinstance(moved, Present)


# --- Writes ----------------------------------------------------------------------------------------------------------


def updating(one: SqlUserKind) -> RemoteOperation | None:
    """The result of an update that sets a policy."""
    intent = intent_of(
        Resource(user({**EXTERNAL, "passwordPolicy": {"allowedFailedAttempts": 3}})), one, ResolvedReferences()
    )
    before = Present(SqlUser("some-user", "%"))
    view = one.view(before.live)
    (write,) = plan_fields(Decision.FIRST_LOOK, intent.declared, view).writes
    return asyncio.run(one.update(intent, effective_over(one, intent, view).tree, write, before))


def test_an_operation_that_is_not_done_is_waited_for() -> None:
    one = kind(operation("PENDING"), operation("RUNNING"), operation("DONE"))

    waiting = updating(one)

    assert waiting == RemoteOperation("projects/some-project/operations/o")
    assert not asyncio.run(one.poll(waiting))
    assert asyncio.run(one.poll(waiting))


def test_an_operation_that_failed_later_is_a_refusal() -> None:
    failed = {"errors": [{"code": "ERROR_RDBMS", "message": "No such role."}]}
    one = kind(operation("PENDING"), operation("DONE", error=failed))
    waiting = updating(one)
    assert waiting is not None

    with pytest.raises(RemoteRefused, match="operation UPDATE_USER on main failed: ERROR_RDBMS: No such role"):
        asyncio.run(one.poll(waiting))


def test_an_expired_operation_is_done() -> None:
    assert asyncio.run(kind(ABSENT).poll(RemoteOperation("projects/p/operations/o")))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_response(409, "operationInProgress"), OperationRunning),
        (error_response(404, "notFound"), RemoteConflict),
        (error_response(400, "invalid"), RemoteRefused),
        (error_response(503, "backendError"), RemoteUnavailable),
    ],
)
def test_the_response_to_an_update_decides_the_error(answer: HttpResponse, error: type[SetpointError]) -> None:
    with pytest.raises(error):
        updating(kind(answer))


@pytest.mark.parametrize(
    ("after", "error"), [(listing(), RemoteRefused), (listing({"name": "some-user"}), RemoteConflict)]
)
def test_a_conflict_about_a_name_is_observed_again(after: HttpResponse, error: type[SetpointError]) -> None:
    one = kind(error_response(409, "alreadyExists"), after)
    intent = intent_of(Resource(user(EXTERNAL)), one, ResolvedReferences())

    with pytest.raises(error):
        asyncio.run(one.create(intent, effective_over(one, intent).tree))


def test_deleting_a_user_that_is_gone_succeeds() -> None:
    gone = kind(error_response(404, "notFound")).delete(PLACE, Present(SqlUser("some-user")), Resource(user(EXTERNAL)))

    assert asyncio.run(gone) is None


@pytest.mark.parametrize(
    ("place", "declared_host", "live_host", "query"),
    [
        (FROM_ONE_HOST, "10.0.0.1", "", "host=10.0.0.1&name=some-user"),
        (PLACE, "%", "%", "host=%25&name=some-user"),
        (PLACE, None, "%", "host=%25&name=some-user"),
        (PLACE, None, "", "name=some-user"),
        # A change of the location is refused: the recorded user is deleted.
        (PLACE, "10.0.0.1", "%", "host=%25&name=some-user"),
    ],
)
def test_requests_select_the_recorded_user(
    place: Location, declared_host: str | None, live_host: str, query: str
) -> None:
    http = ScriptedHttp(error_response(404, "notFound"))
    one = SqlUserKind(GoogleClient(http, GoogleSettings(), AnonymousCredentials()))
    resource = Resource(user({**EXTERNAL, "host": declared_host}))

    asyncio.run(one.delete(place, Present(SqlUser("some-user", live_host)), resource))

    assert [request.url.partition("/users?")[2] for request in http.requests] == [f"{query}&alt=json&prettyPrint=false"]


@pytest.mark.parametrize(
    ("version", "asked"), [("MYSQL_8_0", "host=%25&name=some-user"), ("POSTGRES_16", "name=some-user")]
)
def test_the_wildcard_host_is_sent_only_to_engines_with_hosts(version: str, asked: str) -> None:
    http = ScriptedHttp(response(200, {"databaseVersion": version}), error_response(404, "notFound"))
    one = SqlUserKind(GoogleClient(http, GoogleSettings(), AnonymousCredentials()))
    resource = Resource(user({**EXTERNAL, "host": "%"}))

    asyncio.run(one.delete(PLACE, Present(SqlUser("some-user", "")), resource))

    assert http.requests[-1].url.partition("/users?")[2] == f"{asked}&alt=json&prettyPrint=false"


def test_a_user_that_exists_without_the_declared_host_is_reported() -> None:
    one = kind(error_response(404, "notFound"))
    resource = Resource(user({**EXTERNAL, "host": "10.0.0.1", "passwordPolicy": {"allowedFailedAttempts": 3}}))
    intent, before = intent_of(resource, one, ResolvedReferences()), Present(SqlUser("some-user"))
    (write,) = plan_fields(Decision.FIRST_LOOK, intent.declared, one.view(before.live)).writes

    with pytest.raises(RemoteRefused, match=r"The user is there without a host: leave spec\.host out"):
        asyncio.run(one.update(intent, effective_over(one, intent, one.view(before.live)).tree, write, before))
