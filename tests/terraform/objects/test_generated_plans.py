"""For all objects, unknown values and edits between a plan and its apply: Terraform finds nothing inconsistent.

The number of examples is that of the environment variable `SETPOINT_GENERATED_PLANS`.
"""

import asyncio
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from setpoint.terraform.cty.json_trees import UntypedTree, from_untyped
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue
from setpoint.terraform.framework.schema import NestedAttributes
from setpoint.terraform.resources.clusters import CLUSTER, ClusterConnections
from setpoint.terraform.resources.object_state import read_private_state
from tests.cluster.access import Access
from tests.terraform.objects.admission import LABEL, NOT_IN_PLANS, ONCE_LABELLED, mutating
from tests.terraform.objects.core_in_process import NOTHING, Refused, Resource
from tests.terraform.objects.manifests import DEFINITION
from tests.terraform.objects.workspace import define

log = logging.getLogger(__name__)
EXAMPLES: Final = int(os.environ.get("SETPOINT_GENERATED_PLANS", "80"))
ANNOTATION: Final = "setpoint.dev/terraform-id"
PLURALS: Final = {"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "Record": "records"}
HELD: Final = {"metadata": {"finalizers": ["example.com/busy"]}}


@dataclass(slots=True)
class World:
    """A namespace with admission that mutates, and the connection of the provider to it."""

    access: Access
    namespace: str
    runner: asyncio.Runner
    clusters: ClusterConnections
    numbers: Iterator[int] = field(default_factory=itertools.count)
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def group(self) -> str:
        return f"{self.namespace}.example.com"

    def path(self, kind: str, name: str = "") -> str:
        where = f"apis/{self.group}/v1" if kind == "Record" else "api/v1"
        return f"/{where}/namespaces/{self.namespace}/{PLURALS[kind]}" + (f"/{name}" if name else "")

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
        made = World(api_server, namespace, runner, clusters)
        clusters.default = made.cluster
        define(api_server, DEFINITION.replace("GROUP", made.group))
        policies.enter_context(mutating(api_server, namespace, "late", NOT_IN_PLANS))
        policies.enter_context(mutating(api_server, namespace, "turning", ONCE_LABELLED))
        yield made
        log.info("generated plans: %s", dict(made.outcomes))
        session = clusters.session(None)
        runner.run(session.clusters.close())
        runner.run(session.client.close())
    api_server.delete_namespace(namespace)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a configuration declares."""

    kind: str
    prefix: str
    name: str
    colour: str
    size: str | None
    type: str
    is_text: bool
    comment: str
    ignores: bool
    forces: bool | None
    wait: str | None
    delete_timeout: str
    on_timeout: str | None

    def tree(self, world: World, number: int) -> dict[str, Any]:
        """The manifest."""
        api_version = f"{world.group}/v1" if self.kind == "Record" else "v1"
        metadata = {"name": f"{self.prefix}-{number}-{self.name}", "namespace": world.namespace}
        tree: dict[str, Any] = {"apiVersion": api_version, "kind": self.kind, "metadata": metadata}
        data = {"colour": self.colour} | ({} if self.size is None else {"size": self.size})
        match self.kind:
            case "ConfigMap":
                return tree | {"data": data}
            case "Secret":
                return tree | {"stringData": data, "type": f"example.com/{self.type}"}
            case "Service":
                ports = [{"name": "a", "port": 80}] + ([] if self.size is None else [{"name": "b", "port": 81}])
                return tree | {"spec": {"selector": {"colour": self.colour}, "ports": ports}}
            case _:
                return tree | {"spec": {} if self.size is None else {"host": self.colour}}

    def config(self, world: World, number: int) -> dict[str, CtyValue]:
        """The configuration, with all values known."""
        tree = self.tree(world, number)
        text = f"{self.comment}{yaml.safe_dump(tree)}"
        wait: CtyValue = None
        if self.wait is not None:
            members = dict.fromkeys(("field", "field_value", "condition", "rollout"))
            wait = {**members, "field": self._waited(), "timeout": "50ms"}
        return {
            **NOTHING,
            "yaml_body": text if self.is_text else None,
            "manifest": None if self.is_text else from_untyped(tree, DYNAMIC),
            "ignore_fields": (self._ignored(),) if self.ignores else None,
            "force_conflicts": self.forces,
            "wait_for": wait,
            "delete_timeout": self.delete_timeout,
            "on_timeout": self.on_timeout,
        }

    def _waited(self) -> str | None:
        fields = {"ConfigMap": "data.colour", "Service": "spec.selector.colour", "Secret": "type"}
        return fields.get(self.kind, "metadata.uid") if self.wait == "colour" else self.wait

    def _ignored(self) -> str:
        fields = {"Service": "spec.selector.colour", "Record": "spec.host", "Secret": "stringData.colour"}
        return fields.get(self.kind, "data.colour")


UNKNOWABLE: Final = ("whole", "name", "colour", "type", "wait_for", "field", "ignored", "ignore_fields", "cluster")
MORE_UNKNOWABLE: Final = ("force_conflicts", "delete_timeout", "on_timeout")


def with_unknown(config: Mapping[str, CtyValue], names: frozenset[str], tree: dict[str, Any]) -> dict[str, CtyValue]:
    """The configuration at plan: some values are not known yet."""
    made = dict(config)
    source = "yaml_body" if config["yaml_body"] is not None else "manifest"
    if "whole" in names:
        made[source] = UNKNOWN
    elif source == "manifest":
        made[source] = from_untyped(_tree_with_unknown(tree, names), DYNAMIC)
    elif names & {"name", "colour", "type"}:
        made[source] = UNKNOWN
    wait = made["wait_for"]
    if "field" in names and isinstance(wait, Mapping):
        made["wait_for"] = {**wait, "field": UNKNOWN}
    if "ignored" in names and config["ignore_fields"] is not None:
        made["ignore_fields"] = (UNKNOWN,)
    for name in ("wait_for", "ignore_fields", "cluster", *MORE_UNKNOWABLE):
        if name in names:
            made[name] = UNKNOWN
    return made


def _tree_with_unknown(tree: dict[str, Any], names: frozenset[str]) -> UntypedTree:
    copy: dict[str, Any] = yaml.safe_load(yaml.safe_dump(tree))
    if "name" in names:
        copy["metadata"]["name"] = UNKNOWN
    if "type" in names and "type" in copy:
        copy["type"] = UNKNOWN
    for member in ("data", "stringData"):
        if "colour" in names and member in copy:
            copy[member]["colour"] = UNKNOWN
    return copy


EDITS: Final = (
    *("nothing",) * 8,
    *("change", "add", "delete", "remake", "freeze", "declare", "unmark", "label") * 2,
    "hold",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One plan and its apply: what is declared, what is unknown, and what other writers do before and between."""

    declared: Declared
    unknown: frozenset[str]
    before: str
    between: str
    is_refreshed: bool


DECLARED: Final = st.builds(
    Declared,
    kind=st.sampled_from(("ConfigMap", "ConfigMap", "Secret", "Service", "Record")),
    prefix=st.sampled_from(("plain", "plain", "plain", "late", "turning")),
    name=st.sampled_from(("a", "a", "a", "b")),
    colour=st.sampled_from(("red", "blue")),
    size=st.sampled_from((None, "1", "2")),
    type=st.sampled_from(("x", "x", "y")),
    is_text=st.booleans(),
    comment=st.sampled_from(("", "", "# Why.\n")),
    ignores=st.sampled_from((False, False, True)),
    forces=st.sampled_from((None, None, True)),
    wait=st.sampled_from(
        (*(None,) * 10, *("metadata.uid", "metadata.annotations", "colour", "colour") * 2, "status.no")
    ),
    delete_timeout=st.sampled_from(("50ms", "60ms")),
    on_timeout=st.sampled_from((None, None, "fail")),
)
UNKNOWN_NAMES: Final = st.frozensets(st.sampled_from((*UNKNOWABLE, *MORE_UNKNOWABLE)), max_size=3)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """A create, and some updates that change a few things each."""
    declared = draw(DECLARED)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        unknown = draw(st.just(frozenset[str]()) | UNKNOWN_NAMES)
        before, between = draw(st.sampled_from(EDITS)), draw(st.sampled_from(EDITS))
        found.append(Step(declared, unknown, before, between, draw(st.sampled_from((True, True, True, False)))))
        other = draw(DECLARED)
        names = draw(st.frozensets(st.sampled_from(Declared.__slots__), max_size=4)) - {"prefix"}
        changed = {name: getattr(other, name) for name in names}
        kind = changed.pop("kind", None) if draw(st.integers(0, 9)) == 0 else changed.pop("kind", None) and None
        values = {name: getattr(declared, name) for name in Declared.__slots__} | changed
        declared = Declared(**(values | ({} if kind is None else {"kind": kind})))
    return found


class OtherWriters:
    """Other writers of the object of one example."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        # The uid of each object that another writer made, and that must not be touched, by its path.
        self.theirs: dict[str, str] = {}

    def edit(self, how: str, declared: Declared) -> None:
        """Does something to the object, if there is one."""
        tree = declared.tree(self.world, self.number)
        path = self.world.path(declared.kind, tree["metadata"]["name"])
        live = self.world.access.call("GET", path)
        if live.status == 200 and not live.body["metadata"].get("deletionTimestamp"):
            getattr(self, f"_{how}", self._patch)(how, path, declared, live.body)

    def _nothing(self, *_: Any) -> None:
        pass

    def _patch(self, how: str, path: str, declared: Declared, live: Any) -> None:
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

    def _delete(self, how: str, path: str, declared: Declared, live: Any) -> None:
        self.world.access.call("DELETE", path)
        self.theirs.pop(path, None)

    def _remake(self, how: str, path: str, declared: Declared, live: Any) -> None:
        self.world.access.call("DELETE", path)
        tree = declared.tree(self.world, self.number)
        made = self.world.access.call("POST", path.rpartition("/")[0], tree)
        assert made.status == 201, made
        self.theirs[path] = made.body["metadata"]["uid"]

    def _hold(self, how: str, path: str, declared: Declared, live: Any) -> None:
        self.world.access.call("PATCH", path, HELD)
        self.world.access.call("DELETE", path)
        self.theirs.pop(path, None)

    def _declare(self, how: str, path: str, declared: Declared, live: Any) -> None:
        tree = declared.tree(self.world, self.number)
        if declared.kind == "ConfigMap":
            tree["data"]["colour"] = "declared"
        where = f"{path}?fieldManager=another-tool&force=true"
        self.world.access.call("PATCH", where, tree, patch_type="application/apply-patch+yaml")


async def run_steps(world: World, all_steps: list[Step]) -> None:
    """Plans and applies each step; whatever fails is an error of ours, and loses nothing."""
    number = next(world.numbers)
    resource, writers = Resource(world.clusters), OtherWriters(world, number)
    for step in all_steps:
        declared = step.declared
        config = declared.config(world, number)
        if "cluster" in step.unknown:
            config["cluster"] = world.cluster
        # An apply waits for what is being deleted, unless its plan has said otherwise.
        between = "delete" if step.between == "hold" and step.unknown else step.between
        writers.edit("delete" if step.before == "hold" else step.before, declared)
        planned = with_unknown(config, step.unknown, declared.tree(world, number))
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


async def assert_nothing_lost(world: World, resource: Resource, step: Step, number: int) -> None:
    """An object that has our annotation is in the state; or it is noted, and the next plan adopts it."""
    path = world.path(step.declared.kind, step.declared.tree(world, number)["metadata"]["name"])
    live = world.access.call("GET", path)
    is_ours = live.status == 200 and live.body["metadata"].get("annotations", {}).get(ANNOTATION)
    if is_ours and resource.stored is None and not live.body["metadata"].get("deletionTimestamp"):
        config = step.declared.config(world, number)
        plan = await resource.plan(config if "cluster" not in step.unknown else {**config, "cluster": world.cluster})
        assert read_private_state(plan.private).adopts, path


async def destroy(world: World, resource: Resource) -> None:
    """Destroys what is left."""
    try:
        await resource.destroy()
        world.outcomes["destroy"] += 1
    except Refused as refused:
        world.outcomes[refused.summary] += 1


def clean_up(world: World, all_steps: list[Step], number: int) -> None:
    """Nothing holds the namespace."""
    for one in {(step.declared.kind, step.declared.name): step.declared for step in all_steps}.values():
        path = world.path(one.kind, one.tree(world, number)["metadata"]["name"])
        world.access.call("PATCH", path, {"metadata": {"finalizers": None}})


# Without shrinking: each example takes a while on a real server, and its steps are few.
@settings(max_examples=EXAMPLES, phases=(Phase.explicit, Phase.generate), database=None)
@given(steps())
def test_nothing_is_inconsistent_whatever_is_unknown_and_whatever_other_writers_do(
    world: World, all_steps: list[Step]
) -> None:
    world.runner.run(run_steps(world, all_steps))
