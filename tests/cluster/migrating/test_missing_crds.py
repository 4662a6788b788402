"""A cluster with Config Connector's CustomResourceDefinitions alone, or with some of them: what is there works."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest

from setpoint.app import definitions
from soak.fleet.process import RunProcess
from tests.cluster.access import Access
from tests.cluster.assets import Assets
from tests.cluster.migrating.config_connector_crds import config_connector_crds, install_config_connector
from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.kubectl import Kubectl
from tests.cluster.running.manifests import bucket, instance
from tests.cluster.server import Cluster, Settings

_MISSING: Final = (
    "the cluster does not serve IAMPartialPolicy, IAMPolicy, IAMPolicyMember, IAMServiceAccountKey, KbsConfig, "
    "KubernetesObject, TrusteeConfig, for want of a CustomResourceDefinition: `setpoint crds IAMPartialPolicy "
    "IAMPolicy IAMPolicyMember IAMServiceAccountKey KbsConfig KubernetesObject TrusteeConfig | kubectl apply "
    "--server-side -f -` installs it"
)
_NO_OBJECTS: Final = (
    "error: the cluster does not serve KubernetesObject, for want of a CustomResourceDefinition: "
    "`setpoint crds KubernetesObject | kubectl apply --server-side -f -` installs it\n"
)
_OBJECT: Final = {
    "apiVersion": "setpoint.dev/v1alpha1",
    "kind": "KubernetesObject",
    "metadata": {"name": "one"},
    "spec": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}},
}


@pytest.fixture(scope="module")
def config_connector_alone(cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A cluster with Config Connector, and without any definition of ours."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("alone"), Settings()) as cluster:
        install_config_connector(cluster.access)
        yield cluster.access


@pytest.fixture
def harness(config_connector_alone: Access, kubectl_program: Path, tmp_path: Path) -> Iterator[ControllerHarness]:
    """A namespace there with two resources, and a local cloud; the store is the cluster."""
    kubectl = Kubectl(kubectl_program, config_connector_alone, config_connector_alone.new_namespace())
    kubectl.apply(bucket("logs"), instance("db"))
    with ControllerHarness(kubectl, tmp_path) as harness:
        yield harness


def _written(harness: ControllerHarness, manifest: Any) -> str:
    file = harness.folder / "manifest.json"
    metadata = {**manifest["metadata"], "namespace": harness.kubectl.namespace}
    file.write_text(json.dumps({**manifest, "metadata": metadata}), encoding="utf-8")
    return str(file)


def test_get_shows_the_kinds_that_are_served_and_names_the_others(harness: ControllerHarness) -> None:
    done = harness.setpoint("get", "-n", harness.kubectl.namespace)

    assert (done.returncode, done.stderr) == (0, f"warning: {_MISSING}\n")
    assert [line.split()[0::2][:2] for line in done.stdout.splitlines()] == [
        ["KIND", "NAME"],
        ["SQLInstance", "db"],
        ["StorageBucket", "logs"],
    ]


def test_a_kind_that_is_served_is_shown_without_a_warning(harness: ControllerHarness) -> None:
    done = harness.setpoint("get", "StorageBucket", "-n", harness.kubectl.namespace)

    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "KubernetesObject"),
        ("get", "kubernetesobjects/one"),
        ("describe", "KubernetesObject/one"),
        ("explain", "KubernetesObject/one"),
        ("plan", "KubernetesObject/one"),
        ("reconcile", "KubernetesObject/one"),
    ],
)
def test_a_command_about_a_kind_that_is_not_served_says_how_to_install_it(
    harness: ControllerHarness, arguments: tuple[str, ...]
) -> None:
    done = harness.setpoint(*arguments, "-n", harness.kubectl.namespace)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", _NO_OBJECTS)


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_manifest_of_a_kind_that_is_not_served_says_how_to_install_it(
    harness: ControllerHarness, command: str
) -> None:
    done = harness.setpoint(command, "-f", _written(harness, _OBJECT))

    assert done.returncode == 1
    assert _NO_OBJECTS.removeprefix("error: ").rstrip() in done.stdout + done.stderr


def test_resources_of_served_kinds_are_planned_and_migrated(harness: ControllerHarness) -> None:
    place = ("-n", harness.kubectl.namespace)
    planned = harness.setpoint("plan", "-f", _written(harness, bucket("photos")))
    preview = harness.setpoint("migrate", "--from", "config-connector", *place, "-o", "json")

    assert (planned.returncode, planned.stderr) == (2, "")
    assert preview.stderr == ""
    assert [one["name"] for one in json.loads(preview.stdout)["resources"]] == ["db", "logs"]


def test_migrate_works_with_some_of_config_connectors_kinds(
    cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path, tmp_path: Path
) -> None:
    """Here the namespace was never given a database."""
    with Cluster(cluster_assets, tmp_path_factory.mktemp("some"), Settings()) as cluster:
        kubectl = Kubectl(kubectl_program, cluster.access, cluster.access.new_namespace())
        _install(kubectl, *(one for one in config_connector_crds() if one["spec"]["names"]["kind"] != "SQLInstance"))
        with ControllerHarness(kubectl, tmp_path) as harness:
            kubectl.apply(bucket("logs"))
            done = harness.setpoint("migrate", "--from", "config-connector", "-n", kubectl.namespace, "-o", "json")

    assert done.stderr == ""
    assert [one["name"] for one in json.loads(done.stdout)["resources"]] == ["logs"]


def test_a_controller_runs_the_kinds_that_are_served_and_picks_up_the_others(
    cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path, tmp_path: Path
) -> None:
    with Cluster(cluster_assets, tmp_path_factory.mktemp("growing"), Settings()) as cluster:
        install_config_connector(cluster.access)
        kubectl = Kubectl(kubectl_program, cluster.access, cluster.access.new_namespace())
        with ControllerHarness(kubectl, tmp_path) as harness:
            controller = harness.start_controller()
            kubectl.apply(bucket("logs"))
            kubectl.until_ready("storagebucket/logs")
            missing = sorted(line["kind"] for line in controller.logged("kind not served"))
            ready = _readiness(controller)

            # The command that the log names.
            _install(kubectl, definitions()["setpoint.dev", "KubernetesObject"])
            kubectl.apply(_OBJECT)
            kubectl.until_ready("kubernetesobject/one")

            policies = ["IAMPartialPolicy", "IAMPolicy", "IAMPolicyMember", "IAMServiceAccountKey"]
            assert missing == [*policies, "KbsConfig", "KubernetesObject", "ReferenceGrant", "TrusteeConfig"]
            assert ready == f"ok, but for want of a CRD not for {', '.join(missing)}\n"
            assert [line["kind"] for line in controller.logged("kind served")] == ["KubernetesObject"]
            assert "KubernetesObject" not in _readiness(controller)
            assert kubectl.get("configmap/one") is not None


def test_a_kind_whose_definition_is_removed_and_installed_again_is_picked_up(
    cluster_assets: Assets, tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path, tmp_path: Path
) -> None:
    with Cluster(cluster_assets, tmp_path_factory.mktemp("changing"), Settings()) as cluster:
        install_config_connector(cluster.access)
        kubectl = Kubectl(kubectl_program, cluster.access, cluster.access.new_namespace())
        with ControllerHarness(kubectl, tmp_path) as harness:
            controller = harness.start_controller("--kinds", "StorageBucket,SQLInstance")
            kubectl.apply(bucket("logs"))
            kubectl.until_ready("storagebucket/logs")

            kubectl("delete", "crd", "sqlinstances.sql.cnrm.cloud.google.com")
            controller.until_logged("kind not served", 2)
            _install(
                kubectl, *(one for one in config_connector_crds() if one["spec"]["names"]["kind"] == "SQLInstance")
            )
            controller.until_logged("kind served")
            kubectl.apply(instance("db"), bucket("photos"))
            kubectl.until_ready("sqlinstance/db", "storagebucket/photos")

            assert controller.logged("watch broke off") == []


def _readiness(controller: RunProcess) -> str:
    (address,) = (one["address"] for one in controller.logged("serving"))
    with urlopen(f"{address}/readyz", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


def _install(kubectl: Kubectl, *crds: Any) -> None:
    """`kubectl apply --server-side`; returns when they are served."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    paths = [f"/apis/{one['spec']['group']}/{one['spec']['versions'][0]['name']}/" for one in crds]
    plurals = [one["spec"]["names"]["plural"] for one in crds]
    until(
        lambda: all(
            kubectl.access.call("GET", f"{path}{plural}").status == 200
            for path, plural in zip(paths, plurals, strict=True)
        )
    )
