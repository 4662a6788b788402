"""The objects that kustomize builds: those of `setpoint install`, and the changes of each overlay."""

import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from setpoint.deployment.installation import Installation
from setpoint.deployment.manifests import service_monitor
from tests.deployment.conftest import Kubectl
from tests.deployment.deploy_files import KUSTOMIZE, prometheus_rule
from tests.deployment.installed_objects import DEFAULT, by_key, in_stream, process, types

DEPLOYMENT = ("Deployment", "setpoint-system", "setpoint")
ACCOUNT = ("ServiceAccount", "setpoint-system", "setpoint")


def test_crds_and_controller_are_two_bases(kubectl_alone: Kubectl) -> None:
    assert in_stream(kubectl_alone("kustomize", str(KUSTOMIZE / "crds"))) == types()
    assert in_stream(kubectl_alone("kustomize", str(KUSTOMIZE / "base"))) == process(DEFAULT)


def test_removing_the_controller_removes_no_crd() -> None:
    """Otherwise `kubectl delete -k` would delete every resource, and its live object."""
    assert {kind for kind, _, _ in process(DEFAULT)} & {kind for kind, _, _ in types()} == {
        "ClusterRole",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }


@pytest.mark.parametrize("watched", ["default", "team-a"])
def test_the_watched_namespace_is_named_once(kubectl_alone: Kubectl, tmp_path: Path, watched: str) -> None:
    copytree(KUSTOMIZE, tmp_path / "kustomize")
    overlay = tmp_path / "kustomize/overlays/namespaced"
    file = overlay / "kustomization.yaml"
    file.write_text(file.read_text("utf-8").replace("namespace=default", f"namespace={watched}"), encoding="utf-8")

    built = in_stream(kubectl_alone("kustomize", str(overlay)))

    assert built == process(replace(DEFAULT, watch_namespace=watched))


def test_workload_identity_is_one_annotation(kubectl_alone: Kubectl) -> None:
    built = in_stream(kubectl_alone("kustomize", str(KUSTOMIZE / "overlays/workload-identity")))

    annotations = built[ACCOUNT]["metadata"].pop("annotations")
    assert annotations == {"iam.gke.io/gcp-service-account": "setpoint@PROJECT_ID.iam.gserviceaccount.com"}
    assert built == process(DEFAULT)


def test_a_key_is_mounted_where_the_program_reads_it(kubectl_alone: Kubectl) -> None:
    built = in_stream(kubectl_alone("kustomize", str(KUSTOMIZE / "overlays/service-account-key")))

    pod = built[DEPLOYMENT]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    key = {"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/var/run/secrets/google/key.json"}
    container["env"].remove(key)
    assert container.pop("volumeMounts") == [
        {"name": "google-key", "mountPath": "/var/run/secrets/google", "readOnly": True}
    ]
    assert pod.pop("volumes") == [
        {"name": "google-key", "secret": {"secretName": "setpoint-google-key", "defaultMode": 0o440}}
    ]
    assert pod["securityContext"].pop("fsGroup") == pod["securityContext"]["runAsGroup"]
    assert built == process(DEFAULT)


def test_components_can_be_combined(kubectl_alone: Kubectl, tmp_path: Path) -> None:
    """As an overlay of a team."""
    copytree(KUSTOMIZE, tmp_path / "kustomize")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(
        """
resources: [../kustomize/overlays/namespaced]
components:
  - ../kustomize/components/service-account-key
  - ../kustomize/components/service-monitor
  - ../kustomize/components/prometheus-rule
images: [{name: setpoint, newName: registry.example.com/setpoint, newTag: "7"}]
""",
        encoding="utf-8",
    )

    built = in_stream(kubectl_alone("kustomize", str(mine)))

    ((key, monitor),) = by_key([service_monitor(Installation())]).items()
    container = built[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
    assert built[key] == monitor
    ((key, rule),) = by_key([prometheus_rule(Installation())]).items()
    assert built[key] == rule
    assert container["image"] == "registry.example.com/setpoint:7"
    assert {"name": "SETPOINT_STORE", "value": "kubernetes?namespace=default"} in container["env"]
    assert "volumeMounts" in container


def test_a_component_keeps_cookies_in_annotations(kubectl_alone: Kubectl, tmp_path: Path) -> None:
    copytree(KUSTOMIZE, tmp_path / "kustomize")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(
        "resources: [../kustomize/base]\ncomponents: [../kustomize/components/cookie-annotation]\n", encoding="utf-8"
    )

    built = in_stream(kubectl_alone("kustomize", str(mine)))

    container = built[DEPLOYMENT]["spec"]["template"]["spec"]["containers"][0]
    container["env"].remove({"name": "SETPOINT_COOKIE_LOCATION", "value": "annotation"})
    assert built == process(DEFAULT)


def test_a_component_serves_the_dashboard_as_the_command_installs_it(kubectl_alone: Kubectl, tmp_path: Path) -> None:
    copytree(KUSTOMIZE, tmp_path / "kustomize")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(
        "resources: [../kustomize/base]\ncomponents: [../kustomize/components/dashboard]\n", encoding="utf-8"
    )

    assert in_stream(kubectl_alone("kustomize", str(mine))) == process(replace(DEFAULT, dashboard=True))


def test_every_component_that_needs_a_value_has_an_overlay() -> None:
    used = {
        Path(found).name
        for file in KUSTOMIZE.rglob("kustomization.yaml")
        for found in re.findall(r"- \.\./\.\./components/(\S+)", file.read_text(encoding="utf-8"))
    }

    assert {folder.name for folder in (KUSTOMIZE / "components").iterdir()} - used == {
        "cookie-annotation",
        "dashboard",
        "prometheus-rule",
        "service-monitor",
    }
