"""setpoint keeps cloud and Kubernetes resources as they were declared.

These are the names to start with; each is loaded when it is first used.
"""

# Spelled out instead of imported: `typing` alone would double the time to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from setpoint.core.canonical import canonical, digest, same
    from setpoint.core.conditions import Condition, set_condition
    from setpoint.core.cookie import Cookie
    from setpoint.core.decide import Decision, decide
    from setpoint.core.diff import diff
    from setpoint.core.outputs import Known, Null, Unknown
    from setpoint.core.overlay import Declared, overlay
    from setpoint.core.paths import Path
    from setpoint.core.plan import Plan, plan_fields
    from setpoint.core.policy import FieldPolicy, Rule
    from setpoint.core.shape import Check, Default, Keyed, Mark, shape_of
    from setpoint.core.threeway import merge, remember
    from setpoint.core.values import MISSING
    from setpoint.core.verdict import judge
    from setpoint.core.wait_for import parse_wait
    from setpoint.errors import SetpointError

__version__ = "0.1.0"

_HOMES = {
    "canonical": "core.canonical",
    "digest": "core.canonical",
    "same": "core.canonical",
    "Condition": "core.conditions",
    "set_condition": "core.conditions",
    "Cookie": "core.cookie",
    "Decision": "core.decide",
    "decide": "core.decide",
    "diff": "core.diff",
    "Known": "core.outputs",
    "Null": "core.outputs",
    "Unknown": "core.outputs",
    "Declared": "core.overlay",
    "overlay": "core.overlay",
    "Path": "core.paths",
    "Plan": "core.plan",
    "plan_fields": "core.plan",
    "FieldPolicy": "core.policy",
    "Rule": "core.policy",
    "Check": "core.shape",
    "Default": "core.shape",
    "Keyed": "core.shape",
    "Mark": "core.shape",
    "shape_of": "core.shape",
    "merge": "core.threeway",
    "remember": "core.threeway",
    "MISSING": "core.values",
    "judge": "core.verdict",
    "parse_wait": "core.wait_for",
    "SetpointError": "errors",
}

__all__ = (  # a tuple of the names above, spelled out for those who read
    "MISSING",
    "Check",
    "Condition",
    "Cookie",
    "Decision",
    "Declared",
    "Default",
    "FieldPolicy",
    "Keyed",
    "Known",
    "Mark",
    "Null",
    "Path",
    "Plan",
    "Rule",
    "SetpointError",
    "Unknown",
    "__version__",
    "canonical",
    "decide",
    "diff",
    "digest",
    "judge",
    "merge",
    "overlay",
    "parse_wait",
    "plan_fields",
    "remember",
    "same",
    "set_condition",
    "shape_of",
)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"setpoint has no {name!r}: see dir(setpoint)")
    from importlib import import_module

    return getattr(import_module(f"setpoint.{home}"), name)


def __dir__() -> tuple[str, ...]:
    return __all__
