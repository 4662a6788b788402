"""Selection of the cluster and of the credentials for it."""

from pathlib import Path

import pytest
import yaml

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.errors import DependencyNotFound, LocationChanged, RemoteRefused, UserError
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, environment
from tests.cluster.polling import until

FROM_SECRET = {"kubeconfig": {"valueFrom": {"secretKeyRef": {"name": "access", "key": "kubeconfig"}}}}


@pytest.fixture
def unconfigured(api_server: Access, namespace: str, tmp_path: Path) -> ObjectHarness:
    """A harness whose environment names a kubeconfig that does not exist yet."""
    return ObjectHarness(api_server, namespace, environment(tmp_path / "none"))


def kubeconfig(access: Access, user: str = "admin") -> str:
    return access.kubeconfig_of(user).read_text(encoding="utf-8")


def two_contexts(access: Access, current: str) -> str:
    """A kubeconfig with two contexts for the same cluster."""
    config = yaml.safe_load(kubeconfig(access))
    (context,) = config["contexts"]
    config["contexts"] = [{**context, "name": name} for name in ("first", "second")]
    config["current-context"] = current
    return yaml.safe_dump(config)


def test_the_current_context_is_the_default(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"))

    assert harness.status()["setpoint"]["location"] == f"v1 ConfigMap {harness.namespace}/map @ context:tests"


def test_a_context_is_selected_by_name(harness: ObjectHarness) -> None:
    harness.settle(config_map(a="1"), cluster={"context": "tests"})
    harness.declare(config_map("other", a="1"), "other", cluster={"context": "production"})

    error = harness.stop_reason("other")

    assert isinstance(error, UserError)
    assert "there is no context production" in str(error)


def test_another_context_of_the_same_cluster_does_not_move_an_object(
    unconfigured: ObjectHarness, tmp_path: Path
) -> None:
    (tmp_path / "none").write_text(two_contexts(unconfigured.access, "first"), encoding="utf-8")
    unconfigured.settle(config_map(a="1"))
    (tmp_path / "none").write_text(two_contexts(unconfigured.access, "second"), encoding="utf-8")
    unconfigured.restart()

    assert unconfigured.plan().is_empty
    assert isinstance(unconfigured.step_until_done(), Settled)
    assert unconfigured.status()["setpoint"]["location"].endswith("@ context:second")
    unconfigured.close()


def test_another_current_context_does_not_move_an_object(
    unconfigured: ObjectHarness, tmp_path: Path, other_api_server: Access
) -> None:
    both = yaml.safe_load(two_contexts(unconfigured.access, "first"))
    other = yaml.safe_load(other_api_server.kubeconfig.read_text(encoding="utf-8"))
    both["clusters"].append({**other["clusters"][0], "name": "other"})
    both["users"].append({**other["users"][0], "name": "other"})
    both["contexts"][1]["context"] = {"cluster": "other", "user": "other"}
    (tmp_path / "none").write_text(yaml.safe_dump(both), encoding="utf-8")
    unconfigured.settle(config_map(a="1"))
    (tmp_path / "none").write_text(yaml.safe_dump({**both, "current-context": "second"}), encoding="utf-8")
    unconfigured.restart()

    error = unconfigured.stop_reason()

    assert isinstance(error, LocationChanged)
    assert "@ context:first" in str(error)
    unconfigured.remove()
    assert unconfigured.is_gone()
    assert unconfigured.live("configmaps", "map") is None
    unconfigured.close()


def test_a_kubeconfig_comes_from_a_secret(unconfigured: ObjectHarness) -> None:
    unconfigured.put_secret("access", kubeconfig=kubeconfig(unconfigured.access))

    unconfigured.settle(config_map(a="1"), cluster=FROM_SECRET)

    assert unconfigured.live("configmaps", "map") is not None
    location = unconfigured.status()["setpoint"]["location"]
    assert (
        location == f"v1 ConfigMap {unconfigured.namespace}/map @ secret:{unconfigured.namespace}%2Faccess%2Fkubeconfig"
    )
    assert "client-key-data" not in str(unconfigured.status())
    unconfigured.close()


def test_a_context_of_a_kubeconfig_from_a_secret_is_selected_by_name(unconfigured: ObjectHarness) -> None:
    unconfigured.put_secret("access", kubeconfig=two_contexts(unconfigured.access, "none"))

    unconfigured.settle(config_map(a="1"), cluster=FROM_SECRET | {"context": "second"})

    assert unconfigured.live("configmaps", "map") is not None
    unconfigured.close()


def test_a_deletion_reads_the_kubeconfig_again_after_a_restart(unconfigured: ObjectHarness) -> None:
    unconfigured.put_secret("access", kubeconfig=kubeconfig(unconfigured.access))
    unconfigured.settle(config_map(a="1"), cluster=FROM_SECRET)
    unconfigured.restart()

    unconfigured.remove()

    assert unconfigured.is_gone()
    assert unconfigured.live("configmaps", "map") is None
    unconfigured.close()


def test_a_deletion_without_the_kubeconfig_stops_and_keeps_the_object(unconfigured: ObjectHarness) -> None:
    unconfigured.put_secret("access", kubeconfig=kubeconfig(unconfigured.access))
    unconfigured.settle(config_map(a="1"), cluster=FROM_SECRET)
    unconfigured.run(unconfigured.store.delete(unconfigured.ref()._replace(group="", kind="Secret", name="access")))
    unconfigured.restart()

    outcome = unconfigured.remove()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotFound)
    assert unconfigured.live("configmaps", "map") is not None
    unconfigured.close()


def test_a_changed_kubeconfig_in_the_secret_is_used_by_the_next_step(unconfigured: ObjectHarness) -> None:
    unconfigured.put_secret("access", kubeconfig=kubeconfig(unconfigured.access))
    unconfigured.settle(config_map(a="1"), cluster=FROM_SECRET)
    unconfigured.put_secret("access", kubeconfig=kubeconfig(unconfigured.access, "alice"))

    error = unconfigured.stop_reason()
    assert isinstance(error, RemoteRefused)
    assert "alice" in str(error)
    unconfigured.put_secret("access", kubeconfig="nonsense: [")
    for _ in range(2):
        assert "this is not YAML" in str(unconfigured.stop_reason())
    unconfigured.put_secret("access", kubeconfig=kubeconfig(unconfigured.access))

    outcome = unconfigured.step_until_done()
    assert isinstance(outcome, Settled)
    assert outcome.plan.is_empty
    unconfigured.close()


@pytest.mark.parametrize(
    ("user", "word"),
    [
        ({"exec": {"command": "touch", "apiVersion": "client.authentication.k8s.io/v1"}}, "exec"),
        ({"tokenFile": "/etc/passwd"}, "tokenFile"),
        ({"client-certificate": "/a", "client-key": "/b"}, "client-certificate, client-key"),
    ],
)
def test_a_kubeconfig_from_a_secret_reads_no_files_and_runs_no_commands(
    user: Tree, word: str, unconfigured: ObjectHarness
) -> None:
    config = yaml.safe_load(kubeconfig(unconfigured.access))
    config["users"][0]["user"] = user
    unconfigured.put_secret("access", kubeconfig=yaml.safe_dump(config))
    unconfigured.declare(config_map(a="1"), cluster=FROM_SECRET)

    error = unconfigured.stop_reason()

    assert isinstance(error, UserError)
    assert f"context tests: {word}: a kubeconfig that is handed over reads no files" in str(error)
    unconfigured.close()


def test_in_cluster_configuration_is_an_error_outside_of_a_cluster(harness: ObjectHarness) -> None:
    harness.declare(config_map(a="1"), cluster={"inCluster": True})

    error = harness.stop_reason()

    assert isinstance(error, UserError)
    assert "inCluster" in str(error)


def test_the_cluster_of_a_kubernetes_store_is_the_default(api_server: Access, namespace: str) -> None:
    harness = ObjectHarness(api_server, namespace, {})
    harness.clusters.own = KubernetesClient(connection_from_files([api_server.kubeconfig]))

    harness.settle(config_map(a="1"))

    assert harness.status()["setpoint"]["location"] == f"v1 ConfigMap {namespace}/map @ own"
    own = harness.clusters.own
    harness.run(harness.clusters.close())
    # The client of the store is closed by its creator alone.
    assert isinstance(harness.step(), Settled)
    harness.run(own.close())
    harness.close()


def test_an_object_is_the_same_after_its_resource_moved_into_the_cluster(
    unconfigured: ObjectHarness, tmp_path: Path, api_server: Access
) -> None:
    (tmp_path / "none").write_text(two_contexts(unconfigured.access, "first"), encoding="utf-8")
    unconfigured.settle(config_map(a="1"))
    uid = unconfigured.status()["object"]["uid"]
    (tmp_path / "none").unlink()
    unconfigured.restart()
    unconfigured.clusters.own = own = KubernetesClient(connection_from_files([api_server.kubeconfig]))

    outcome = unconfigured.step_until_done()

    assert isinstance(outcome, Settled)
    assert outcome.plan.is_empty
    assert unconfigured.status()["object"]["uid"] == uid
    assert unconfigured.status()["setpoint"]["location"].endswith("@ own")
    unconfigured.run(own.close())
    unconfigured.close()


def allow(harness: ObjectHarness, user: str, *verbs: str) -> None:
    """Grants a user these verbs on ConfigMaps of the namespace."""
    rbac = "rbac.authorization.k8s.io"
    path = f"/apis/{rbac}/v1/namespaces/{harness.namespace}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}]
    role = {"metadata": {"name": "maps"}, "rules": rules}
    subjects = [{"apiGroup": rbac, "kind": "User", "name": user}]
    binding = {
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "maps"},
        "subjects": subjects,
    }
    for kind, body in (("roles", role), ("rolebindings", binding)):
        answer = harness.access.call("POST", f"{path}/{kind}", body)
        assert answer.status == 201, answer


def test_a_missing_permission_is_named_and_the_documented_ones_are_enough(api_server: Access, namespace: str) -> None:
    harness = ObjectHarness(api_server, namespace, environment(api_server.kubeconfig_of("alice")))
    harness.declare(config_map(a="1"))

    assert f"with the verb get on configmaps in the namespace {namespace}" in str(harness.stop_reason())
    allow(harness, "alice", "get", "create", "patch", "delete")
    until(lambda: isinstance(harness.step(), Settled))
    harness.remove()

    assert harness.is_gone()
    assert harness.live("configmaps", "map") is None
    harness.close()
