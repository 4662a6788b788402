"""A real API server accepts every field of the manifests, and admits the pods to restricted namespaces."""

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from setpoint.cli.main import main
from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import namespace_manifest as home
from setpoint.deployment.manifests import pod_spec
from tests.cluster.access import Access
from tests.deployment.chart import rendered, run, stream
from tests.deployment.conftest import Kubectl
from tests.deployment.deploy_files import CHART, KUSTOMIZE
from tests.deployment.eventually import once
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT, process, types

ALL = len(types()) + len(process(DEFAULT))


@pytest.fixture(scope="session")
def ready(kubectl: Kubectl) -> Kubectl:
    """The cluster with the namespace, which a dry run does not create."""
    kubectl.apply(json.dumps(home(Installation())[0]))
    return kubectl


def _tried(kubectl: Kubectl, text: str) -> list[str]:
    """The output of a dry run, a line for each object. Unknown fields are refused."""
    return kubectl.apply(text, "--dry-run=server", "--validate=strict").splitlines()


@pytest.mark.parametrize(
    "folder", ["crds", "base", "overlays/namespaced", "overlays/workload-identity", "overlays/service-account-key"]
)
def test_the_server_accepts_every_kustomize_overlay(ready: Kubectl, folder: str) -> None:
    built = ready("kustomize", str(KUSTOMIZE / folder))

    watched = "default" if folder.endswith("namespaced") else None
    assert len(_tried(ready, built)) == len(
        types() if folder == "crds" else process(replace(DEFAULT, watch_namespace=watched))
    )


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize(
    "options",
    [[], ["--watch-namespace", "default"], ["--namespace", "default"], ["--kinds", ",".join(ALL_KINDS)]],
    ids=str,
)
def test_the_server_accepts_the_manifests_that_install_prints(ready: Kubectl, options: list[str], form: str) -> None:
    printed = CliRunner().invoke(main, ["install", "--dry-run", "-o", form, *options]).stdout

    # In a single namespace there is no policy; in `default`, no Namespace is made.
    assert len(_tried(ready, printed)) >= ALL - 2


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["watchNamespace=default", "google.keySecret=keeper", "priorityClassName=system-cluster-critical"],
        ["networkPolicy.from[0].namespaceSelector.matchLabels.a=b", "tolerations[0].operator=Exists"],
    ],
    ids=str,
)
def test_the_server_accepts_the_rendered_chart(ready: Kubectl, settings: list[str]) -> None:
    # Helm makes the Namespace; and for one namespace there is no policy.
    assert len(_tried(ready, stream(*settings))) == ALL - 1 - 2 * any("watchNamespace" in one for one in settings)


def test_the_notes_of_the_chart_name_the_next_commands(api_server: Access, namespace: str) -> None:
    cluster = ("--kubeconfig", str(api_server.kubeconfig), "--namespace", namespace)
    done = run("install", "blue", str(CHART), *cluster, "--dry-run=server", "--set", "crds.install=false")

    assert f"kubectl -n {namespace} rollout status deployment/blue-setpoint" in done.stdout, done.stderr
    assert "It acts as whoever its nodes are" in done.stdout


# --- Pods -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def strict(kubectl: Kubectl, namespace: str) -> str:
    """A namespace with the pod security level `restricted`."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    return namespace


def _pod(spec: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "setpoint"}, "spec": spec})


@pytest.mark.parametrize("settings", [[], ["google.keySecret=keeper"]], ids=str)
def test_a_restricted_namespace_admits_the_pods(kubectl: Kubectl, strict: str, settings: list[str]) -> None:
    deployed = rendered(*settings)["Deployment", "setpoint-system", "setpoint"]["spec"]["template"]["spec"]

    for spec in (deployed, pod_spec(Installation())):
        made = kubectl("create", "-n", strict, "--dry-run=server", "-f", "-", stdin=_pod(spec))
        assert made == "pod/setpoint created (server dry run)\n"


def test_a_restricted_namespace_rejects_other_pods(kubectl: Kubectl, strict: str) -> None:
    spec: Any = dict(pod_spec(Installation()))
    del spec["securityContext"]

    done = kubectl.run("create", "-n", strict, "--dry-run=server", "-f", "-", stdin=_pod(spec))

    assert 'violates PodSecurity "restricted' in done.stderr


# --- Users ------------------------------------------------------------------------------------------------------------


READ = {"get", "list", "watch"}
WRITE = {"create", "update", "patch", "delete", "deletecollection"}


@pytest.mark.parametrize(
    ("role", "verbs", "on_grants"),
    [("view", READ, READ), ("edit", READ | WRITE, READ), ("admin", READ | WRITE, READ | WRITE)],
)
@pytest.mark.usefixtures("controllers")
def test_the_default_user_roles_include_our_kinds(
    kubectl: Kubectl, api_server: Access, role: str, verbs: set[str], on_grants: set[str]
) -> None:
    roles = [one for one in types().values() if one["kind"] == "ClusterRole"]
    kubectl.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": roles}))

    def reached(plural: str) -> set[str]:
        rules = kubectl.get("clusterrole", role)["rules"]
        return {verb for rule in rules if plural in rule["resources"] for verb in rule["verbs"]}

    assert once(lambda: reached("sqlinstances"), verbs) == verbs
    assert once(lambda: reached("referencegrants"), on_grants) == on_grants
    # It may be any object: an administrator says who writes it.
    assert reached("kubernetesobjects") == {"get", "list", "watch"}
