"""Lifecycle rules in the three forms they take: as authors write them, as they are compared, as they are sent.

Compared, a rule has nothing in it that says nothing: no nulls, no empty lists, no `withState: ANY`, no age of 0 days,
which every object has.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from setpoint.core.values import Json
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.storage_bucket import live, spec

_STATES: Final = {True: "LIVE", False: "ARCHIVED"}
_SAYS_NOTHING: Final[tuple[Json, ...]] = (None, "", [], "ANY")


def declared_rules(rules: Sequence[spec.LifecycleRule]) -> list[Json]:
    """The author's rules, as they are compared; ManifestInvalid for one that would meet every object unasked."""
    for position, rule in enumerate(rules):
        condition = msgspec.to_builtins(rule.condition)
        if all(value in _SAYS_NOTHING for value in condition.values()):
            raise ManifestInvalid(
                f"spec.lifecycleRule[{position}].condition says nothing, so that the rule would apply to every object "
                "at once: write age: 0 if that is meant"
            )
    return [_plain(msgspec.to_builtins(rule.action), msgspec.to_builtins(rule.condition)) for rule in rules]


def viewed_rules(lifecycle: live.Lifecycle) -> list[Json]:
    """The live rules, as they are compared."""
    return [_viewed(rule) for rule in lifecycle.rule or ()]


def sent_rule(rule: Json) -> Json:
    """A rule as the API takes it. The age is always sent, as Config Connector does."""
    assert isinstance(rule, Mapping)
    said = rule.get("condition", {})
    assert isinstance(said, Mapping)
    condition: dict[str, Json] = {"age": 0, **{name: value for name, value in said.items() if name != "withState"}}
    if "withState" in said:
        condition["isLive"] = said["withState"] == "LIVE"
    return {"action": rule["action"], "condition": condition}


def _viewed(rule: live.Rule) -> Json:
    condition = msgspec.to_builtins(rule.condition)
    is_live = condition.pop("isLive", None)
    state = {} if is_live is None else {"withState": _STATES[is_live]}
    return _plain(msgspec.to_builtins(rule.action), {**condition, **state})


def _plain(action: Mapping[str, Json], condition: Mapping[str, Json]) -> Json:
    return {
        "action": {name: value for name, value in action.items() if value not in _SAYS_NOTHING},
        "condition": {
            name: value
            for name, value in condition.items()
            if value not in _SAYS_NOTHING and not (name == "age" and value == 0)
        },
    }
