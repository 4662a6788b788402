"""Random resources for the real Terraform: many in one configuration, with unknown values and other writers."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# What other writers may do before a plan, and between a plan and its apply.
BEFORE: Final = ("nothing", "nothing", "update", "add", "delete")
BETWEEN: Final = ("nothing", "nothing", "update", "add", "delete", "declare", "remake")
# Of a namespace, a deletion takes a while: it is not done in passing.
LASTING: Final = ("nothing", "update", "add", "declare")
KINDS: Final = ("ConfigMap", "Secret", "Deployment", "Service", "Record", "Namespace", "Patch")
UNKNOWABLE: Final = ("name", "label", "value", "fixed")
FORMS: Final = ("patch", "patch", "merge_patch", "json_patch")


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that is an output of another resource: unknown in a plan that changes its input."""

    text: str


@dataclass(frozen=True, slots=True)
class Declared:
    """What a configuration declares: a name, a label, a value, and a field that cannot change."""

    name: str
    label: str
    value: str
    fixed: str


@dataclass(frozen=True, slots=True)
class Step:
    """One plan and its apply: what is declared, what of it is unknown, what other writers do before and between."""

    declared: Declared
    unknown: frozenset[str]
    before: str
    between: str


@dataclass(frozen=True, slots=True)
class Case:
    """A resource, and its steps: a create and an update."""

    number: int
    kind: str
    is_text: bool
    forces: bool
    # Of a patch: the attribute that holds it.
    form: str
    steps: tuple[Step, ...]

    @property
    def type(self) -> str:
        """The type of the resource."""
        return "setpoint_patch" if self.kind == "Patch" else "setpoint_object"

    @property
    def address(self) -> str:
        """The address of the resource."""
        return f"{self.type}.r{self.number}"

    def name(self, step: int, namespace: str) -> str:
        """The name of the object."""
        stem = f"{namespace}-" if self.kind == "Namespace" else ""
        return f"{stem}r{self.number}-{self.steps[step].declared.name}"

    def must_apply(self, step: int) -> bool:
        """Whether other writers and late values leave the plan as it is."""
        one = self.steps[step]
        is_held = one.between in ("nothing", "update", "add") or (one.between == "delete" and self.kind != "Patch")
        return is_held and not self._changes_late(step)

    def _changes_late(self, step: int) -> bool:
        """Whether a change that needs a new object is not seen in the plan. Of a text, any unknown value hides all."""
        now, before = self.steps[step], self.steps[max(step - 1, 0)].declared
        hidden = frozenset(UNKNOWABLE) if self.is_text and now.unknown else now.unknown
        return any(getattr(before, name) != getattr(now.declared, name) for name in hidden & {"name", "fixed"})


def cases(seed: int, count: int) -> list[Case]:
    """So many resources, of every kind."""
    source = random.Random(seed)
    return [_case(source, number) for number in range(count)]


def _case(source: random.Random, number: int) -> Case:
    kind = KINDS[number % len(KINDS)]
    first = Declared("a", "x", "red", "one")
    second = Declared(
        source.choice(("a", "a", "a", "b")),
        source.choice("xy"),
        source.choice(("red", "blue")),
        source.choice(("one", "one", "one", "two")),
    )
    steps = tuple(_step(source, kind, one) for one in (first, second))
    return Case(number, kind, source.random() < 0.5, source.random() < 0.3, source.choice(FORMS), steps)


def _step(source: random.Random, kind: str, declared: Declared) -> Step:
    count = source.choice((0, 0, 1, 2))
    unknown = frozenset(source.sample(UNKNOWABLE, count))
    lasts = kind == "Namespace"
    before, between = (("nothing",), LASTING) if lasts else (BEFORE, BETWEEN)
    return Step(declared, unknown, source.choice(before), source.choice(between))


# --- Trees -----------------------------------------------------------------------------------------------------------


def tree(case: Case, step: int, namespace: str) -> dict[str, Any]:
    """What is declared; unknown values are references."""
    one = case.steps[step]
    values = {
        name: Reference(f"terraform_data.r{case.number}.output.{name}") if name in one.unknown else known
        for name, known in outputs(case, step, namespace).items()
    }
    if case.kind == "Patch":
        return {"metadata": {"labels": {"tier": values["label"]}}, "data": {"colour": values["value"]}}
    versions = {"Deployment": "apps/v1", "Record": f"{namespace}.example.com/v1"}
    metadata = {"name": values["name"], "labels": {"tier": values["label"]}}
    inside = {} if case.kind == "Namespace" else {"namespace": namespace}
    head = {"apiVersion": versions.get(case.kind, "v1"), "kind": case.kind, "metadata": {**metadata, **inside}}
    return {**head, **_body(case.kind, values)}


def outputs(case: Case, step: int, namespace: str) -> dict[str, str]:
    """The values that may be unknown."""
    one = case.steps[step].declared
    return {"name": case.name(step, namespace), "label": one.label, "value": one.value, "fixed": one.fixed}


def _body(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    match kind:
        case "ConfigMap":
            return {"data": {"colour": values["value"]}}
        case "Secret":
            return {"stringData": {"colour": values["value"]}, "type": values["fixed"]}
        case "Service":
            return {"spec": {"selector": {"colour": values["value"]}, "ports": [{"name": "a", "port": 80}]}}
        case "Record":
            return {"spec": {"host": values["value"]}}
        case "Namespace":
            return {}
        case _:
            labels = {"app": values["fixed"]}
            container = {"name": "web", "image": "web:1", "args": [values["value"]]}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
            return {"spec": {"selector": {"matchLabels": labels}, "template": template}}


# --- Configurations --------------------------------------------------------------------------------------------------


def configuration(all_cases: list[Case], step: int, namespace: str) -> str:
    """The configuration of a step of all cases."""
    return "".join(_resource(one, step, namespace) for one in all_cases)


def _resource(case: Case, step: int, namespace: str) -> str:
    # With another step there is another input, and the output is unknown until it is applied.
    inputs = hcl({**outputs(case, step, namespace), "step": str(step)})
    text = f'resource "terraform_data" "r{case.number}" {{ input = {inputs} }}\n'
    found = tree(case, step, namespace)
    declared = hcl(_operations(found) if case.kind == "Patch" and case.form == "json_patch" else found)
    more = "force_conflicts = true" if case.forces else ""
    if case.kind == "Patch":
        is_unknown = "name" in case.steps[step].unknown
        name = f"terraform_data.r{case.number}.output.name" if is_unknown else hcl(case.name(step, namespace))
        names = f'{{ api_version = "v1", kind = "ConfigMap", namespace = "{namespace}", name = {name} }}'
        more = f"target = {names}\n  {more}"
        source = f"{case.form} = yamlencode({declared})" if case.is_text else f"{case.form} = {declared}"
    else:
        source = f"yaml_body = yamlencode({declared})" if case.is_text else f"manifest = {declared}"
    return f'{text}resource "{case.type}" "r{case.number}" {{\n  {source}\n  {more}\n}}\n'


def _operations(patch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same as a JSON patch; the labels as a whole, which depends on those that are there."""
    labels, colour = patch["metadata"]["labels"], patch["data"]["colour"]
    return [
        {"op": "add", "path": "/metadata/labels", "value": labels},
        {"op": "add", "path": "/data/colour", "value": colour},
    ]


def hcl(value: Any) -> str:
    """A value as HCL."""
    match value:
        case Reference(text):
            return text
        case dict():
            return "{ " + ", ".join(f'"{name}" = {hcl(one)}' for name, one in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(hcl, value)) + "]"
        case _:
            return json.dumps(value)
