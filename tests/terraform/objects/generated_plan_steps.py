"""Generated plans of one object: what is declared, what is unknown in the plan, and what other writers do."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from setpoint.terraform.cty.json_trees import UntypedTree, from_untyped
from setpoint.terraform.cty.types import DYNAMIC
from setpoint.terraform.cty.values import UNKNOWN, CtyValue
from tests.terraform.objects.core_in_process import NOTHING

PLURALS: Final = {"ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "Record": "records"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the objects are: a namespace, and the API group of its own that Records have."""

    namespace: str

    @property
    def group(self) -> str:
        """The API group of Records."""
        return f"{self.namespace}.example.com"

    def path(self, kind: str, name: str = "") -> str:
        """The path of an object, or of the collection."""
        where = f"apis/{self.group}/v1" if kind == "Record" else "api/v1"
        return f"/{where}/namespaces/{self.namespace}/{PLURALS[kind]}" + (f"/{name}" if name else "")


@dataclass(frozen=True, slots=True)
class DeclaredObject:
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

    def tree(self, place: Place, number: int) -> dict[str, Any]:
        """The manifest."""
        api_version = f"{place.group}/v1" if self.kind == "Record" else "v1"
        metadata = {"name": f"{self.prefix}-{number}-{self.name}", "namespace": place.namespace}
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

    def config(self, place: Place, number: int) -> dict[str, CtyValue]:
        """The configuration, with all values known."""
        tree = self.tree(place, number)
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
class PlanStep:
    """One plan and its apply: what is declared, what is unknown, and what other writers do before and between."""

    declared: DeclaredObject
    unknown: frozenset[str]
    before: str
    between: str
    is_refreshed: bool


DECLARED: Final = st.builds(
    DeclaredObject,
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
def steps(draw: st.DrawFn) -> list[PlanStep]:
    """A create, and some updates that change a few things each."""
    declared = draw(DECLARED)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        unknown = draw(st.just(frozenset[str]()) | UNKNOWN_NAMES)
        before, between = draw(st.sampled_from(EDITS)), draw(st.sampled_from(EDITS))
        found.append(PlanStep(declared, unknown, before, between, draw(st.sampled_from((True, True, True, False)))))
        other = draw(DECLARED)
        names = draw(st.frozensets(st.sampled_from(DeclaredObject.__slots__), max_size=4)) - {"prefix"}
        changed = {name: getattr(other, name) for name in names}
        kind = changed.pop("kind", None) if draw(st.integers(0, 9)) == 0 else changed.pop("kind", None) and None
        values = {name: getattr(declared, name) for name in DeclaredObject.__slots__} | changed
        declared = DeclaredObject(**(values | ({} if kind is None else {"kind": kind})))
    return found


_SECRET: Final = DeclaredObject(
    kind="Secret",
    prefix="plain",
    name="a",
    colour="blue",
    size=None,
    type="x",
    is_text=True,
    comment="",
    ignores=False,
    forces=None,
    wait="status.no",
    delete_timeout="60ms",
    on_timeout=None,
)
# The object of a create whose wait has failed is made again by another writer before it is adopted.
REMADE: Final = [
    PlanStep(_SECRET, frozenset(), "nothing", "nothing", is_refreshed=True),
    PlanStep(replace(_SECRET, wait=None), frozenset(), "nothing", "remake", is_refreshed=True),
]
# The note of a plan that was not applied is not that of a plan with the manifest in the other form.
OTHER_FORM: Final = [
    PlanStep(replace(_SECRET, wait=None, is_text=False), frozenset(), "nothing", "nothing", is_refreshed=True),
    PlanStep(replace(_SECRET, wait=None, is_text=False), frozenset({"colour"}), "freeze", "change", is_refreshed=True),
    PlanStep(replace(_SECRET, wait=None), frozenset({"colour"}), "nothing", "nothing", is_refreshed=False),
]
