"""Users of a cluster in the browser: each signs in with a bearer token, and sees what it may list, and nothing else."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.cluster.access import Access
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.cluster.running.manifests import bucket
from tests.dashboard.browser.tabs import SharedBrowser, Tab

GROUP = "storage.cnrm.cloud.google.com"
ACCOUNTS = "/api/v1/namespaces/{}/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}"
NAME = "ledger-of-payments"
# The browser itself says so in its console when it is told that something is not there.
NOT_FOUND = re.compile(r"error: Failed to load resource: the server responded with a status of 40[14] ")


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """The page of a controller, the namespace that it works for, and tokens of two accounts there."""

    address: str
    access: Access
    namespace: str
    with_rights: str
    without_rights: str

    @property
    def place(self) -> str:
        """The part of the address of the one bucket."""
        return f"/resource/StorageBucket.{GROUP}/{self.namespace}/{NAME}"


def new_account(access: Access, namespace: str, name: str) -> str:
    """The token of a new ServiceAccount, as `kubectl create token` makes it."""
    made = access.call("POST", ACCOUNTS.format(namespace), {"metadata": {"name": name}})
    assert made.status == 201, made
    token = access.call("POST", f"{ACCOUNTS.format(namespace)}/{name}/token", {"spec": {"expirationSeconds": 3600}})
    assert token.status == 201, token
    return str(token.body["status"]["token"])


def allow(access: Access, namespace: str, name: str) -> None:
    """Lets an account read the buckets of its namespace."""
    rule = {"apiGroups": [GROUP], "resources": ["storagebuckets"], "verbs": ["get", "list", "watch"]}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    for kind, body in (("roles", {"metadata": {"name": name}, "rules": [rule]}), ("rolebindings", binding)):
        made = access.call("POST", f"{RBAC.format(namespace)}/{kind}", body)
        assert made.status == 201, made
    user = f"system:serviceaccount:{namespace}:{name}"
    access.until_permitted(user, "list", f"storagebuckets.{GROUP}", namespace)


@pytest.fixture(scope="module")
def cluster_page(
    api_server: Access, kubectl_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterPage]:
    install_kinds(api_server, kubectl_program)
    namespace = api_server.new_namespace()
    tokens = [new_account(api_server, namespace, name) for name in ("reader", "stranger")]
    allow(api_server, namespace, "reader")
    kubectl = Kubectl(kubectl_program, api_server, namespace)
    with ControllerHarness(kubectl, tmp_path_factory.mktemp("dashboard")) as harness:
        process = harness.start_controller("--dashboard", "127.0.0.1:0", "--allow-actions")
        kubectl.apply(bucket(NAME))
        kubectl.until_ready(f"storagebucket/{NAME}")
        (served,) = process.logged("dashboard")
        yield ClusterPage(served["address"].rstrip("/"), api_server, namespace, *tokens)


def sign_in(tab: Tab, token: str) -> None:
    tab.page.get_by_label("Token").fill(token)
    tab.page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def reader(browser: SharedBrowser, cluster_page: ClusterPage) -> Iterator[Tab]:
    with browser.stranger(cluster_page.address) as tab:
        sign_in(tab, cluster_page.with_rights)
        expect(tab.page.locator(".stream-live")).to_be_visible()
        yield tab


@pytest.fixture
def stranger(browser: SharedBrowser, cluster_page: ClusterPage) -> Iterator[Tab]:
    with browser.stranger(cluster_page.address) as tab:
        sign_in(tab, cluster_page.without_rights)
        expect(tab.page.locator(".stream-live")).to_be_visible()
        yield tab


def test_a_user_signs_in_with_a_token_and_sees_the_resources_of_its_namespace(
    reader: Tab, cluster_page: ClusterPage
) -> None:
    reader.watch()
    expect(reader.page.locator(".list-row")).to_have_count(1)
    shown = reader.page.locator(".list-row").inner_text()
    total = reader.text(".strip-total").split()
    reader.go(f"{cluster_page.place}/timeline")
    expect(reader.page.locator(".entry-write").first).to_be_visible()

    assert NAME in shown
    assert total == ["1", "resource"]
    assert reader.text(".user") == f"{cluster_page.namespace}:reader"
    assert (
        reader.page.locator(".user").get_attribute("title")
        == f"Signed in as system:serviceaccount:{reader.text('.user')}"
    )
    assert reader.text(".source").startswith("kubernetes://")
    assert reader.troubles == []


def test_what_comes_into_a_namespace_appears_for_the_user_who_may_read_it(
    reader: Tab, stranger: Tab, cluster_page: ClusterPage
) -> None:
    late = bucket("late")
    path = f"/apis/{GROUP}/v1beta1/namespaces/{cluster_page.namespace}/storagebuckets"
    made = cluster_page.access.call("POST", path, late)
    expect(reader.page.locator(".list-row", has_text="late")).to_be_visible()
    cluster_page.access.call("DELETE", f"{path}/late")
    expect(reader.page.locator(".list-row")).to_have_count(1)

    assert made.status == 201
    assert "late" not in stranger.page.locator("main").inner_text().split()


def test_a_user_without_rights_sees_nothing_in_any_view(
    stranger: Tab, cluster_page: ClusterPage, tmp_path: Path
) -> None:
    seen = []
    expect(stranger.page.locator(".empty-title")).to_have_text("No resource that you may see")
    assert stranger.text(".strip-total").split() == ["0", "resources"]
    stranger.page.locator("[data-search]").fill(f"field:{NAME}")
    expect(stranger.page.locator(".shown")).to_have_text("0 of 0 resources")
    seen.append(stranger.page.locator(".facets, .strip, .list, .process-column").all_inner_texts())
    for place in ("/graph", f"/graph?focus=StorageBucket.{GROUP}%2F{cluster_page.namespace}%2F{NAME}"):
        stranger.go(place)
        stranger.wait_for_text("Nothing to draw")
        seen.append([stranger.text(".view.graph .empty")])
    stranger.go("/")
    with stranger.page.expect_download() as download:
        stranger.page.keyboard.press("x")
    download.value.save_as(tmp_path / "view.html")

    assert stranger.troubles == []
    assert NAME not in json.dumps(seen)
    assert NAME not in (tmp_path / "view.html").read_text(encoding="utf-8")


def test_a_user_without_rights_finds_nothing_at_the_address_of_a_resource(
    stranger: Tab, cluster_page: ClusterPage
) -> None:
    for part in ("", "/fields", "/timeline", "/raw"):
        stranger.go(f"{cluster_page.place}{part}")
        expect(stranger.page.locator(".empty-title")).to_have_text("There is no such resource, or you may not see it")
        # The name in the address is all that there is.
        assert stranger.page.locator(".card, .table, .entry, pre, .state, [role=tab], .view-actions").count() == 0

    assert [one for one in stranger.troubles if not NOT_FOUND.match(one)] == []


def test_after_a_sign_out_nothing_is_left_on_the_page(reader: Tab) -> None:
    expect(reader.page.locator(".list-row")).to_have_count(1)
    reader.page.get_by_role("button", name="Sign out").click()
    expect(reader.page.get_by_label("Token")).to_be_visible()
    left = reader.page.content()
    reader.page.reload()
    expect(reader.page.get_by_label("Token")).to_be_visible()

    assert NAME not in left
    assert NAME not in reader.page.content()


def test_a_token_that_the_cluster_does_not_know_is_refused(browser: SharedBrowser, cluster_page: ClusterPage) -> None:
    with browser.stranger(cluster_page.address) as tab:
        tab.page.get_by_text("bearer token of the cluster").wait_for()
        sign_in(tab, "ey.not.known")
        expect(tab.page.get_by_role("alert")).not_to_be_empty()

        assert NAME not in tab.page.content()
