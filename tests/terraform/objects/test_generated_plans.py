"""For all objects, unknown values and edits between a plan and its apply: Terraform finds nothing inconsistent.

The number of examples is that of the environment variable `SETPOINT_GENERATED_PLANS`.
"""

import asyncio
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import Phase, example, given, settings

from setpoint.terraform.connections.clusters import CLUSTER, ClusterConnections
from setpoint.terraform.cty.values import AttributeValues
from setpoint.terraform.framework.schema import NestedAttributes
from setpoint.terraform.resources.object_state import read_private_state
from tests.cluster.access import Access
from tests.terraform.objects.admission import LABEL, NOT_IN_PLANS, ONCE_LABELLED, mutating
from tests.terraform.objects.core_in_process import Refused, Resource
from tests.terraform.objects.generated_plan_steps import (
    OTHER_FORM,
    REMADE,
    DeclaredObject,
    Place,
    PlanStep,
    steps,
    with_unknown,
)
from tests.terraform.objects.manifests import DEFINITION
from tests.terraform.objects.workspace import define

log = logging.getLogger(__name__)
EXAMPLES: Final = int(os.environ.get("SETPOINT_GENERATED_PLANS", "80"))
ANNOTATION: Final = "setpoint.dev/terraform-id"
IMMUTABLE: Final = "Immutable field changed"
HELD: Final = {"metadata": {"finalizers": ["example.com/busy"]}}


@dataclass(slots=True)
class World:
    """A namespace with admission that mutates, and the connection of the provider to it."""

    access: Access
    place: Place
    runner: asyncio.Runner
    clusters: ClusterConnections
    numbers: Iterator[int] = field(default_factory=itertools.count)
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def cluster(self) -> AttributeValues:
        assert isinstance(CLUSTER.type, NestedAttributes)
        return {**dict.fromkeys(CLUSTER.type.attributes), "config_path": str(self.access.kubeconfig)}


@pytest.fixture(scope="module")
def world(api_server: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A namespace of this module's own."""
    cache: Path = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner() as runner, ExitStack() as policies:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        namespace = api_server.new_namespace(is_tenant=False)
        clusters = ClusterConnections()
        made = World(api_server, Place(namespace), runner, clusters)
        clusters.default = made.cluster
        define(api_server, DEFINITION.replace("GROUP", made.place.group))
        policies.enter_context(mutating(api_server, namespace, "late", NOT_IN_PLANS))
        policies.enter_context(mutating(api_server, namespace, "turning", ONCE_LABELLED))
        yield made
        log.info("generated plans: %s", dict(made.outcomes))
        session = clusters.session(None)
        runner.run(session.clusters.close())
        runner.run(session.client.close())
    api_server.delete_namespace(namespace)


class OtherWriters:
    """Other writers of the object of one example."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        # The uid of each object that another writer made, and that must not be touched, by its path.
        self.theirs: dict[str, str] = {}

    def edit(self, how: str, declared: DeclaredObject) -> None:
        """Does something to the object, if there is one."""
        tree = declared.tree(self.world.place, self.number)
        path = self.world.place.path(declared.kind, tree["metadata"]["name"])
        live = self.world.access.call("GET", path)
        if live.status == 200 and not live.body["metadata"].get("deletionTimestamp"):
            getattr(self, f"_{how}", self._patch)(how, path, declared, live.body)

    def _nothing(self, *_: Any) -> None:
        pass

    def _patch(self, how: str, path: str, declared: DeclaredObject, live: Any) -> None:
        member = {"ConfigMap": "data", "Secret": "data"}.get(declared.kind, "spec")
        value: Any = {"colour": "dGhlaXJz"}
        if declared.kind == "Service":
            value = {"selector": {"colour": "theirs"}}
        if declared.kind == "Record":
            value = {"host": "theirs"}
        change: dict[str, Any] = {
            "change": {member: value},
            "add": {"metadata": {"labels": {"theirs": "yes"}}},
            "label": {"metadata": {"labels": {LABEL: "yes"}}},
            "unmark": {"metadata": {"annotations": {ANNOTATION: None}}},
            "freeze": {"immutable": True} if member == "data" else {"metadata": {"labels": {"frozen": "no"}}},
        }[how]
        self.world.access.call("PATCH", f"{path}?fieldManager=kubectl-edit", change)

    def _delete(self, how: str, path: str, declared: DeclaredObject, live: Any) -> None:
        self.world.access.call("DELETE", path)
        self.theirs.pop(path, None)

    def _remake(self, how: str, path: str, declared: DeclaredObject, live: Any) -> None:
        self.world.access.call("DELETE", path)
        tree = declared.tree(self.world.place, self.number)
        made = self.world.access.call("POST", path.rpartition("/")[0], tree)
        assert made.status == 201, made
        self.theirs[path] = made.body["metadata"]["uid"]

    def _hold(self, how: str, path: str, declared: DeclaredObject, live: Any) -> None:
        self.world.access.call("PATCH", path, HELD)
        self.world.access.call("DELETE", path)
        self.theirs.pop(path, None)

    def _declare(self, how: str, path: str, declared: DeclaredObject, live: Any) -> None:
        tree = declared.tree(self.world.place, self.number)
        if declared.kind == "ConfigMap":
            tree["data"]["colour"] = "declared"
        where = f"{path}?fieldManager=another-tool&force=true"
        self.world.access.call("PATCH", where, tree, patch_type="application/apply-patch+yaml")


async def run_steps(world: World, all_steps: list[PlanStep]) -> None:
    """Plans and applies each step; whatever fails is an error of ours, and loses nothing."""
    number = next(world.numbers)
    resource, writers = Resource(world.clusters), OtherWriters(world, number)
    for step in all_steps:
        declared = step.declared
        config = declared.config(world.place, number)
        if "cluster" in step.unknown:
            config["cluster"] = world.cluster
        # An apply waits for what is being deleted, unless its plan has said otherwise.
        between = "delete" if step.between == "hold" and step.unknown else step.between
        writers.edit("delete" if step.before == "hold" else step.before, declared)
        planned = with_unknown(config, step.unknown, declared.tree(world.place, number))
        try:
            plan = await resource.plan(planned, is_refreshed=step.is_refreshed)
            writers.edit(between, declared)
            await resource.apply(plan, config)
            world.outcomes[plan.action] += 1
        except Refused as refused:
            world.outcomes[refused.summary] += 1
        await assert_nothing_lost(world, resource, step, number)
    await destroy(world, resource)
    for path, uid in writers.theirs.items():
        found = world.access.call("GET", path)
        assert found.status == 200, path
        assert found.body["metadata"]["uid"] == uid, path
    world.outcomes["plans"] += resource.plans
    clean_up(world, all_steps, number)


async def assert_nothing_lost(world: World, resource: Resource, step: PlanStep, number: int) -> None:
    """An object that has our annotation is in the state; or it is noted, and the next plan adopts it."""
    path = world.place.path(step.declared.kind, step.declared.tree(world.place, number)["metadata"]["name"])
    live = world.access.call("GET", path)
    is_ours = live.status == 200 and live.body["metadata"].get("annotations", {}).get(ANNOTATION)
    if is_ours and resource.stored is None and not live.body["metadata"].get("deletionTimestamp"):
        # A field that another tool has declared since is taken: that conflict is not what is asked about here.
        config = {**step.declared.config(world.place, number), "force_conflicts": True}
        try:
            plan = await resource.plan(
                config if "cluster" not in step.unknown else {**config, "cluster": world.cluster}
            )
        except Refused as refused:
            # Another writer has frozen it since: the plan says so, and adopts it as soon as that is taken back.
            if refused.summary != IMMUTABLE:
                raise
            world.outcomes["adoption of a frozen object refused"] += 1
        else:
            assert read_private_state(plan.private).adopts, path


async def destroy(world: World, resource: Resource) -> None:
    """Destroys what is left."""
    try:
        await resource.destroy()
        world.outcomes["destroy"] += 1
    except Refused as refused:
        world.outcomes[refused.summary] += 1


def clean_up(world: World, all_steps: list[PlanStep], number: int) -> None:
    """Nothing holds the namespace."""
    for one in {(step.declared.kind, step.declared.name): step.declared for step in all_steps}.values():
        path = world.place.path(one.kind, one.tree(world.place, number)["metadata"]["name"])
        world.access.call("PATCH", path, {"metadata": {"finalizers": None}})


# Without shrinking: each example takes a while on a real server, and its steps are few.
@settings(max_examples=EXAMPLES, phases=(Phase.explicit, Phase.generate), database=None)
@given(steps())
@example(REMADE)
@example(OTHER_FORM)
def test_nothing_is_inconsistent_whatever_is_unknown_and_whatever_other_writers_do(
    world: World, all_steps: list[PlanStep]
) -> None:
    world.runner.run(run_steps(world, all_steps))
