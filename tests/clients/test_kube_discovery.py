"""API discovery: cached, and asked again while a kind is missing."""

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from setpoint.clients.http import HttpClient, HttpRequest, HttpResponse
from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.discovery import ApiResource, Discovery
from setpoint.clients.kubernetes.kubeconfig import ClusterConnection
from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.errors import KindNotServed, RemoteUnavailable

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

DEPLOYMENT = ApiResource(
    "apps", "v1", "Deployment", "deployments", True, frozenset({"get", "list"}), frozenset({"scale", "status"})
)
NODE = ApiResource("", "v1", "Node", "nodes", False, frozenset({"get"}))

APPS = {
    "resources": [
        {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get", "list"]},
        {"name": "deployments/status", "kind": "Deployment", "namespaced": True, "verbs": ["get"]},
        {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "namespaced": True, "verbs": ["get"]},
    ]
}
CORE = {"resources": [{"name": "nodes", "kind": "Node", "namespaced": False, "verbs": ["get"]}]}
WIDGETS = {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["get"]}]}


class FakeDiscoveryServer(HttpClient):
    """Responses by path; for every other path the 404 of an API server."""

    def __init__(self, **answers: object) -> None:
        super().__init__()
        self.answers = dict(answers)
        self.asked: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        path = request.url.removeprefix("https://a.test")
        self.asked.append(path)
        await asyncio.sleep(0)
        found = self.answers.get(path)
        if found is None:
            return HttpResponse(404, {"Content-Type": "text/plain"}, b"404 page not found\n")
        return found if isinstance(found, HttpResponse) else json_response(found)


def json_response(body: object, content_type: str = "application/json") -> HttpResponse:
    return HttpResponse(200, {"Content-Type": content_type}, msgspec.json.encode(body))


def discovery(answers: Mapping[str, object]) -> tuple[Discovery, FakeDiscoveryServer]:
    http = FakeDiscoveryServer(**answers)
    return Discovery(KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=http)), http


@pytest.mark.parametrize(
    ("api_version", "kind", "served"), [("apps/v1", "Deployment", DEPLOYMENT), ("v1", "Node", NODE)]
)
def test_finds_a_kind_with_one_request(api_version: str, kind: str, served: ApiResource) -> None:
    found, http = discovery({"/apis/apps/v1": APPS, "/api/v1": CORE})

    async def main() -> list[ApiResource]:
        return [await found.find(api_version, kind) for _ in range(2)]

    assert asyncio.run(main()) == [served] * 2
    assert len(http.asked) == 1


def test_the_endpoint_of_an_api_resource() -> None:
    assert DEPLOYMENT.endpoint("shop", "web") == Endpoint("apps", "v1", "deployments", "shop", "web")
    assert NODE.endpoint("shop", "one") == Endpoint("", "v1", "nodes", None, "one")
    assert (DEPLOYMENT.api_version, NODE.api_version) == ("apps/v1", "v1")


@pytest.mark.parametrize("answers", [{}, {"/apis/a.io/v1": CORE}], ids=["no such group", "no such kind"])
def test_an_unknown_kind_is_kind_not_served(answers: Mapping[str, object]) -> None:
    found, _ = discovery(answers)

    with pytest.raises(KindNotServed) as caught:
        asyncio.run(found.find("a.io/v1", "Widget"))

    assert str(caught.value) == ("the cluster serves no Widget in a.io/v1: apply its CRD, or check apiVersion and kind")


def test_a_kind_that_is_served_later_is_found() -> None:
    found, http = discovery({})

    async def main() -> ApiResource:
        with pytest.raises(KindNotServed):
            await found.find("a.io/v1", "Widget")
        http.answers["/apis/a.io/v1"] = WIDGETS
        return await found.find("a.io/v1", "Widget")

    assert asyncio.run(main()).plural == "widgets"


def test_concurrent_callers_share_one_request() -> None:
    found, http = discovery({"/apis/a.io/v1": WIDGETS})

    async def main() -> None:
        await asyncio.gather(*(found.find("a.io/v1", "Widget") for _ in range(20)))

    asyncio.run(main())

    assert http.asked == ["/apis/a.io/v1"]


def test_a_request_that_began_earlier_does_not_answer_that_a_kind_is_missing() -> None:
    found, http = discovery({"/apis/a.io/v1": WIDGETS})

    async def main() -> None:
        await asyncio.gather(*(found.find("a.io/v1", "Gadget") for _ in range(20)), return_exceptions=True)

    asyncio.run(main())

    # The second request began after all other calls.
    assert http.asked == ["/apis/a.io/v1"] * 2


def test_an_unavailable_server_is_not_taken_for_a_missing_kind() -> None:
    found, _ = discovery({"/apis/a.io/v1": HttpResponse(503, {}, b"")})

    with pytest.raises(RemoteUnavailable):
        asyncio.run(found.find("a.io/v1", "Widget"))


def test_a_forgotten_version_is_fetched_again() -> None:
    found, http = discovery({"/apis/a.io/v1": WIDGETS})

    async def main() -> str:
        await found.find("a.io/v1", "Widget")
        http.answers["/apis/a.io/v1"] = {"resources": [{"name": "widgetries", "kind": "Widget"}]}
        found.forget("a.io/v1")
        return (await found.find("a.io/v1", "Widget")).plural

    assert asyncio.run(main()) == "widgetries"


# --- All resources ----------------------------------------------------------------------------------------------------

AGGREGATED = {
    "/api": json_response(
        {
            "items": [
                {
                    "metadata": {},
                    "versions": [
                        {
                            "version": "v1",
                            "resources": [
                                {
                                    "resource": "nodes",
                                    "responseKind": {"group": "", "version": "", "kind": "Node"},
                                    "scope": "Cluster",
                                    "verbs": ["get"],
                                }
                            ],
                        }
                    ],
                }
            ]
        },
        AGGREGATED_TYPE,
    ),
    "/apis": json_response(
        {
            "items": [
                {
                    "metadata": {"name": "apps"},
                    "versions": [
                        {
                            "version": "v1",
                            "resources": [
                                {
                                    "resource": "deployments",
                                    "responseKind": {"kind": "Deployment"},
                                    "scope": "Namespaced",
                                    "verbs": ["get", "list"],
                                    "subresources": [{"subresource": "scale"}, {"subresource": "status"}],
                                },
                                {"resource": "nothings", "responseKind": None},
                            ],
                        },
                        {
                            "version": "v1beta2",
                            "resources": [{"resource": "deployments", "responseKind": {"kind": "Deployment"}}],
                        },
                    ],
                },
                {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
            ]
        },
        AGGREGATED_TYPE,
    ),
}
PLAIN = {
    "/api": {"versions": ["v1"]},
    "/apis": {
        "groups": [
            {
                "versions": [{"groupVersion": "apps/v1beta2"}, {"groupVersion": "apps/v1"}],
                "preferredVersion": {"groupVersion": "apps/v1"},
            },
            {"versions": [{"groupVersion": "metrics.k8s.io/v1"}]},
        ]
    },
    "/api/v1": CORE,
    "/apis/apps/v1": APPS,
    "/apis/apps/v1beta2": {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}]},
    "/apis/metrics.k8s.io/v1": HttpResponse(503, {}, b""),
}


@pytest.mark.parametrize("answers", [AGGREGATED, PLAIN], ids=["all at once", "one after the other"])
def test_aggregated_and_plain_discovery_give_the_same_kinds(answers: Mapping[str, object]) -> None:
    found, _ = discovery(answers)

    served, unavailable = asyncio.run(found.all_resources())

    older = ApiResource("apps", "v1beta2", "Deployment", "deployments", True)
    assert (list(served), unavailable) == ([NODE, DEPLOYMENT, older], frozenset({"metrics.k8s.io"}))


@pytest.mark.parametrize("answers", [AGGREGATED, PLAIN], ids=["all at once", "one after the other"])
def test_the_preferred_version_is_used(answers: Mapping[str, object]) -> None:
    found, _ = discovery(answers)

    assert asyncio.run(found.preferred("Deployment")) == DEPLOYMENT
    assert asyncio.run(found.preferred("Node", "")) == NODE
    with pytest.raises(KindNotServed, match="the cluster serves no Node in apps: apply its CRD, or check the name"):
        asyncio.run(found.preferred("Node", "apps"))


def test_whether_a_group_that_does_not_answer_has_a_kind_is_unknown() -> None:
    found, _ = discovery(AGGREGATED)

    with pytest.raises(
        RemoteUnavailable, match=r"serves PodMetrics is unknown: there is no answer for metrics\.k8s\.io"
    ):
        asyncio.run(found.preferred("PodMetrics"))


def test_an_assumed_kind_is_found_without_a_request_until_a_call_shows_otherwise() -> None:
    http = FakeDiscoveryServer(**{"/apis/apps/v1": APPS})
    client = KubernetesClient(ClusterConnection("context prod", "https://a.test"), http=http)
    assumed = ApiResource("apps", "v1", "Deployment", "former-deployments", True)
    found = Discovery(client, assumed={("apps/v1", "Deployment"): assumed})

    async def main() -> tuple[ApiResource, list[str], ApiResource, ApiResource | None]:
        before, asked = await found.find("apps/v1", "Deployment"), list(http.asked)
        found.forget("apps/v1")
        return before, asked, await found.find("apps/v1", "Deployment"), found.known("apps/v1", "Deployment")

    assert asyncio.run(main()) == (assumed, [], DEPLOYMENT, DEPLOYMENT)
    assert http.asked == ["/apis/apps/v1"]
