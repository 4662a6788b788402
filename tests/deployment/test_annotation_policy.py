"""`kubectl apply` on a real API server prints a warning for each annotation that is refused, or has no effect."""

import json
from typing import Any

import pytest

from tests.cluster.crds.resources import APIS, printed_definitions
from tests.cluster.polling import until
from tests.deployment.conftest import Kubectl

POLICY = "Warning: Validation failed for ValidatingAdmissionPolicy 'setpoint-annotations' with binding "
PREFIX = f"{POLICY}'setpoint-annotations': "
SPECS: dict[str, Any] = {
    "StorageBucket": {"location": "EU"},
    "SQLInstance": {"databaseVersion": "POSTGRES_16", "settings": {"tier": "db-f1-micro"}},
    "TrusteeConfig": {"profileType": "Permissive"},
}


@pytest.fixture(scope="module")
def warned(kubectl: Kubectl) -> Kubectl:
    """The shared cluster with everything that `setpoint crds` prints, once the policy is enforced."""
    kubectl.apply(printed_definitions())
    kubectl("wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=setpoint", "--timeout=240s")
    until(lambda: bool(_warnings(kubectl, "StorageBucket", {"setpoint.dev/probe": "x"})))
    return kubectl


def _warnings(kubectl: Kubectl, kind: str, annotations: dict[str, str], *options: str) -> list[str]:
    """The warnings of an apply, which is accepted all the same."""
    document = {
        "apiVersion": APIS[kind],
        "kind": kind,
        "metadata": {"name": "one", "annotations": annotations},
        "spec": SPECS[kind],
    }
    words = options or ("-n", "default", "--dry-run=server")
    done = kubectl.run("apply", *words, "-f", "-", stdin=json.dumps(document))
    assert done.returncode == 0, done.stderr
    return [line.removeprefix(PREFIX) for line in done.stderr.splitlines()]


@pytest.mark.parametrize(
    ("kind", "annotations", "warning"),
    [
        (
            "StorageBucket",
            {"cnrm.cloud.google.com/ignore-unspecified-field": "true"},
            "cnrm.cloud.google.com/ignore-unspecified-field is unknown, and has no effect; one that is close to a "
            "known one is refused: see docs/annotations.md",
        ),
        (
            "StorageBucket",
            {"cnrm.cloud.google.com/deletion-policy": "ABANDON"},
            'cnrm.cloud.google.com/deletion-policy is "ABANDON", which is refused: write abandon or delete, in lower '
            "case",
        ),
        (
            "StorageBucket",
            {"cnrm.cloud.google.com/reconcile-interval-in-seconds": "10m"},
            'cnrm.cloud.google.com/reconcile-interval-in-seconds is "10m", which is refused: write whole seconds, such '
            'as "600", or "0" for never again',
        ),
        (
            "SQLInstance",
            {"cnrm.cloud.google.com/state-into-spec": "merge"},
            "cnrm.cloud.google.com/state-into-spec has no effect on a SQLInstance: no live value is written into the "
            "spec here. Config Connector keeps the live value of a field that the spec leaves out, with merge and with "
            'absent: cnrm.cloud.google.com/ignore-unspecified-fields: "true" does so here, and "false" says that such '
            "a field goes back to its default",
        ),
        (
            "SQLInstance",
            {"cnrm.cloud.google.com/force-destroy": "true"},
            "cnrm.cloud.google.com/force-destroy has no effect on a SQLInstance: it is for StorageBucket and kinds of "
            "plug-ins that read it; leave it out",
        ),
        (
            "TrusteeConfig",
            {"cnrm.cloud.google.com/deletion-policy": "abandon"},
            "cnrm.cloud.google.com/deletion-policy has no effect on a TrusteeConfig: it is for kinds that stand for "
            "one live object; leave it out",
        ),
    ],
    ids=["unknown", "word", "seconds", "state-into-spec", "another kind", "an owner"],
)
def test_kubectl_apply_prints_a_warning(warned: Kubectl, kind: str, annotations: dict[str, str], warning: str) -> None:
    assert _warnings(warned, kind, annotations) == [warning]


@pytest.mark.parametrize(
    ("kind", "annotations"),
    [
        ("StorageBucket", {}),
        ("StorageBucket", {"cnrm.cloud.google.com/force-destroy": "true", "cnrm.cloud.google.com/project-id": "p"}),
        ("StorageBucket", {"example.com/managment": "x", "alpha.cnrm.cloud.google.com/reconciler": "direct"}),
        ("StorageBucket", {"cnrm.cloud.google.com/observed-secret-versions": "{}"}),
        (
            "StorageBucket",
            {
                "cnrm.cloud.google.com/state-into-spec": "absent",
                "cnrm.cloud.google.com/ignore-unspecified-fields": "true",
            },
        ),
        ("TrusteeConfig", {"setpoint.dev/merge": "two-way", "setpoint.dev/management": "observe"}),
    ],
    ids=str,
)
def test_kubectl_apply_prints_none_for_annotations_with_an_effect_or_of_other_tools(
    warned: Kubectl, kind: str, annotations: dict[str, str]
) -> None:
    assert _warnings(warned, kind, annotations) == []


def test_an_update_is_warned_of_and_accepted_too(warned: Kubectl, namespace: str) -> None:
    where = ("-n", namespace)
    assert _warnings(warned, "StorageBucket", {}, *where) == []

    done = warned.run("annotate", *where, "storagebucket", "one", "cnrm.cloud.google.com/deletion-policy=Abandon")

    assert done.stdout == "storagebucket.storage.cnrm.cloud.google.com/one annotated\n"
    assert done.stderr.startswith(f'{PREFIX}cnrm.cloud.google.com/deletion-policy is "Abandon", which is refused: ')


def test_objects_of_other_kinds_are_not_judged(warned: Kubectl, namespace: str) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "annotations": {"cnrm.cloud.google.com/deletion-polcy": "x"}},
    }

    done = warned.run("apply", "-n", namespace, "-f", "-", stdin=json.dumps(document))

    assert (done.returncode, done.stderr) == (0, "")
