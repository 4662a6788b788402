"""Nothing that happens for no reason is a reason to write: no process makes work for itself."""

import re
from functools import partial
from typing import Final

from soak.fleet.process import RunProcess
from tests.cluster.patience import until
from tests.cluster.trustee.estate import Estate
from tests.cluster.trustee.manifests import trustee_config
from tests.cluster.trustee.plot import DEPLOYMENT, KBS, SERVICE, TRUSTEE, Plot

FLIPS: Final = 50
PASSES: Final = 100
_STEPS: Final = re.compile(
    r'^controller_runtime_reconcile_total\{controller="(\w+)",result="\w+"\} (\d+)', re.MULTILINE
)


def _steps(keeper: RunProcess, kind: str) -> int:
    """How many steps it took for resources of that kind."""
    return sum(int(number) for name, number in _STEPS.findall(keeper.metrics()) if name.lower() == kind.lower())


def _ready(plot: Plot) -> None:
    plot.settle(trustee_config())
    plot.bring_up()
    plot.until(TRUSTEE, lambda found: found["status"].get("isReady") is True)
    plot.until_noted(TRUSTEE, "UpToDate")


def test_conditions_of_the_deployment_that_nobody_goes_by_are_no_reason_to_write(estate: Estate, plot: Plot) -> None:
    _ready(plot)
    asked, steps = len(estate.asked()), _steps(estate.keeper, "KbsConfig")

    for number in range(FLIPS):
        at = f"2026-01-01T00:{number:02}:00Z"
        beat = {"type": "Progressing", "status": "True", "reason": f"Beat{number}", "message": "", "lastUpdateTime": at}
        body = {"status": {"conditions": [{**beat, "lastTransitionTime": at}]}}
        assert plot.kubectl.access.call("PATCH", f"{plot.path(DEPLOYMENT)}/status", body).status == 200
    # Whoever has heard of this has heard of all of them.
    plot.bring_up(0)
    plot.until(TRUSTEE, lambda found: "isReady" not in found["status"])

    writes = [one for one in estate.writes(asked, plot.namespace) if "/events" not in one]
    assert writes == [f"PATCH {plot.path(KBS)}/status", f"PATCH {plot.path(TRUSTEE)}/status"]
    assert _steps(estate.keeper, "KbsConfig") > steps + 2


def test_a_hundred_looks_at_what_is_as_it_should_be_write_nothing(estate: Estate, plot: Plot) -> None:
    _ready(plot)
    children = (KBS, DEPLOYMENT, SERVICE, "secret/tc-auth-secret", "configmap/tc-kbs-config")
    before = [plot.version(target) for target in (TRUSTEE, *children)]
    asked = len(estate.asked())

    while (reads := _reads(estate, asked, plot)) < PASSES:
        # A note that is nobody's business: the owner of what was touched has to look all the same.
        body = {"metadata": {"annotations": {"example.com/note": str(reads)}}}
        assert plot.kubectl.access.call("PATCH", plot.path("configmap/tc-resource-policy"), body).status == 200
        until(partial(_are_more, estate, asked, plot, reads))

    assert estate.writes(asked, plot.namespace) == []
    assert [plot.version(target) for target in (TRUSTEE, *children)] == before


def _are_more(estate: Estate, asked: int, plot: Plot, reads: int) -> bool:
    return _reads(estate, asked, plot) > reads


def _reads(estate: Estate, asked: int, plot: Plot) -> int:
    """How often the first child was read: once in each look."""
    path = plot.path("configmap/tc-attestation-policy-gpu")
    return sum(one.method == "GET" and one.path == path for one in estate.asked()[asked:])


def test_a_look_that_somebody_asks_for_is_acknowledged_and_nothing_else_is_written(estate: Estate, plot: Plot) -> None:
    _ready(plot)
    asked = len(estate.asked())

    for number in range(10):
        plot.kubectl("annotate", "--overwrite", TRUSTEE, f"setpoint.dev/reconcile-requested-at={number}")
        handled = f"--for=jsonpath={{.status.lastHandledReconcileAt}}={number}"
        plot.kubectl("wait", TRUSTEE, handled, "--timeout=60s")

    assert estate.writes(asked, plot.namespace) == [f"PATCH {plot.path(TRUSTEE)}/status"] * 10


def test_another_process_finds_nothing_to_write(estate: Estate, plot: Plot) -> None:
    """All that the tests before left behind is looked at: what is edited, in trouble, ready and not."""
    _ready(plot)
    numbers = {kind: _number_of(plot, kind) for kind in ("trusteeconfig", "kbsconfig")}
    before = [plot.version(target) for target in (TRUSTEE, KBS, DEPLOYMENT, SERVICE)]

    assert estate.keeper.stop() == 0
    asked = len(estate.asked())
    estate.keeper.start()
    until(lambda: all(_steps(estate.keeper, kind) >= number for kind, number in numbers.items()))

    assert [one for one in estate.writes(asked) if "/events" not in one] == []
    assert estate.writes(asked, plot.namespace) == []
    assert [plot.version(target) for target in (TRUSTEE, KBS, DEPLOYMENT, SERVICE)] == before


def _number_of(plot: Plot, kind: str) -> int:
    return len(plot.kubectl("get", kind, "--all-namespaces", "--no-headers", "-o", "name").splitlines())
