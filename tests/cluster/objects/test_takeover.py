"""Objects that `kubectl apply` or another applier managed before: their fields become ours, and can be removed."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.clients.kubernetes.requests import Endpoint
from setpoint.core.decide import Decision
from setpoint.core.redaction import LAST_APPLIED, LAST_APPLIED_PATH, REDACTED
from setpoint.core.values.json_types import MISSING
from setpoint.engine.intent import resolve_intent
from setpoint.engine.kind import Present
from setpoint.engine.step.outcomes import Settled
from setpoint.errors import HeldByOthers, ManifestInvalid, RemoteConflict
from setpoint.kinds.kubernetes_object.remote import RemoteObjects
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map, deployment

KubectlApply = Callable[[Tree], None]
LAST_APPLIED_CHANGE = (REDACTED, MISSING)


@pytest.fixture
def kubectl_apply(harness: ObjectHarness, kubectl_program: Path) -> KubectlApply:
    """`kubectl apply`, client-side, in the namespace of the test."""
    program = [str(kubectl_program), "--kubeconfig", str(harness.access.kubeconfig), "--namespace", harness.namespace]

    def apply(document: Tree) -> None:
        arguments = ["apply", "--validate=false", "-f", "-"]
        subprocess.run([*program, *arguments], input=json.dumps(document).encode(), check=True, capture_output=True)

    return apply


def managers(harness: ObjectHarness, plural: str = "configmaps", name: str = "map", api: str = "api/v1") -> list[str]:
    live = harness.live(plural, name, api)
    assert live is not None
    return [one["manager"] for one in live["metadata"]["managedFields"]]


def data_of(harness: ObjectHarness) -> Any:
    live = harness.live("configmaps", "map")
    assert live is not None
    return live["data"]


def test_what_kubectl_applied_becomes_ours_and_goes_if_the_manifest_leaves_it_out(
    harness: ObjectHarness, kubectl_apply: KubectlApply
) -> None:
    kubectl_apply(config_map(a="1", b="2"))
    harness.declare(config_map(a="1"))

    assert harness.changes() == {
        "data.b": ("2", MISSING),
        f'metadata.annotations["{LAST_APPLIED}"]': LAST_APPLIED_CHANGE,
    }
    assert isinstance(harness.step_until_done(), Settled)
    live = harness.live("configmaps", "map")
    assert live is not None
    assert (live["data"], live["metadata"].get("annotations")) == ({"a": "1"}, None)
    assert managers(harness) == [f"setpoint/{harness.namespace}/one"]
    assert harness.plan().is_empty


def test_a_default_takes_the_place_of_what_is_removed_and_the_plan_shows_it(
    harness: ObjectHarness, kubectl_apply: KubectlApply
) -> None:
    kubectl_apply(deployment(replicas=3, minReadySeconds=7))
    harness.declare(deployment(minReadySeconds=7))

    shown = harness.changes()
    assert shown.pop(str(LAST_APPLIED_PATH)) == LAST_APPLIED_CHANGE
    assert shown == {"spec.replicas": (3, 1)}
    assert isinstance(harness.step_until_done(), Settled)
    live = harness.live("deployments", "web", "apis/apps/v1")
    assert live is not None
    assert (live["spec"]["replicas"], live["spec"]["minReadySeconds"]) == (1, 7)


def test_a_value_of_kubectl_apply_that_differs_is_still_a_conflict(
    harness: ObjectHarness, kubectl_apply: KubectlApply
) -> None:
    kubectl_apply(config_map(a="theirs"))
    harness.declare(config_map(a="1"))

    assert isinstance(harness.stop_reason(), HeldByOthers)
    assert managers(harness) == ["kubectl-client-side-apply"]


def test_a_process_that_ends_between_takeover_and_apply_changes_nothing_about_the_outcome(
    harness: ObjectHarness, kubectl_apply: KubectlApply, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Stands for kill -9."""

    take_over = RemoteObjects._take_over

    async def killed(self: RemoteObjects, *arguments: Any) -> Any:
        await take_over(self, *arguments)
        raise Killed

    kubectl_apply(config_map(a="1", b="2"))
    harness.declare(config_map(a="1"))
    foreseen = harness.changes()
    with monkeypatch.context() as patched:
        patched.setattr(RemoteObjects, "_take_over", killed)
        with pytest.raises(Killed):
            harness.step()
    harness.restart()

    assert data_of(harness) == {"a": "1", "b": "2"}
    assert harness.changes() == foreseen
    assert isinstance(harness.step_until_done(), Settled)
    assert data_of(harness) == {"a": "1"}


def test_an_object_that_changed_meanwhile_is_observed_again(
    harness: ObjectHarness, kubectl_apply: KubectlApply, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_over = RemoteObjects._take_over

    async def late(self: RemoteObjects, *arguments: Any) -> Any:
        harness.edit(harness.path("configmaps", "map"), {"data": {"c": "3"}})
        return await take_over(self, *arguments)

    kubectl_apply(config_map(a="1", b="2"))
    harness.declare(config_map(a="1"))
    with monkeypatch.context() as patched:
        patched.setattr(RemoteObjects, "_take_over", late)
        assert isinstance(harness.stop_reason(), RemoteConflict)

    assert data_of(harness) == {"a": "1", "b": "2", "c": "3"}
    assert isinstance(harness.step_until_done(), Settled)
    assert data_of(harness) == {"a": "1", "c": "3"}


def test_what_was_there_before_the_first_apply_goes_once_it_was_ours_and_else_stays(harness: ObjectHarness) -> None:
    harness.access.call("POST", harness.path("configmaps"), config_map(a="1", b="2", c="3"))
    harness.edit(harness.path("configmaps", "map"), {"metadata": {"managedFields": [{}]}})
    harness.settle(config_map(a="1", b="2"))
    assert "before-first-apply" in managers(harness)
    harness.declare(config_map(a="1"))

    assert harness.changes() == {"data.b": ("2", MISSING)}
    assert isinstance(harness.step_until_done(), Settled)
    assert data_of(harness) == {"a": "1", "c": "3"}


def test_what_another_command_of_kubectl_set_goes_once_it_was_ours_and_else_stays(harness: ObjectHarness) -> None:
    address = f"{harness.path('configmaps')}?fieldManager=kubectl-create"
    harness.access.call("POST", address, config_map(a="1", b="2", c="3"))
    harness.settle(config_map(a="1", b="2"))
    harness.declare(config_map(a="1"))

    assert harness.changes() == {"data.b": ("2", MISSING)}
    assert isinstance(harness.step_until_done(), Settled)
    assert data_of(harness) == {"a": "1", "c": "3"}
    assert harness.plan().is_empty


@pytest.mark.parametrize("value", ["1", "2"])
def test_fields_of_a_manager_that_is_handed_over_become_ours(harness: ObjectHarness, value: str) -> None:
    endpoint = Endpoint("", "v1", "configmaps", harness.namespace, "map")
    harness.apply_as("Terraform", endpoint, config_map(a="1", b="2"))
    harness.apply_as("helm", endpoint, config_map(c="3"))
    harness.declare(config_map(a=value), takeOverFrom=["Terraform"])

    assert harness.changes().get("data.b") == ("2", MISSING)
    assert isinstance(harness.step_until_done(), Settled)
    assert data_of(harness) == {"a": value, "c": "3"}
    assert sorted(managers(harness)) == ["helm", f"setpoint/{harness.namespace}/one"]
    assert harness.plan().is_empty


def test_a_controller_is_never_taken_over_from(harness: ObjectHarness) -> None:
    with pytest.raises(ManifestInvalid, match=r"takeOverFrom.*a controller of the cluster"):
        harness.declare(config_map(a="1"), takeOverFrom=["kube-controller-manager"])
    with pytest.raises(ManifestInvalid, match=r"takeOverFrom"):
        harness.declare(config_map(a="1"), takeOverFrom=["setpoint/shop/web"])


OPTIONAL = {
    "replicas": st.integers(0, 3),
    "minReadySeconds": st.integers(1, 5),
    "paused": st.booleans(),
    "strategy": st.sampled_from([{"type": "Recreate"}, {"type": "RollingUpdate"}]),
}
CONTAINER = {
    "args": st.lists(st.sampled_from("xyz"), max_size=2),
    "env": st.lists(st.sampled_from("ABC"), unique=True).map(lambda names: [{"name": one} for one in names]),
    "resources": st.sampled_from([{}, {"limits": {"cpu": "1"}}, {"limits": {"cpu": "1", "memory": "1Gi"}}]),
    "imagePullPolicy": st.just("Never"),
}
VOLUMES = st.lists(st.sampled_from("vw"), unique=True)


@st.composite
def deployments(draw: st.DrawFn) -> tuple[Tree, Tree]:
    """A Deployment, and the same with some of its fields left out."""
    spec, container = both = [draw(st.fixed_dictionaries({}, optional=fields)) for fields in (OPTIONAL, CONTAINER)]
    volumes = draw(VOLUMES)
    kept = [draw(st.sets(st.sampled_from([*one]) if one else st.nothing())) for one in (spec, container, volumes)]

    def made(spec: Tree, container: Tree, volumes: list[str]) -> Tree:
        tree = deployment(**spec)
        pod = tree["spec"]["template"]["spec"]
        pod["containers"][0] |= container
        return tree if not volumes else {**tree, "spec": {**tree["spec"], "template": _with_volumes(tree, volumes)}}

    fewer = (
        {name: one for name, one in fields.items() if name in some} for fields, some in zip(both, kept, strict=False)
    )
    return made(spec, container, volumes), made(next(fewer), next(fewer), [one for one in volumes if one in kept[2]])


def _with_volumes(tree: Tree, volumes: list[str]) -> Tree:
    template = tree["spec"]["template"]
    return {**template, "spec": {**template["spec"], "volumes": [{"name": one, "emptyDir": {}} for one in volumes]}}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deployments())
def test_the_plan_of_a_takeover_is_what_becomes_of_the_object(harness: ObjectHarness, both: tuple[Tree, Tree]) -> None:
    before, after = both
    path = harness.path("deployments", "web", "apis/apps/v1")
    made = harness.access.call(
        "POST",
        f"{harness.path('deployments', api='apis/apps/v1')}?fieldManager=kubectl-client-side-apply",
        {**before, "metadata": {**before["metadata"], "annotations": {LAST_APPLIED: "{}"}}},
    )
    assert made.status == 201, made
    try:
        harness.declare(after)
        foreseen = foreseen_object(harness)
        outcome = harness.step_until_done()
        assert isinstance(outcome, Settled), outcome
        live = harness.live("deployments", "web", "apis/apps/v1")

        assert live is not None
        assert (foreseen["spec"], foreseen["metadata"].get("annotations")) == (live["spec"], None)
        assert live["metadata"].get("annotations") is None
        assert managers(harness, "deployments", "web", "apis/apps/v1") == [f"setpoint/{harness.namespace}/one"]
        assert harness.plan().is_empty
    finally:
        harness.access.call("DELETE", path)
        harness.forget()


def foreseen_object(harness: ObjectHarness) -> Any:
    """The object as a dry run foresees it."""

    async def dry_run() -> Any:
        resource = await harness.store.get(harness.ref())
        assert resource is not None
        kind, intent = harness.kind, await resolve_intent(resource, harness.engine)
        observed = await kind.observe(intent.location)
        assert isinstance(observed, Present)
        return (await kind.remote.dry_run(intent, observed, Decision.FIRST_LOOK)).after

    return harness.run(dry_run())
