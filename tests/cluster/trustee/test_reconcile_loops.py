"""Nothing that happens for no reason is a reason to write: no process makes work for itself."""

import re
from functools import partial
from typing import Final

from soak.fleet.process import RunProcess
from tests.cluster.polling import until
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.trustee_cluster import TrusteeCluster
from tests.cluster.trustee.trustee_namespace import DEPLOYMENT, KBS, SERVICE, TRUSTEE, TrusteeNamespace

FLIPS: Final = 50
PASSES: Final = 100
_STEPS: Final = re.compile(
    r'^controller_runtime_reconcile_total\{controller="(\w+)",result="\w+"\} (\d+)', re.MULTILINE
)


def _steps(keeper: RunProcess, kind: str) -> int:
    """How many steps it took for resources of that kind."""
    return sum(int(number) for name, number in _STEPS.findall(keeper.metrics()) if name.lower() == kind.lower())


def _ready(trustee: TrusteeNamespace) -> None:
    trustee.settle(trustee_config())
    trustee.bring_up()
    trustee.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
    trustee.until_noted(TRUSTEE, "UpToDate")


def test_irrelevant_conditions_of_the_deployment_are_no_reason_to_write(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    _ready(trustee)
    asked, steps = len(trustee_cluster.asked()), _steps(trustee_cluster.keeper, "KbsConfig")

    for number in range(FLIPS):
        at = f"2026-01-01T00:{number:02}:00Z"
        beat = {"type": "Progressing", "status": "True", "reason": f"Beat{number}", "message": "", "lastUpdateTime": at}
        body = {"status": {"conditions": [{**beat, "lastTransitionTime": at}]}}
        assert trustee.kubectl.access.call("PATCH", f"{trustee.path(DEPLOYMENT)}/status", body).status == 200
    # A watcher that received this event has received all of them.
    trustee.bring_up(0)
    trustee.until(TRUSTEE, lambda found: "isReady" not in found["status"])

    writes = [one for one in trustee_cluster.writes(asked, trustee.namespace) if "/events" not in one]
    assert writes == [f"PATCH {trustee.path(KBS)}/status", f"PATCH {trustee.path(TRUSTEE)}/status"]
    assert _steps(trustee_cluster.keeper, "KbsConfig") > steps + 2


def test_a_hundred_looks_at_what_is_as_it_should_be_write_nothing(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    _ready(trustee)
    children = (KBS, DEPLOYMENT, SERVICE, "secret/tc-auth-secret", "configmap/tc-kbs-config")
    before = [trustee.version(target) for target in (TRUSTEE, *children)]
    asked = len(trustee_cluster.asked())

    while (reads := _reads(trustee_cluster, asked, trustee)) < PASSES:
        # An irrelevant annotation: the owner of the object has to reconcile all the same.
        body = {"metadata": {"annotations": {"example.com/note": str(reads)}}}
        assert trustee.kubectl.access.call("PATCH", trustee.path("configmap/tc-resource-policy"), body).status == 200
        until(partial(_are_more, trustee_cluster, asked, trustee, reads))

    assert trustee_cluster.writes(asked, trustee.namespace) == []
    assert [trustee.version(target) for target in (TRUSTEE, *children)] == before


def _are_more(trustee_cluster: TrusteeCluster, asked: int, trustee: TrusteeNamespace, reads: int) -> bool:
    return _reads(trustee_cluster, asked, trustee) > reads


def _reads(trustee_cluster: TrusteeCluster, asked: int, trustee: TrusteeNamespace) -> int:
    """How often the first child was read: once in each look."""
    path = trustee.path("configmap/tc-attestation-policy-gpu")
    return sum(one.method == "GET" and one.path == path for one in trustee_cluster.asked()[asked:])


def test_a_requested_reconcile_is_acknowledged_and_nothing_else_is_written(
    trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace
) -> None:
    _ready(trustee)
    asked = len(trustee_cluster.asked())

    for number in range(10):
        trustee.kubectl("annotate", "--overwrite", TRUSTEE, f"setpoint.dev/reconcile-requested-at={number}")
        handled = f"--for=jsonpath={{.status.lastHandledReconcileAt}}={number}"
        trustee.kubectl("wait", TRUSTEE, handled, "--timeout=240s")

    assert trustee_cluster.writes(asked, trustee.namespace) == [f"PATCH {trustee.path(TRUSTEE)}/status"] * 10


def test_another_process_finds_nothing_to_write(trustee_cluster: TrusteeCluster, trustee: TrusteeNamespace) -> None:
    """All that the tests before left behind is looked at: what is edited, in trouble, ready and not."""
    _ready(trustee)
    numbers = {kind: _number_of(trustee, kind) for kind in ("trusteeconfig", "kbsconfig")}
    before = [trustee.version(target) for target in (TRUSTEE, KBS, DEPLOYMENT, SERVICE)]

    assert trustee_cluster.keeper.stop() == 0
    asked = len(trustee_cluster.asked())
    trustee_cluster.keeper.start()
    until(lambda: all(_steps(trustee_cluster.keeper, kind) >= number for kind, number in numbers.items()))

    assert [one for one in trustee_cluster.writes(asked) if "/events" not in one] == []
    assert trustee_cluster.writes(asked, trustee.namespace) == []
    assert [trustee.version(target) for target in (TRUSTEE, KBS, DEPLOYMENT, SERVICE)] == before


def _number_of(trustee: TrusteeNamespace, kind: str) -> int:
    return len(trustee.kubectl("get", kind, "--all-namespaces", "--no-headers", "-o", "name").splitlines())
