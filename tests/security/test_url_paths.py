"""No name leads a request to another path: it is refused, or is one segment of the URL, as every reader parses it."""

import asyncio
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from setpoint.clients.google.calls import GoogleCall, GoogleService
from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.google.operations import SqlOperation
from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import Discovery
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint, with_query
from setpoint.clients.url_path import quote_object_name, quote_segment
from setpoint.engine.kind import Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.errors import KindNotServed, ManifestInvalid, RemoteRefused, RemoteUnavailable, SetpointError, UserError
from setpoint.kinds.gcp.shared.cloud_sql import is_operation_done, pending_operation
from setpoint.kinds.gcp.sql_database import SqlDatabaseKind
from setpoint.kinds.gcp.sql_instance import SqlInstanceKind
from setpoint.kinds.gcp.sql_user import SqlUserKind
from setpoint.kinds.gcp.storage_bucket import StorageBucketKind
from setpoint.kinds.kubernetes_object.location import parse_object_location
from setpoint.kinds.kubernetes_object.manifest import check_manifest, spec_of
from setpoint.localcloud.cloud import CloudRequest
from tests.clients.loopback_servers import http_server
from tests.clients.scripted_http import ScriptedHttp, response
from tests.localcloud.requests import held_cloud

DOTS: Final = (".", "..", "%2e", "%2E%2e", ".%2e", "%252e%252e", "%25252e.", "../x", "x/..", "a/./b", "..\\x", "a%2f..")
PIECES: Final = st.sampled_from(
    [".", "..", "/", "%", "2e", "%2e", "%2f", "\\", "a", "é", "\x00", "?", "#", ";", "\ud800"]
)
PARTS: Final = st.text() | st.lists(PIECES, max_size=6).map("".join)
BASE: Final = "https://service.example"


def segments_of(url: str) -> set[tuple[str, ...]]:
    """The segments of the path, decoded, as each parser finds them; aiohttp sends the last of these texts."""
    sent = URL(url, encoded=True)
    paths = {urlsplit(url).path, URL(url).raw_path, sent.raw_path, sent.raw_path_qs.partition("?")[0]}
    return {tuple(map(unquote, path.split("/")[1:])) for path in paths}


@pytest.mark.laws
@given(parts=st.lists(PARTS, min_size=1, max_size=4))
@example(parts=["projects", "..", "instances", "victim"])
@example(parts=["projects", "%2e%2e"])
@example(parts=["%" + "25" * 400 + "2e"])
def test_a_google_call_is_refused_or_has_exactly_its_parts(parts: list[str]) -> None:
    call = GoogleCall(GoogleService.SQL, tuple(parts))
    try:
        url = BASE + call.path
    except ManifestInvalid:
        return

    assert segments_of(url) == {("sql", "v1beta4", *parts)}


@pytest.mark.laws
@given(name=PARTS)
def test_the_name_of_an_object_is_one_segment_whatever_slashes_it_has(name: str) -> None:
    try:
        url = BASE + GoogleCall(GoogleService.STORAGE, ("b", "logs", "o"), object_name=name).path
    except ManifestInvalid:
        return

    assert segments_of(url) == {("storage", "v1", "b", "logs", "o", name)}


@pytest.mark.laws
@given(group=PARTS, version=PARTS, plural=PARTS, namespace=st.none() | PARTS, name=st.none() | PARTS, below=PARTS)
@example(group="..", version="v1", plural="secrets", namespace=None, name=None, below="status")
def test_an_endpoint_is_refused_or_has_exactly_its_parts(
    group: str, version: str, plural: str, namespace: str | None, name: str | None, below: str
) -> None:
    try:
        url = BASE + Endpoint(group, version, plural, namespace, name, below).path
    except ManifestInvalid:
        return

    between = () if namespace is None else ("namespaces", namespace)
    start = ("apis", group) if group else ("api",)
    assert segments_of(url) == {(*start, version, *between, plural, *(() if name is None else (name,)), below)}


@pytest.mark.laws
@given(query=st.dictionaries(PARTS, PARTS, max_size=3))
def test_a_query_is_refused_or_read_back_as_it_was_and_leaves_the_path_alone(query: dict[str, str]) -> None:
    try:
        urls = (BASE + with_query("/b", query), BASE + GoogleCall(GoogleService.STORAGE, ("b",), query).path)
    except ManifestInvalid:
        return

    for url in urls:
        assert urlsplit(url).path.endswith("/b")
        assert dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)).items() >= query.items()


@pytest.mark.parametrize("part", [*DOTS, "", "\ud800", "x" * 1025])
def test_what_leads_to_another_path_is_refused(part: str) -> None:
    with pytest.raises(ManifestInvalid, match="cannot be a part of a URL"):
        quote_segment(part)


@pytest.mark.parametrize("part", ["...", "a.b", ".hidden", "..a", "a..", "a/b", "100%", "ann@example.com", "é"])
def test_what_only_looks_like_a_dot_segment_is_not_refused(part: str) -> None:
    assert unquote(quote_segment(part)) == part


def test_the_name_of_an_object_in_a_bucket_may_have_dots_between_slashes() -> None:
    assert quote_object_name("./data/../x") == ".%2Fdata%2F..%2Fx"
    for name in (".", "..", "%2e%2e", ""):
        with pytest.raises(ManifestInvalid):
            quote_object_name(name)


# --- On the wire ------------------------------------------------------------------------------------------------------


def test_the_server_receives_the_path_that_was_quoted() -> None:
    names = ("a/b", "./x/../y", "100%", "%2f", "é", "a?b#c;d")

    async def received() -> list[str]:
        seen: list[str] = []

        async def handler(incoming: web.BaseRequest) -> web.Response:
            seen.append(incoming.raw_path)
            return web.Response(body=b"{}", content_type="application/json")

        async with http_server(handler) as address:
            google = GoogleClient(HttpClient(), GoogleSettings(address, address))
            for name in names:
                await google.get(GoogleCall(GoogleService.STORAGE, ("b", "logs", "o"), object_name=name))
            await google.close()
        return seen

    seen = asyncio.run(received())

    assert [unquote(raw.partition("?")[0].rpartition("/")[2]) for raw in seen] == list(names)


@pytest.mark.parametrize("path", ["/a/../b", "/./a", "/a/%2e%2E/b", "/a/%252e%252e", "/a\\..\\b", "/.."])
def test_no_request_is_sent_to_a_path_with_a_dot_segment_wherever_it_comes_from(path: str) -> None:
    async def send() -> None:
        client = HttpClient()
        try:
            await client.send(HttpRequest("GET", f"http://127.0.0.1:9{path}"))
        finally:
            await client.close()

    with pytest.raises(RemoteRefused, match="was not sent"):
        asyncio.run(send())


# --- Manifests --------------------------------------------------------------------------------------------------------

GOOGLE: Final = GoogleClient(ScriptedHttp(response(200, {})), GoogleSettings())
PROJECT: Final = "cnrm.cloud.google.com/project-id"
KINDS: Final[dict[str, Any]] = {
    "StorageBucket": StorageBucketKind(GOOGLE),
    "SQLInstance": SqlInstanceKind(GOOGLE),
    "SQLDatabase": SqlDatabaseKind(GOOGLE),
    "SQLUser": SqlUserKind(GOOGLE),
}
SPECS: Final[dict[str, dict[str, Any]]] = {
    "StorageBucket": {},
    "SQLInstance": {"settings": {"tier": "db-f1-micro"}},
    "SQLDatabase": {"instanceRef": {"external": "db"}},
    "SQLUser": {"instanceRef": {"external": "db"}},
}


def resource(kind: str, name: str = "good", project: str = "acme", **spec: Any) -> Resource:
    metadata = {"name": name, "namespace": "team", "annotations": {PROJECT: project}}
    tree: dict[str, Any] = {"apiVersion": f"{KINDS[kind].group}/v1beta1", "kind": kind, "metadata": metadata}
    return Resource({**tree, "spec": {**SPECS[kind], **spec}})


def locate(one: Resource) -> Location:
    kind = KINDS[one.ref.kind]
    kind.check(one)
    return Location(kind.locate(one, ResolvedReferences()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DOTS)
def test_no_kind_takes_a_dot_segment_as_the_name_of_its_object(kind: str, name: str) -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.resourceID"):
        locate(resource(kind, resourceID=name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("project", [*DOTS, "Acme", "a b", "a/b", "a\x1b[2J"])
def test_no_kind_takes_a_dot_segment_as_its_project(kind: str, project: str) -> None:
    with pytest.raises(ManifestInvalid, match="project-id"):
        locate(resource(kind, project=project))


@pytest.mark.parametrize("external", [*DOTS, "projects/../instances/db", "projects/acme/instances/..", "a b", "Db"])
def test_the_instance_of_a_user_or_database_is_no_dot_segment(external: str) -> None:
    for kind in ("SQLUser", "SQLDatabase"):
        with pytest.raises(ManifestInvalid, match=r"spec\.instanceRef\.external"):
            locate(resource(kind, instanceRef={"external": external}))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("StorageBucket", "Logs"),
        ("StorageBucket", "a..b"),
        ("StorageBucket", "-a"),
        ("StorageBucket", "a/b"),
        ("StorageBucket", "a" * 223),
        ("SQLInstance", "1db"),
        ("SQLInstance", "a.b"),
        ("SQLInstance", "a_b"),
        ("SQLUser", "ann\x1b[2J"),
        ("SQLDatabase", "app\x00"),
    ],
)
def test_names_are_held_to_the_rules_of_their_service(kind: str, name: str) -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.resourceID"):
        locate(resource(kind, resourceID=name))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("StorageBucket", "www.example.com"),
        ("StorageBucket", "a_b-c.d"),
        ("SQLInstance", "db-1"),
        ("SQLUser", "ann@example.com"),
        ("SQLUser", "o'neil (test)/x"),
        ("SQLDatabase", "my database/2"),
        ("SQLDatabase", "Ünïcode"),
    ],
)
def test_names_that_their_service_takes_are_taken(kind: str, name: str) -> None:
    assert unquote(locate(resource(kind, resourceID=name)).rpartition("s/")[2]).endswith(name.rpartition("s/")[2])


def test_a_project_may_have_a_domain() -> None:
    assert locate(resource("StorageBucket", project="example.com:acme")) == "projects/example.com:acme/buckets/good"


@pytest.mark.parametrize("host", ["..", "%2e%2e", "a\x1bb"])
def test_the_host_of_a_user_is_no_dot_segment(host: str) -> None:
    with pytest.raises(ManifestInvalid, match=r"spec\.host"):
        locate(resource("SQLUser", host=host))


@pytest.mark.parametrize("api_version", ["../v1", "./v1", "..", "-/v1", "a../v1", "%2e%2e/v1", "apps/v1/../v2"])
def test_the_api_version_of_an_object_is_no_dot_segment(api_version: str) -> None:
    manifest: Any = {"apiVersion": api_version, "kind": "Secret", "metadata": {"name": "x"}}
    metadata = {"name": "x", "namespace": "team"}
    tree: dict[str, Any] = {"apiVersion": "setpoint.dev/v1alpha1", "kind": "KubernetesObject", "metadata": metadata}
    one = Resource({**tree, "spec": {"manifest": manifest}})

    with pytest.raises(ManifestInvalid, match="apiVersion"):
        check_manifest(one, spec_of(one))


# --- What a status or a service names -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("location", ["", "..", "projects/../..", "projects/acme", "x\x1b[2J"])
def test_a_location_in_a_status_that_is_none_is_an_error_of_ours(kind: str, location: str) -> None:
    with pytest.raises(UserError, match="location on record"):
        asyncio.run(KINDS[kind].observe(Location(location)))


def test_a_location_with_dot_segments_in_a_status_is_refused() -> None:
    for kind, location in (
        ("StorageBucket", "projects/acme/buckets/.."),
        ("SQLInstance", "projects/../instances/db"),
        ("SQLDatabase", "projects/acme/instances/db/databases/../../victim/databases/app"),
        ("SQLUser", "projects/acme/instances/../users/ann"),
    ):
        with pytest.raises(SetpointError, match="cannot be a part of a URL"):
            asyncio.run(KINDS[kind].observe(Location(location)))


def test_the_location_of_an_object_in_a_status_that_is_none_is_an_error_of_ours() -> None:
    with pytest.raises(UserError, match="location on record"):
        parse_object_location("..")


@pytest.mark.parametrize("name", ["..", "a/b", "../../instances/victim", "", "%2e%2e"])
def test_the_operation_that_a_service_names_is_a_name(name: str) -> None:
    with pytest.raises(RemoteUnavailable, match="no name of an operation"):
        pending_operation(SqlOperation(name, "PENDING"), "acme")


@pytest.mark.parametrize("text", ["projects/acme/instances/victim", "projects/acme/operations/..", "..", "a/b/c/d/e"])
def test_an_operation_in_a_status_that_is_none_is_over_and_not_asked_for(text: str) -> None:
    http = ScriptedHttp(response(200, {"name": "x", "status": "PENDING"}))

    assert asyncio.run(is_operation_done(text, GoogleClient(http, GoogleSettings()))) is True
    assert http.requests == []


class DiscoveryServer(HttpClient):
    """An API server that serves one kind under any plural, in any group."""

    def __init__(self, documents: dict[str, Any]) -> None:
        super().__init__()
        self.documents, self.paths = documents, list[str]()

    async def send(self, request: HttpRequest) -> HttpResponse:
        path = urlsplit(request.url).path
        self.paths.append(path)
        body = msgspec.json.encode(self.documents.get(path, {"resources": []}))
        return HttpResponse(200, {"Content-Type": "application/json"}, body)


@pytest.mark.parametrize("plural", ["..", ".", "../secrets", "%2e%2e", "secrets?x=", ""])
def test_a_kind_whose_plural_is_no_name_is_not_served(plural: str) -> None:
    listed = [{"name": plural, "kind": "Widget", "namespaced": True}, {"name": "gadgets", "kind": "Gadget"}]
    http = DiscoveryServer({"/apis/example.com/v1": {"resources": listed}})
    discovery = Discovery(KubernetesClient(ClusterConnection("hostile", "https://cluster"), http=http))

    assert asyncio.run(discovery.find("example.com/v1", "Gadget")).plural == "gadgets"
    with pytest.raises(KindNotServed):
        asyncio.run(discovery.find("example.com/v1", "Widget"))


def test_groups_and_versions_that_are_no_names_are_not_asked_for() -> None:
    groups = [{"versions": [{"groupVersion": f"{group}/v1"}]} for group in ("..", "good.example", "a/..", "")]
    http = DiscoveryServer({"/api": {"versions": ["v1", ".."]}, "/apis": {"groups": groups}})
    discovery = Discovery(KubernetesClient(ClusterConnection("hostile", "https://cluster"), http=http))

    asyncio.run(discovery.all_resources())

    assert http.paths == ["/api", "/api/v1", "/apis", "/apis/good.example/v1"]


@pytest.mark.parametrize("api_version", ["../v1", "..", "a/../v1", "%2e%2e/v1"])
def test_discovery_asks_for_no_version_that_is_a_dot_segment(api_version: str) -> None:
    http = DiscoveryServer({})
    discovery = Discovery(KubernetesClient(ClusterConnection("hostile", "https://cluster"), http=http))

    with pytest.raises(ManifestInvalid):
        asyncio.run(discovery.find(api_version, "Secret"))
    assert http.paths == []


@pytest.mark.parametrize("path", ["/storage/v1/b/..", "/storage/v1/b/%2e%2e/o", "/sql/v1beta4/projects/./instances"])
def test_the_local_cloud_resolves_no_dot_segment(path: str) -> None:
    answer = held_cloud().handle(CloudRequest("GET", path, {}, b"", ""))

    assert answer is not None
    assert answer.status == 400
