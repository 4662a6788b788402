"""Which cluster is meant, and who we are there."""

from pathlib import Path

import pytest
import yaml

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.kubernetes.contexts import connection_from_files
from setpoint.engine.context import Settled, Stopped
from setpoint.errors import DependencyNotFound, LocationChanged, RemoteRefused, UserError
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import Site, Tree, config_map, environment
from tests.cluster.polling import until
from tests.cluster.server import Cluster

FROM_SECRET = {"kubeconfig": {"valueFrom": {"secretKeyRef": {"name": "access", "key": "kubeconfig"}}}}


@pytest.fixture
def apart(api_server: Access, namespace: str, tmp_path: Path) -> Site:
    """A process without a kubeconfig of its own."""
    return Site(api_server, namespace, environment(tmp_path / "none"))


def kubeconfig(access: Access, user: str = "admin") -> str:
    return access.kubeconfig_of(user).read_text(encoding="utf-8")


def two_contexts(access: Access, current: str) -> str:
    """The same cluster under two names."""
    config = yaml.safe_load(kubeconfig(access))
    (context,) = config["contexts"]
    config["contexts"] = [{**context, "name": name} for name in ("first", "second")]
    config["current-context"] = current
    return yaml.safe_dump(config)


def test_the_current_context_is_the_default(site: Site) -> None:
    site.settle(config_map(a="1"))

    assert site.status()["setpoint"]["location"] == f"v1 ConfigMap {site.namespace}/map @ context:tests"


def test_a_context_is_meant_by_its_name(site: Site) -> None:
    site.settle(config_map(a="1"), cluster={"context": "tests"})
    site.declare(config_map("other", a="1"), "other", cluster={"context": "production"})

    error = site.stop("other")

    assert isinstance(error, UserError)
    assert "there is no context production" in str(error)


def test_another_name_of_the_same_cluster_is_no_move(apart: Site, tmp_path: Path) -> None:
    (tmp_path / "none").write_text(two_contexts(apart.access, "first"), encoding="utf-8")
    apart.settle(config_map(a="1"))
    (tmp_path / "none").write_text(two_contexts(apart.access, "second"), encoding="utf-8")
    apart.restart()

    assert apart.plan().is_empty
    assert isinstance(apart.go_on(), Settled)
    assert apart.status()["setpoint"]["location"].endswith("@ context:second")
    apart.close()


def test_another_current_context_does_not_move_an_object(apart: Site, tmp_path: Path, own_api_server: Cluster) -> None:
    both = yaml.safe_load(two_contexts(apart.access, "first"))
    other = yaml.safe_load(own_api_server.access.kubeconfig.read_text(encoding="utf-8"))
    both["clusters"].append({**other["clusters"][0], "name": "other"})
    both["users"].append({**other["users"][0], "name": "other"})
    both["contexts"][1]["context"] = {"cluster": "other", "user": "other"}
    (tmp_path / "none").write_text(yaml.safe_dump(both), encoding="utf-8")
    apart.settle(config_map(a="1"))
    (tmp_path / "none").write_text(yaml.safe_dump({**both, "current-context": "second"}), encoding="utf-8")
    apart.restart()

    error = apart.stop()

    assert isinstance(error, LocationChanged)
    assert "@ context:first" in str(error)
    apart.remove()
    assert apart.is_gone()
    assert apart.live("configmaps", "map") is None
    apart.close()


def test_a_kubeconfig_comes_from_a_secret(apart: Site) -> None:
    apart.put_secret("access", kubeconfig=kubeconfig(apart.access))

    apart.settle(config_map(a="1"), cluster=FROM_SECRET)

    assert apart.live("configmaps", "map") is not None
    location = apart.status()["setpoint"]["location"]
    assert location == f"v1 ConfigMap {apart.namespace}/map @ secret:{apart.namespace}%2Faccess%2Fkubeconfig"
    assert "client-key-data" not in str(apart.status())
    apart.close()


def test_a_context_of_that_kubeconfig_is_meant_by_its_name(apart: Site) -> None:
    apart.put_secret("access", kubeconfig=two_contexts(apart.access, "none"))

    apart.settle(config_map(a="1"), cluster=FROM_SECRET | {"context": "second"})

    assert apart.live("configmaps", "map") is not None
    apart.close()


def test_a_deletion_reads_the_kubeconfig_again_after_a_restart(apart: Site) -> None:
    apart.put_secret("access", kubeconfig=kubeconfig(apart.access))
    apart.settle(config_map(a="1"), cluster=FROM_SECRET)
    apart.restart()

    apart.remove()

    assert apart.is_gone()
    assert apart.live("configmaps", "map") is None
    apart.close()


def test_a_deletion_without_the_kubeconfig_forgets_nothing(apart: Site) -> None:
    apart.put_secret("access", kubeconfig=kubeconfig(apart.access))
    apart.settle(config_map(a="1"), cluster=FROM_SECRET)
    apart.run(apart.store.delete(apart.ref()._replace(group="", kind="Secret", name="access")))
    apart.restart()

    outcome = apart.remove()

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, DependencyNotFound)
    assert apart.live("configmaps", "map") is not None
    apart.close()


def test_another_kubeconfig_in_the_secret_is_used_at_once(apart: Site) -> None:
    apart.put_secret("access", kubeconfig=kubeconfig(apart.access))
    apart.settle(config_map(a="1"), cluster=FROM_SECRET)
    apart.put_secret("access", kubeconfig=kubeconfig(apart.access, "alice"))

    error = apart.stop()
    assert isinstance(error, RemoteRefused)
    assert "alice" in str(error)
    apart.put_secret("access", kubeconfig="nonsense: [")
    for _ in range(2):
        assert "this is not YAML" in str(apart.stop())
    apart.put_secret("access", kubeconfig=kubeconfig(apart.access))

    outcome = apart.go_on()
    assert isinstance(outcome, Settled)
    assert outcome.plan.is_empty
    apart.close()


@pytest.mark.parametrize(
    ("user", "word"),
    [
        ({"exec": {"command": "touch", "apiVersion": "client.authentication.k8s.io/v1"}}, "exec"),
        ({"tokenFile": "/etc/passwd"}, "tokenFile"),
        ({"client-certificate": "/a", "client-key": "/b"}, "client-certificate, client-key"),
    ],
)
def test_a_kubeconfig_from_a_secret_reads_and_runs_nothing_here(user: Tree, word: str, apart: Site) -> None:
    config = yaml.safe_load(kubeconfig(apart.access))
    config["users"][0]["user"] = user
    apart.put_secret("access", kubeconfig=yaml.safe_dump(config))
    apart.declare(config_map(a="1"), cluster=FROM_SECRET)

    error = apart.stop()

    assert isinstance(error, UserError)
    assert f"context tests: {word}: a kubeconfig that is handed over reads no files" in str(error)
    apart.close()


def test_the_cluster_around_is_said_to_be_missing(site: Site) -> None:
    site.declare(config_map(a="1"), cluster={"inCluster": True})

    error = site.stop()

    assert isinstance(error, UserError)
    assert "inCluster" in str(error)


def test_the_cluster_of_the_store_is_meant_when_the_store_is_one(api_server: Access, namespace: str) -> None:
    site = Site(api_server, namespace, {})
    site.clusters.own = KubernetesClient(connection_from_files([api_server.kubeconfig]))

    site.settle(config_map(a="1"))

    assert site.status()["setpoint"]["location"] == f"v1 ConfigMap {namespace}/map @ own"
    own = site.clusters.own
    site.run(site.clusters.close())
    # It is closed by its creator, and not before.
    assert isinstance(site.step(), Settled)
    site.run(own.close())
    site.close()


def test_an_object_stays_the_same_when_its_resource_moves_into_the_cluster(
    apart: Site, tmp_path: Path, api_server: Access
) -> None:
    (tmp_path / "none").write_text(two_contexts(apart.access, "first"), encoding="utf-8")
    apart.settle(config_map(a="1"))
    uid = apart.status()["object"]["uid"]
    (tmp_path / "none").unlink()
    apart.restart()
    apart.clusters.own = own = KubernetesClient(connection_from_files([api_server.kubeconfig]))

    outcome = apart.go_on()

    assert isinstance(outcome, Settled)
    assert outcome.plan.is_empty
    assert apart.status()["object"]["uid"] == uid
    assert apart.status()["setpoint"]["location"].endswith("@ own")
    apart.run(own.close())
    apart.close()


def allow(site: Site, user: str, *verbs: str) -> None:
    """Grants a user rights on ConfigMaps of the namespace."""
    rbac = "rbac.authorization.k8s.io"
    path = f"/apis/{rbac}/v1/namespaces/{site.namespace}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}]
    role = {"metadata": {"name": "maps"}, "rules": rules}
    subjects = [{"apiGroup": rbac, "kind": "User", "name": user}]
    binding = {
        "metadata": {"name": "maps"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "maps"},
        "subjects": subjects,
    }
    for kind, body in (("roles", role), ("rolebindings", binding)):
        answer = site.access.call("POST", f"{path}/{kind}", body)
        assert answer.status == 201, answer


def test_a_right_that_is_missing_is_named_and_those_that_the_docs_name_are_enough(
    api_server: Access, namespace: str
) -> None:
    site = Site(api_server, namespace, environment(api_server.kubeconfig_of("alice")))
    site.declare(config_map(a="1"))

    assert f"with the verb get on configmaps in the namespace {namespace}" in str(site.stop())
    allow(site, "alice", "get", "create", "patch", "delete")
    until(lambda: isinstance(site.step(), Settled))
    site.remove()

    assert site.is_gone()
    assert site.live("configmaps", "map") is None
    site.close()
