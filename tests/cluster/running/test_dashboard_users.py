"""The dashboard of a cluster: users sign in with their own tokens, and see what they may list, and nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import pytest

import setpoint
from setpoint.app.cluster import cluster_namespaces, open_cluster_client
from setpoint.core.decide import Decision
from setpoint.core.plan import Plan
from setpoint.dashboard.access.cluster_users import ClusterSignIn
from setpoint.dashboard.actions import ACTIONS
from setpoint.dashboard.api.models import DashboardSource
from setpoint.dashboard.backend import open_backend
from setpoint.dashboard.plans import MadePlan
from setpoint.dashboard.server import Dashboard, DashboardOptions, serving
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.preview import PreviewFinding, PreviewResult
from setpoint.library.inspection.store_plan import StorePlan
from setpoint.replay.preview_report import PreviewReport
from soak.fleet.process import RunProcess
from tests.cluster import polling
from tests.cluster.access import Access
from tests.cluster.ports import free_port
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import bucket
from tests.cluster.running.two_controllers import (
    SHARDS,
    TwoControllers,
    bucket_id,
    makes_a_plan,
    shows_nothing,
    shows_the_next_step_in_the_list,
    shows_the_processes,
    shows_the_resource,
)
from tests.dashboard.pages import AT_ONCE, LOOPBACK, Page
from tests.dashboard.test_stream import Events
from tests.library.worlds import WEBSITE, until

BUCKETS = "/apis/storage.cnrm.cloud.google.com/v1beta1/namespaces/{}/storagebuckets"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}"
DEADLINE = 240.0


def run(work: Coroutine[Any, Any, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE):
            await work

    asyncio.run(main())


@dataclass(frozen=True, slots=True)
class Namespaces:
    """A namespace with a bucket for each user: alice may read and write hers, bob may only read his."""

    access: Access
    of_alice: str
    of_bob: str

    def token_of(self, user: str) -> str:
        """The bearer token of a user."""
        return self.access.token_of(user).strip()


def allow(access: Access, user: str, namespace: str, *verbs: str) -> None:
    """Gives a user rights on buckets in one namespace."""
    place = RBAC.format(namespace)
    rule = {"apiGroups": ["storage.cnrm.cloud.google.com"], "resources": ["storagebuckets"], "verbs": list(verbs)}
    role = {"metadata": {"name": user}, "rules": [rule]}
    binding = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    for kind, body in (("roles", role), ("rolebindings", binding)):
        made = access.call("POST", f"{place}/{kind}", body)
        assert made.status == 201, made
    access.until_permitted(user, verbs[0], "storagebuckets.storage.cnrm.cloud.google.com", namespace)


@pytest.fixture
def namespaces(cluster: Access) -> Namespaces:
    found = Namespaces(cluster, cluster.new_namespace(), cluster.new_namespace())
    for namespace, name in ((found.of_alice, "for-alice"), (found.of_bob, "for-bob")):
        manifest = bucket(name)
        manifest["metadata"]["namespace"] = namespace
        if name == "for-bob":
            # An edge from one namespace to the other.
            needed = f"StorageBucket/{found.of_alice}/for-alice"
            manifest["metadata"]["annotations"]["setpoint.dev/depends-on"] = needed
        made = cluster.call("POST", BUCKETS.format(namespace), manifest)
        assert made.status == 201, made
    allow(cluster, "alice", found.of_alice, "list", "get", "patch")
    allow(cluster, "bob", found.of_bob, "list")
    return found


@asynccontextmanager
async def dashboard(namespaces: Namespaces) -> AsyncIterator[dict[str, Page]]:
    """The dashboard of the cluster, and the page of each user who signed in."""
    environment = {"KUBECONFIG": str(namespaces.access.kubeconfig)}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        session = await enter(setpoint.open("kubernetes", environment=environment))
        client = open_cluster_client(session.settings)
        stack.push_async_callback(client.close)
        source = DashboardSource(type="cluster", name="kubernetes")
        backend = await enter(open_backend(session, source, limits=AT_ONCE))
        _, leases = cluster_namespaces(session.settings)
        sign_in = ClusterSignIn(client, session.settings.clock, partial(open_cluster_client, session.settings), leases)
        options = DashboardOptions(hosts=None, actions=ACTIONS, has_plan=False)
        url = await enter(serving(Dashboard(backend, sign_in, options), LOOPBACK))
        pages = {}
        for user in ("alice", "bob"):
            browser = await enter(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
            pages[user] = Page(url, backend, browser, [namespaces.token_of(user)])
            assert (await pages[user].sign_in()).body == {"user": user}
        yield pages


def test_each_user_sees_the_namespaces_of_that_user_alone(namespaces: Namespaces) -> None:
    async def main() -> None:
        async with dashboard(namespaces) as pages:
            hers, his = bucket_id(namespaces.of_alice, "for-alice"), bucket_id(namespaces.of_bob, "for-bob")
            for user, own, other in (("alice", hers, his), ("bob", his, hers)):
                page = pages[user]
                rows, summary = await page.get("/resources?limit=5000"), await page.get("/summary")
                graph = await page.get("/graph")

                # Other tests on this server give these users rights in namespaces of their own.
                assert _of(namespaces, [one["id"] for one in rows["resources"]]) == [own]
                assert (rows["total"], summary["total"]) == (len(rows["resources"]), sum(summary["byState"].values()))
                counted = {one["namespace"]: one["total"] for one in summary["byNamespace"]}
                assert (counted.get(own.split("/")[1]), counted.get(other.split("/")[1])) == (1, None)
                assert (summary["process"], summary["processes"]) == (None, [])
                assert _of(namespaces, [one["id"] for one in graph["nodes"]]) == [own]
                assert other not in (await page.get(f"/search?q={other.split('/')[2]}"))["ids"]
                for part in ("", "/fields", "/timeline"):
                    hidden = await page.send("GET", f"/api/v1/resources/{other}{part}")
                    assert (hidden.status, hidden.code) == (404, "notFound")
                assert (await page.get(f"/graph?focus={other}"))["nodes"] == []
                details = await page.get(f"/resources/{own}")
                assert details["row"]["id"] == own
                assert (details["dependsOn"], details["dependants"], details["children"]) == ([], [], [])
                assert not [edge for edge in graph["edges"] if {own, other} & {edge["from"], edge["to"]}]

    run(main())


def _of(namespaces: Namespaces, ids: list[str]) -> list[str]:
    """The ids of resources in the namespaces of this test."""
    return [one for one in ids if one.split("/")[1] in (namespaces.of_alice, namespaces.of_bob)]


def test_a_stream_has_the_changes_that_its_user_may_see(namespaces: Namespaces) -> None:
    async def main() -> None:
        async with dashboard(namespaces) as pages:
            await pages["alice"].get("/resources")
            streams = {user: Events(page) for user, page in pages.items()}
            await until(lambda: all(one.of("summary") for one in streams.values()))
            for namespace, name in ((namespaces.of_alice, "second"), (namespaces.of_bob, "third")):
                manifest = bucket(name)
                manifest["metadata"]["namespace"] = namespace
                await asyncio.to_thread(namespaces.access.call, "POST", BUCKETS.format(namespace), manifest)
            await until(lambda: "second" in streams["alice"].names and "third" in streams["bob"].names)

            assert "third" not in json.dumps(streams["alice"].seen)
            assert "second" not in json.dumps(streams["bob"].seen)
            assert namespaces.of_bob not in json.dumps(streams["alice"].seen)

    run(main())


def test_a_plan_and_a_report_show_nothing_of_other_namespaces(namespaces: Namespaces) -> None:
    async def main() -> None:
        async with dashboard(namespaces) as pages:
            refs = [
                ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", namespace, name)
                for namespace, name in ((namespaces.of_alice, "for-alice"), (namespaces.of_bob, "for-bob"))
            ]
            found = tuple(PreviewResult(ref, PreviewFinding.IN_SYNC, Plan(Decision.IN_SYNC)) for ref in refs)
            pages["bob"].backend.plans.made = MadePlan("2026-01-01T00:00:00Z", StorePlan(PreviewReport(found)))
            plan = await pages["bob"].get("/plan")

            assert [one["id"] for one in plan["resources"]] == [bucket_id(namespaces.of_bob, "for-bob")]
            assert plan["counts"]["nothing"] == 1
            assert (await pages["bob"].send("GET", "/api/v1/upgrade")).status == 404

    run(main())


def test_an_action_is_done_with_the_rights_of_its_user(namespaces: Namespaces) -> None:
    async def main() -> None:
        async with dashboard(namespaces) as pages:
            allowed = await pages["alice"].post(
                f"/resources/{bucket_id(namespaces.of_alice, 'for-alice')}/actions/pause"
            )
            refused = await pages["bob"].post(f"/resources/{bucket_id(namespaces.of_bob, 'for-bob')}/actions/pause")
            hidden = await pages["bob"].post(
                f"/resources/{bucket_id(namespaces.of_alice, 'for-alice')}/actions/reconcile"
            )
            paths = [
                f"{BUCKETS.format(namespaces.of_alice)}/for-alice",
                f"{BUCKETS.format(namespaces.of_bob)}/for-bob",
            ]
            hers, his = [(await asyncio.to_thread(namespaces.access.call, "GET", path)).body for path in paths]

            assert allowed.status == 202
            assert hers["metadata"]["annotations"]["setpoint.dev/management"] == "paused"
            assert refused.status == 403
            assert hidden.status == 404
            assert "setpoint.dev/management" not in his["metadata"].get("annotations", {})

    run(main())


def test_a_token_that_the_cluster_does_not_know_opens_nothing(namespaces: Namespaces) -> None:
    async def main() -> None:
        async with dashboard(namespaces) as pages:
            page = pages["bob"]
            for token in ("", "nonsense", "x" * 20_000, "a\nb", "é"):
                assert (await page.post("/login", {"token": token})).status in (401, 413)
            page.browser.cookie_jar.clear()
            as_proxy = {"Authorization": f"Bearer {namespaces.token_of('bob')}"}
            by_header = await page.send("GET", "/api/v1/session", headers=as_proxy)
            wrong = await page.send("GET", "/api/v1/session", headers={"Authorization": "Bearer nonsense"})

            assert by_header.body["user"] == "bob"
            assert wrong.status == 401

    run(main())


def allow_leases(access: Access, user: str, namespace: str) -> None:
    """Lets a user see the processes: by the right to list their leases."""
    place = RBAC.format(namespace)
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}
    binding = {
        "metadata": {"name": f"{user}-leases"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"{user}-leases"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    for kind, body in (
        ("roles", {"metadata": {"name": f"{user}-leases"}, "rules": [rule]}),
        ("rolebindings", binding),
    ):
        assert access.call("POST", f"{place}/{kind}", body).status == 201
    access.until_permitted(user, "list", "leases.coordination.k8s.io", namespace)


def _held(process: RunProcess) -> int:
    """How many shards a controller has, by its log."""
    return len(process.logged("shard acquired")) - len(process.logged("shard released"))


@pytest.fixture
def two(harness: ControllerHarness) -> TwoControllers:
    namespace, access = harness.kubectl.namespace, harness.kubectl.access
    allow(access, "alice", namespace, "list", "get", "patch")
    allow_leases(access, "alice", namespace)
    ports = [free_port(), free_port()]
    peers = [option for port in ports for option in ("--dashboard-peers", f"127.0.0.1:{port}")]
    options = ("--shards", str(SHARDS), "--allow-actions", *peers)
    processes = [
        harness.start_controller("--dashboard", f"127.0.0.1:{port}", *options, name=name)
        for port, name in zip(ports, ("first", "second"), strict=True)
    ]
    # A shard that is handed over later is looked at by its new holder, which would correct the drift below.
    polling.until(lambda: all(_held(process) for process in processes) and sum(map(_held, processes)) == SHARDS)
    harness.kubectl.apply(bucket("watched"))
    harness.kubectl.until_ready("storagebucket/watched")
    harness.in_cloud(lambda cloud: cloud.edit("/b/watched", WEBSITE))
    addresses = tuple(process.logged("dashboard")[0]["address"] for process in processes)
    return TwoControllers(namespace, addresses, {user: access.token_of(user).strip() for user in ("alice", "bob")})


def test_each_of_two_controllers_shows_each_user_what_that_user_may_see(
    harness: ControllerHarness, two: TwoControllers
) -> None:
    async def main() -> None:
        for address in two.addresses:
            async with two.page(address, "alice") as hers, two.page(address, "bob") as his:
                await shows_the_resource(hers, two)
                await shows_the_next_step_in_the_list(hers, two)
                await shows_the_processes(hers)
                await makes_a_plan(hers, two)
                await shows_nothing(his, two)
        async with two.page(two.addresses[0], "alice") as hers, two.page(two.addresses[0], "bob") as his:
            streams = [Events(hers), Events(his)]
            await until(lambda: all(one.of("summary") for one in streams))
            assert (await hers.post(f"/resources/{two.own}/actions/pause")).status == 202
            await until(lambda: "watched" in streams[0].names)
            # By then the stream of the other user has had its turn, too.
            await his.get("/summary")

            assert two.namespace in json.dumps(streams[0].of("summary"))
            assert not [text for text in ("watched", two.namespace) if text in json.dumps(streams[1].seen)]
            assert {one["process"] for one in streams[1].of("summary")} == {None}

    run(main())
    annotations = harness.kubectl.get("storagebucket/watched")["metadata"]["annotations"]
    assert annotations["setpoint.dev/management"] == "paused"
