"""An admission policy that warns authors of annotations that are refused, or have no effect, when they apply them.

It covers our kinds only: resources of other kinds keep Config Connector's annotations without a word. It never denies
a request: the condition of the resource has the last word.
"""

import json
from collections.abc import Iterable
from typing import Final

from setpoint.core.schema.annotations import (
    ANNOTATIONS,
    CONFIG_CONNECTOR,
    IGNORE_UNSPECIFIED,
    OURS,
    PROJECT_ID,
    STATE_INTO_SPEC,
    AnnotationScope,
    AnnotationTarget,
)
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.deployment.installation import NAME
from setpoint.deployment.rbac import POLICY_GROUP, GroupResource, by_group

ANNOTATION_POLICY: Final = f"{NAME}-annotations"
# Stands for every kind of the catalogue: all of them read the same annotations.
_CATALOGUED: Final = AnnotationTarget("*", (PROJECT_ID,))
_ADVICE: Final = "see docs/annotations.md"


def annotation_policy(targets: Iterable[AnnotationTarget], kinds: Iterable[GroupResource]) -> list[JsonObject]:
    """The policy for `kinds`, and its binding, which makes it warn; `targets` are all of ours but the catalogue's."""
    spec: JsonObject = {
        # A warning is never worth a refused request.
        "failurePolicy": "Ignore",
        # With all that the cluster defaults: otherwise another tool that applies the same would get a conflict.
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [_rule(group, plurals) for group, plurals in by_group(sorted(kinds))],
        },
        "variables": _variables(tuple(targets)),
        "validations": list(_VALIDATIONS),
    }
    bound: JsonObject = {"policyName": ANNOTATION_POLICY, "validationActions": ["Warn"]}
    return [_object("ValidatingAdmissionPolicy", spec), _object("ValidatingAdmissionPolicyBinding", bound)]


def _rule(group: str, plurals: list[str]) -> JsonObject:
    return {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(plurals),
        "scope": "*",
    }


def _object(kind: str, spec: JsonObject) -> JsonObject:
    # Without the version in the labels: what another version applied is the same object, as with the CRDs.
    metadata: JsonObject = {"name": ANNOTATION_POLICY, "labels": {"app.kubernetes.io/part-of": NAME}}
    return {"apiVersion": f"{POLICY_GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


# --- CEL --------------------------------------------------------------------------------------------------------------

_VALIDATIONS: Final[tuple[JsonObject, ...]] = (
    {
        "expression": "variables.unknown.size() == 0",
        "message": f"an unknown annotation: {_ADVICE}",
        "messageExpression": "variables.unknown.join(', ') + ' is unknown, and has no effect; one that is close to a "
        f"known one is refused: {_ADVICE}'",
    },
    {
        "expression": "variables.wrong.size() == 0",
        "message": f"an annotation with a value that is refused: {_ADVICE}",
        "messageExpression": "variables.wrong.map(key, key + ' is \"' + variables.annotations[key] + '\", which is "
        "refused: ' + variables.advice[key]).join('; ')",
    },
    {
        "expression": "variables.idle.size() == 0",
        "message": f"an annotation that has no effect on this kind: {_ADVICE}",
        "messageExpression": "variables.idle.map(key, key + ' has no effect on a ' + object.kind + ': ' + "
        "variables.instead[key]).join('; ')",
    },
)


def _variables(targets: tuple[AnnotationTarget, ...]) -> list[Json]:
    """The list of annotations as CEL, and the keys of an object that are unknown, have a wrong value, or no effect."""
    checked = {one.key: one.values for one in ANNOTATIONS if one.values is not None}
    scoped = [one for one in ANNOTATIONS if one.scope not in (AnnotationScope.EVERY, AnnotationScope.RECORD)]
    every = (*targets, _CATALOGUED)
    affected = {one.key: sorted(target.kind for target in every if target.is_affected_by(one)) for one in scoped}
    known = sorted({*(one.key for one in ANNOTATIONS), *(key for target in every for key in target.read)})
    named: list[Json] = [*sorted(target.kind for target in targets)]
    found: dict[str, str] = {
        "annotations": "object.metadata.?annotations.orValue({})",
        "ours": "variables.annotations.filter(key, "
        f"key.startsWith({_cel(CONFIG_CONNECTOR)}) || key.startsWith({_cel(OURS)}))",
        "known": _cel(list(known)),
        "values": _cel({key: f"^({values.pattern})$" for key, values in checked.items()}),
        "advice": _cel({key: values.advice for key, values in checked.items()}),
        "affected": _cel({key: list(kinds) for key, kinds in affected.items()}),
        "instead": _cel({one.key: one.advice for one in scoped}),
        "unknown": "variables.ours.filter(key, !(key in variables.known))",
        "wrong": "variables.ours.filter(key, key in variables.values && "
        "!variables.annotations[key].matches(variables.values[key]))",
        "kind": f"object.kind in {_cel(named)} ? object.kind : {_cel(_CATALOGUED.kind)}",
        "idle": "variables.ours.filter(key, key in variables.affected && "
        "!(variables.kind in variables.affected[key]) && "
        f"!(key == {_cel(STATE_INTO_SPEC)} && {_cel(IGNORE_UNSPECIFIED)} in variables.annotations))",
    }
    return [{"name": name, "expression": expression} for name, expression in found.items()]


def _cel(value: Json) -> str:
    """A literal of CEL: that of JSON is one."""
    return json.dumps(value)
