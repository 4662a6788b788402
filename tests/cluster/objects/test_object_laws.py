"""Laws for any two manifests of an object, on a real API server."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING
from setpoint.core.values.paths import get_at
from setpoint.engine.step.outcomes import Settled
from setpoint.kinds.kubernetes_object.managed_fields import setpoint_projection
from tests.cluster.objects.object_harness import ObjectHarness, Tree, config_map

pytestmark = pytest.mark.laws
# Each example is a dozen requests.
few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
APPS = "apis/apps/v1"
WORDS = st.text("ab.-_", min_size=1, max_size=5).filter(lambda text: text[0] in "ab" and text[-1] in "ab")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5)
NUMBERS: Iterator[int] = itertools.count()


@st.composite
def workloads(draw: st.DrawFn) -> Tree:
    """A Deployment: any of its maps, keyed lists, plain lists and numbers, in any order."""
    names = draw(st.lists(st.sampled_from(("main", "side", "log")), min_size=1, max_size=3, unique=True))
    containers: list[Tree] = []
    for name in names:
        env = draw(st.lists(st.sampled_from("ABC"), max_size=3, unique=True))
        container: Tree = {"name": name, "image": draw(st.sampled_from(("a:1", "a:2")))}
        container["env"] = [{"name": one, "value": draw(TEXT)} for one in env]
        if draw(st.booleans()):
            container["args"] = draw(st.lists(TEXT, max_size=2))
        if draw(st.booleans()):
            ports = draw(st.lists(st.integers(1, 4), max_size=2, unique=True))
            container["ports"] = [{"containerPort": one} for one in ports]
        containers.append(container)
    labels = {"app": "web", **draw(st.dictionaries(WORDS, st.sampled_from(("", "x", "y")), max_size=2))}
    spec: Tree = {"selector": {"matchLabels": {"app": "web"}}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    if draw(st.booleans()):
        spec["replicas"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        surge = draw(st.sampled_from((1, "10%")))
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def live_of(harness: ObjectHarness, plural: str, name: str, api: str = "api/v1") -> Tree:
    found = harness.live(plural, name, api)
    assert found is not None
    return found


@few
@given(workloads(), workloads())
def test_after_any_change_the_object_is_as_declared_and_the_plan_is_empty(
    harness: ObjectHarness, first: Tree, then: Tree
) -> None:
    name = f"n{next(NUMBERS)}"
    for wanted in (first, then):
        wanted["metadata"]["name"] = name
        harness.settle(wanted, name)

        live = live_of(harness, "deployments", name, APPS)
        assert harness.plan(name).is_empty
        for path, value in setpoint_projection(live).leaves.items():
            declared = get_at(wanted, path)
            assert declared is MISSING or same(declared, value), path
        order = [one["name"] for one in live["spec"]["template"]["spec"]["containers"]]
        assert order == [one["name"] for one in wanted["spec"]["template"]["spec"]["containers"]]


@few
@given(
    st.dictionaries(WORDS, TEXT, min_size=1, max_size=4),
    st.dictionaries(WORDS, TEXT, max_size=4),
    st.data(),
)
def test_ignored_fields_are_left_alone_and_the_others_are_reverted(
    harness: ObjectHarness, ours: dict[str, str], theirs: dict[str, str], data: st.DataObject
) -> None:
    name = f"m{next(NUMBERS)}"
    ignored = data.draw(st.sets(st.sampled_from(sorted(ours))))
    paths = [f'data["{key}"]' for key in ignored]
    harness.settle(config_map(name, **ours), name, ignoreFields=paths)
    harness.edit(harness.path("configmaps", name), {"data": theirs})

    assert isinstance(harness.step_until_done(name), Settled)

    expected = {**theirs, **{key: text for key, text in ours.items() if key not in ignored or key not in theirs}}
    assert live_of(harness, "configmaps", name)["data"] == expected
    assert harness.plan(name).is_empty


@few
@given(
    st.dictionaries(WORDS, st.text(max_size=20), max_size=3), st.dictionaries(WORDS, st.text(max_size=20), max_size=3)
)
def test_no_value_of_a_secret_is_shown(harness: ObjectHarness, first: dict[str, str], then: dict[str, str]) -> None:
    name = f"s{next(NUMBERS)}"
    for values in (first, then):
        marked = {key: f"hidden<{text}>" for key, text in values.items()}
        metadata: Any = {"name": name}
        harness.declare({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": marked}, name)
        shown = str(harness.plan(name).to_data())
        harness.step_until_done(name)

        assert "hidden" not in shown
        assert "aGlkZGVu" not in shown
        assert "aGlkZGVu" not in str(harness.status(name))
