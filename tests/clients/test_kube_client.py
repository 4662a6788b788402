"""The client of an API server: requests, responses, lists, the retry after a 401, and rate limiting."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient, ObjectPage
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import (
    ApiWriteOptions,
    DeleteOptions,
    DeletePropagation,
    Endpoint,
    FieldValidation,
    ObjectSelector,
    PageRequest,
    PatchType,
    Representation,
)
from setpoint.errors import Bug, ManifestInvalid, RemoteConflict, RemoteExpired, RemoteRefused, RemoteUnavailable
from tests.clients.fake_api_server import FakeCredentials
from tests.clients.manual_time import run
from tests.clients.scripted_http import ScriptedHttp
from tests.clients.scripted_http import response as any_response

PODS = Endpoint("", "v1", "pods", "shop")
POD = PODS.named("web")
DEPLOYMENTS = Endpoint("apps", "v1", "deployments")
CONNECTION = ClusterConnection("context prod", "https://a.test")


def response(status: int, body: object = None, **headers: str) -> HttpResponse:
    return any_response(status, body, Content_Type="application/json", **headers)


def error_response(status: int, reason: str, **details: object) -> HttpResponse:
    status_body = {"kind": "Status", "code": status, "reason": reason, "message": "No.", "details": details}
    return response(status, status_body)


def client(http: HttpClient, tokens: FakeCredentials | None = None) -> KubernetesClient:
    return KubernetesClient(CONNECTION, tokens or FakeCredentials(), http)


def sent(
    call: Callable[[KubernetesClient], Coroutine[Any, Any, object]], answer: HttpResponse | None = None
) -> HttpRequest:
    """The one request that a call sends."""
    http = ScriptedHttp(answer or response(200, {"metadata": {}}))
    asyncio.run(call(client(http)))
    (request,) = http.requests
    return request


# --- Paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        (PODS, "/api/v1/namespaces/shop/pods"),
        (POD, "/api/v1/namespaces/shop/pods/web"),
        (POD.status, "/api/v1/namespaces/shop/pods/web/status"),
        (DEPLOYMENTS, "/apis/apps/v1/deployments"),
        (DEPLOYMENTS.named("web", "shop"), "/apis/apps/v1/namespaces/shop/deployments/web"),
        (Endpoint("", "v1", "namespaces", None, "shop"), "/api/v1/namespaces/shop"),
        (Endpoint("a.io", "v1", "roles", None, "system:a?b"), "/apis/a.io/v1/roles/system%3Aa%3Fb"),
    ],
)
def test_the_path_of_an_endpoint(endpoint: Endpoint, path: str) -> None:
    assert endpoint.path == path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a/../b"])
def test_a_name_that_would_change_the_path_is_refused(name: str) -> None:
    with pytest.raises(ManifestInvalid, match="cannot be the name of an object: write letters"):
        PODS.named(name)
    with pytest.raises(ManifestInvalid):
        Endpoint("", "v1", "pods", name)


@pytest.mark.parametrize("verb", ["get", "delete", "replace", "patch", "apply"])
def test_calls_on_one_object_need_a_name(verb: str) -> None:
    http = ScriptedHttp(response(200, {}))
    calls = {
        "get": lambda one: one.get(PODS),
        "delete": lambda one: one.delete(PODS),
        "replace": lambda one: one.replace(PODS, {}),
        "patch": lambda one: one.patch(PODS, {}, PatchType.MERGE),
        "apply": lambda one: one.apply(PODS, {}),
    }

    with pytest.raises(Bug, match="/api/v1/namespaces/shop/pods has no name: one object was meant"):
        asyncio.run(calls[verb](client(http)))
    assert http.requests == []


def test_the_address_of_the_server_may_have_a_path() -> None:
    http = ScriptedHttp(response(200, {}))
    one = KubernetesClient(ClusterConnection("context prod", "https://a.test/k8s/c-1"), FakeCredentials(), http)

    asyncio.run(one.get(POD))

    assert http.requests[0].url == "https://a.test/k8s/c-1/api/v1/namespaces/shop/pods/web"


# --- Requests ---------------------------------------------------------------------------------------------------------


def test_reads_an_object_or_its_metadata_from_the_store_or_from_the_cache() -> None:
    whole = sent(lambda one: one.get(POD))
    part = sent(lambda one: one.get(POD, Representation.METADATA, cached=True))

    assert (whole.method, whole.url) == ("GET", "https://a.test/api/v1/namespaces/shop/pods/web")
    assert (whole.headers["Accept"], whole.headers["Authorization"]) == ("application/json", "Bearer t0")
    assert part.url == "https://a.test/api/v1/namespaces/shop/pods/web?resourceVersion=0"
    assert part.headers["Accept"] == ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")


def test_a_list_sends_selectors_and_page() -> None:
    selection = ObjectSelector("app=web,tier!=db", "metadata.name=web", Representation.METADATA)

    request = sent(lambda one: one.list(PODS, selection, PageRequest(2, "token")))

    assert request.url == (
        "https://a.test/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb%2Ctier%21%3Ddb"
        "&fieldSelector=metadata.name%3Dweb&limit=2&continue=token"
    )
    assert request.headers["Accept"] == (
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    )


def test_a_list_may_come_from_the_cache_of_the_server() -> None:
    request = sent(lambda one: one.list(DEPLOYMENTS, paging=PageRequest(0, resource_version="0")))

    assert request.url == "https://a.test/apis/apps/v1/deployments?resourceVersion=0"


@pytest.mark.parametrize(
    ("call", "method", "path", "content_type"),
    [
        (lambda one: one.create(POD, {"a": 1}), "POST", "/api/v1/namespaces/shop/pods", "application/json"),
        (lambda one: one.replace(POD, Raw(b'{"a":1}')), "PUT", "/api/v1/namespaces/shop/pods/web", "application/json"),
        (
            lambda one: one.patch(POD.status, {"a": 1}, PatchType.MERGE),
            "PATCH",
            "/api/v1/namespaces/shop/pods/web/status",
            "application/merge-patch+json",
        ),
        (
            lambda one: one.apply(POD, {"a": 1}),
            "PATCH",
            "/api/v1/namespaces/shop/pods/web",
            "application/apply-patch+yaml",
        ),
    ],
)
def test_writes_json(call: Callable[..., Any], method: str, path: str, content_type: str) -> None:
    request = sent(call)

    assert (request.method, request.headers["Content-Type"], request.body) == (method, content_type, b'{"a":1}')
    assert request.url == f"https://a.test{path}?fieldManager=setpoint&fieldValidation=Strict"


def test_a_write_sends_field_manager_validation_and_dry_run() -> None:
    options = ApiWriteOptions("me", dry_run=True, field_validation=FieldValidation.IGNORE)

    request = sent(lambda one: one.apply(POD, {}, options, force=True))

    assert request.url.partition("?")[2] == "fieldManager=me&fieldValidation=Ignore&dryRun=All&force=true"


def test_a_json_patch_is_a_list() -> None:
    patch = [{"op": "remove", "path": "/a"}]

    request = sent(lambda one: one.patch(POD, patch, PatchType.JSON))

    assert (request.headers["Content-Type"], request.body) == (
        "application/json-patch+json",
        b'[{"op":"remove","path":"/a"}]',
    )


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (None, b'{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}'),
        (
            DeleteOptions("u", "7", DeletePropagation.FOREGROUND, dry_run=True),
            b'{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground",'
            b'"preconditions":{"uid":"u","resourceVersion":"7"},"dryRun":["All"]}',
        ),
    ],
)
def test_a_deletion_sends_its_preconditions(options: DeleteOptions | None, body: bytes) -> None:
    request = sent(lambda one: one.delete(POD, options))

    assert (request.method, request.body) == ("DELETE", body)
    assert request.url == "https://a.test/api/v1/namespaces/shop/pods/web"


# --- Responses and lists ----------------------------------------------------------------------------------------------


def test_returns_the_bytes_of_the_response() -> None:
    assert asyncio.run(client(ScriptedHttp(response(200, {"a": 1}))).get(POD)) == b'{"a":1}'


def test_a_missing_object_is_none_for_get_and_delete_and_a_conflict_for_patch() -> None:
    def gone() -> KubernetesClient:
        return client(ScriptedHttp(error_response(404, "NotFound", name="web", kind="pods")))

    assert asyncio.run(gone().get(POD)) is None
    assert asyncio.run(gone().delete(POD)) is None
    with pytest.raises(RemoteConflict):
        asyncio.run(gone().patch(POD, {}, PatchType.MERGE))


def test_a_response_that_is_not_json_is_unavailable() -> None:
    page = HttpResponse(200, {"Content-Type": "text/html"}, b"<html>Please log in")

    with pytest.raises(
        RemoteUnavailable, match="GET /api/v1/namespaces/shop/pods/web: the answer is not what it should"
    ):
        asyncio.run(client(ScriptedHttp(page)).get(POD))


def listing(names: list[str], token: str = "", version: str = "7") -> HttpResponse:
    return response(
        200, {"metadata": {"resourceVersion": version, "continue": token}, "items": [{"n": n} for n in names]}
    )


async def all_pages(http: HttpClient, size: int = 500) -> list[ObjectPage]:
    return [page async for page in client(http).pages(PODS, size=size)]


def test_the_objects_of_a_page_stay_bytes() -> None:
    page = asyncio.run(client(ScriptedHttp(listing(["a", "b"]))).list(PODS))

    assert [bytes(item) for item in page.items] == [b'{"n":"a"}', b'{"n":"b"}']
    assert (page.resource_version, page.token, page.is_first) == ("7", "", True)


def test_an_empty_list_may_have_no_items() -> None:
    page = asyncio.run(
        client(ScriptedHttp(response(200, {"metadata": {"resourceVersion": "7"}, "items": None}))).list(PODS)
    )

    assert page == ObjectPage((), "7", "", is_first=True, size=500)


def test_an_invalid_list_is_unavailable() -> None:
    with pytest.raises(RemoteUnavailable, match="the answer is not what it should be"):
        asyncio.run(client(ScriptedHttp(response(200, {"items": 1}))).list(PODS))


def test_pages_follow_the_continue_token() -> None:
    http = ScriptedHttp(listing(["a"], "t1"), listing(["b"], "t2"), listing(["c"]))

    pages = asyncio.run(all_pages(http, 1))

    assert [(bytes(page.items[0]), page.is_first) for page in pages] == [
        (b'{"n":"a"}', True),
        (b'{"n":"b"}', False),
        (b'{"n":"c"}', False),
    ]
    assert [one.url.partition("?")[2] for one in http.requests] == [
        "limit=1",
        "limit=1&continue=t1",
        "limit=1&continue=t2",
    ]


def test_an_expired_continue_token_restarts_the_list_on_one_page() -> None:
    http = ScriptedHttp(listing(["a"], "t1"), error_response(410, "Expired"), listing(["a", "b"], version="9"))

    pages = asyncio.run(all_pages(http, 1))

    assert [(len(page.items), page.resource_version, page.is_first) for page in pages] == [
        (1, "7", True),
        (2, "9", True),
    ]
    assert http.requests[2].url == "https://a.test/api/v1/namespaces/shop/pods"


def test_an_expired_continue_token_of_one_page_is_raised() -> None:
    with pytest.raises(RemoteExpired):
        asyncio.run(client(ScriptedHttp(error_response(410, "Expired"))).list(PODS, paging=PageRequest(1, "t")))


# --- The retry after a 401 --------------------------------------------------------------------------------------------


def test_a_refused_token_is_replaced_once() -> None:
    http = ScriptedHttp(error_response(401, "Unauthorized"), response(200, {}))

    asyncio.run(client(http).get(POD))

    assert [one.headers["Authorization"] for one in http.requests] == ["Bearer t0", "Bearer t1"]


def test_a_second_401_is_raised() -> None:
    http = ScriptedHttp(error_response(401, "Unauthorized"))

    with pytest.raises(RemoteRefused, match="log in again, or use another context"):
        asyncio.run(client(http).get(POD))
    assert len(http.requests) == 2


def test_without_another_token_a_401_is_not_retried() -> None:
    http = ScriptedHttp(error_response(401, "Unauthorized"))

    with pytest.raises(RemoteRefused):
        asyncio.run(client(http, FakeCredentials(left=0)).get(POD))
    assert len(http.requests) == 1


# --- Rate limiting ----------------------------------------------------------------------------------------------------


def test_retry_after_pauses_all_calls() -> None:
    http = ScriptedHttp(error_response(429, "TooManyRequests", retryAfterSeconds=3), response(200, {}))

    async def main() -> tuple[float | None, float]:
        one = client(http)
        with pytest.raises(RemoteUnavailable) as caught:
            await one.get(POD)
        await one.get(POD)
        return caught.value.after, asyncio.get_running_loop().time()

    assert run(main()) == (3.0, 3.0)


def test_reads_and_writes_have_budgets_of_their_own() -> None:
    async def main() -> dict[str, int]:
        one = client(ScriptedHttp(response(200, {})))
        await one.get(POD)
        await one.create(POD, {})
        await one.delete(POD)
        return {budget.key.quota: budget.calls for budget in one.budgets.snapshot().budgets}

    assert run(main()) == {"reads": 1, "writes": 2}


# --- Headers, which are made once for writes of one sort --------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["", "ann", "bob"]), st.sampled_from(list(PatchType)), st.booleans())))
def test_every_write_has_the_identity_of_its_own_client_and_the_newest_token(
    writes: list[tuple[str, PatchType, bool]],
) -> None:
    http, tokens = ScriptedHttp(response(200, {"metadata": {}})), FakeCredentials(left=100)
    own = KubernetesClient(CONNECTION, tokens, http)
    expected: list[tuple[str, str, str]] = []

    async def main() -> None:
        for user, patch_type, is_renewed in writes:
            if is_renewed:
                await tokens.identity(tokens.held)
            # A copy of a client that has sent something already.
            await (own.acting_as(user) if user else own).patch(POD, {}, patch_type)
            expected.append((tokens.held.headers["Authorization"], user, patch_type.value))

    asyncio.run(main())
    names = ("Authorization", "Impersonate-User", "Content-Type")
    assert [tuple(one.headers.get(name, "") for name in names) for one in http.requests] == expected
