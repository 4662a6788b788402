"""Admission by a webhook: what it changes is applied as planned, or told; and the next plan is at rest, or stable."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.terraform.command import Outcome
from tests.terraform.objects.webhooks import Mutation, Review, admission_webhook
from tests.terraform.objects.workspace import Workspace, config_map, declared
from tests.terraform.patches.configurations import make_config_map, patched

DEVIATION: Final = "The result is not as planned"
OUTDATED: Final = "The plan no longer holds"


def _colour(value: str) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/data/colour", "value": value}]


def _label(value: str) -> list[dict[str, Any]]:
    return [{"op": "add", "path": "/metadata/labels", "value": {"added": value}}]


def _sidecar(review: Review) -> list[dict[str, Any]]:
    spec = review.object["spec"]["template"]["spec"]
    if any(one["name"] == "proxy" for one in spec["containers"]):
        return []
    proxy = {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "proxy", "image": "proxy:1"}}
    return [proxy, {"op": "add", "path": "/spec/revisionHistoryLimit", "value": 3}, *_label("yes")]


# By the beginning of the names of objects.
RULES: Final[Mapping[str, Mutation]] = {
    "sidecar": _sidecar,
    "labelled": lambda review: _label("yes"),
    # Something else with each write, beside what is declared.
    "counting": lambda review: _label(str(review.count)),
    "late-label": lambda review: [] if review.is_dry_run else _label("yes"),
    # What is declared becomes something else: always, in dry runs as in writes.
    "green": lambda review: _colour("green"),
    # Or in writes alone; in both, and not the same; something else each time.
    "late": lambda review: [] if review.is_dry_run else _colour("green"),
    "two-faced": lambda review: _colour("foreseen" if review.is_dry_run else "written"),
    "restless": lambda review: _colour(f"number-{review.count}"),
    # Refused in dry runs, or in writes alone.
    "forbidden": lambda review: "names of this sort are not allowed here",
    "late-refusal": lambda review: [] if review.is_dry_run else "the quota of the team is used up",
}
RULES_LONGEST_FIRST: Final = dict(sorted(RULES.items(), key=lambda one: -len(one[0])))
AT_REST: Final = ("sidecar", "labelled", "counting", "late-label", "green")
DEPLOYMENT: Final = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: sidecar, namespace: NAMESPACE}
    spec:
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: web:1}]}
    """


def _labels(*names: str) -> set[str]:
    return {f"setpoint_{type_}.{one}" for one in names for type_ in ("object", "patch")}


def _configuration(*names: str, colour: str) -> str:
    """An object and a patch for each rule; the patched object has a name of its own."""
    text = ""
    for name in names:
        document = DEPLOYMENT if name == "sidecar" else config_map(name, colour=colour)
        patch = f'patch = {{ data = {{ colour = "{colour}" }} }}'
        if name == "sidecar":
            document = DEPLOYMENT + f"  minReadySeconds: {len(colour)}\n"
            patch = f"patch = {{ spec = {{ minReadySeconds = {len(colour)} }} }}"
        kind, version = ("Deployment", "apps/v1") if name == "sidecar" else ("ConfigMap", "v1")
        text += declared(name, document) + patched(name, f"{name}-other", patch, kind=kind, version=version)
    return text


@pytest.fixture
def mutated(workspace: Workspace, tmp_path: Path) -> Any:
    """A namespace with objects of another tool in it, made before the webhook is there."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    workspace.make("deployments", {"metadata": {"name": "sidecar-other"}, "spec": spec})
    for name in RULES:
        if name != "sidecar":
            make_config_map(workspace, f"{name}-other", {"colour": "red"})
    with admission_webhook(workspace.access, workspace.namespace, tmp_path, RULES_LONGEST_FIRST):
        yield workspace


def _errors(outcome: Outcome) -> dict[str, str]:
    """The summary of each error: none is Terraform's own about this provider, nor one of a mistake."""
    shown = [one for one in outcome.diagnostics if one.severity == "error"]
    words = ("Provider", "mistake of the provider")
    assert [one for one in shown if any(word in f"{one.summary} {one.detail}" for word in words)] == []
    return {one.address: one.summary for one in shown}


def test_what_admission_adds_or_always_changes_is_planned_and_then_at_rest(mutated: Workspace) -> None:
    for colour in ("blue", "yellow"):
        mutated.write(_configuration(*AT_REST, colour=colour))
        outcome = mutated.apply()
        assert (outcome.code, _errors(outcome)) == (0, {})
        mutated.assert_no_changes()


def test_what_admission_changes_in_writes_alone_is_told_each_time_and_nothing_is_lost(mutated: Workspace) -> None:
    for colour in ("blue", "yellow"):
        mutated.write(_configuration("late", "two-faced", colour=colour))
        for _ in range(2):
            outcome = mutated.apply()
            assert set(outcome.actions) == _labels("late", "two-faced"), colour
            assert _errors(outcome) == dict.fromkeys(_labels("late", "two-faced"), DEVIATION)
    uids = [mutated.uid("configmaps", name) for name in ("late", "late-other")]
    assert mutated.get("configmaps", "late")["data"] == {"colour": "green"}
    assert mutated.project.destroy().code == 0
    assert mutated.get("configmaps", "late") is None
    assert mutated.uid("configmaps", "late-other") in uids


def test_what_admission_refuses_is_told_in_its_words_at_plan_or_at_apply(mutated: Workspace) -> None:
    for name, words in (("forbidden", "names of this sort"), ("late-refusal", "the quota of the team")):
        mutated.write(_configuration(name, colour="blue"))
        outcome = mutated.plan() if name == "forbidden" else mutated.apply()

        assert set(_errors(outcome)) == _labels(name)
        shown = [one for one in outcome.diagnostics if one.severity == "error"]
        assert [one for one in shown if words not in one.detail] == []
        assert mutated.get("configmaps", name) is None
        assert mutated.get("configmaps", f"{name}-other")["data"] == {"colour": "red"}
    outcome = mutated.plan()
    assert outcome.actions == dict.fromkeys(_labels("late-refusal"), "create")


def test_a_value_that_admission_makes_anew_each_time_is_never_applied_as_planned(mutated: Workspace) -> None:
    mutated.write(_configuration("restless", colour="blue"))
    for _ in range(2):
        outcome = mutated.apply()

        assert set(_errors(outcome)) == _labels("restless")
        assert set(_errors(outcome).values()) <= {OUTDATED, DEVIATION}
