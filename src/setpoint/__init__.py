"""setpoint keeps cloud and Kubernetes resources as they were declared.

These are the names to start with; each is loaded when it is first used.
"""

# Spelled out instead of imported: `typing` alone would double the time to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from setpoint.core.conditions import Condition, set_condition
    from setpoint.core.decide import Cookie, Decision, decide
    from setpoint.core.diff import diff
    from setpoint.core.merge.threeway import merge, remember
    from setpoint.core.overlay import Declared, overlay
    from setpoint.core.plan import Plan, plan_fields
    from setpoint.core.schema.checks import Check
    from setpoint.core.schema.policy import FieldPolicy, Rule
    from setpoint.core.schema.shape import Default, Keyed, Mark, shape_of
    from setpoint.core.values.canonical import canonical, digest, same
    from setpoint.core.values.json_types import MISSING
    from setpoint.core.values.paths import Path
    from setpoint.core.wait.judge import judge
    from setpoint.core.wait.outputs import Known, Null, Unknown
    from setpoint.core.wait.wait_for import parse_wait
    from setpoint.engine.ports import EventRecord
    from setpoint.engine.resource import ResourceRef
    from setpoint.errors import SetpointError
    from setpoint.library.command_document import ResultOutcome
    from setpoint.library.command_record import CommandObserver
    from setpoint.library.declared import DeclaredChange, DeclaredResource, ResourceListing
    from setpoint.library.inspection.graph import ResourceGraph
    from setpoint.library.inspection.live_import import ImportQuery, LiveImport
    from setpoint.library.inspection.records import EventListing, Inspection, ResourceDescription, StepExplanation
    from setpoint.library.inspection.store_plan import StorePlan
    from setpoint.library.opening import open, open_sync  # noqa: A004  # read as setpoint.open
    from setpoint.library.outcome import ExitCode
    from setpoint.library.results import CommandResult, ResourceResult
    from setpoint.library.session import Session
    from setpoint.library.sync_session import SyncSession

__version__ = "0.1.0"

_HOMES = {
    "Condition": "core.conditions",
    "set_condition": "core.conditions",
    "Cookie": "core.decide",
    "Decision": "core.decide",
    "decide": "core.decide",
    "diff": "core.diff",
    "merge": "core.merge.threeway",
    "remember": "core.merge.threeway",
    "Declared": "core.overlay",
    "overlay": "core.overlay",
    "Plan": "core.plan",
    "plan_fields": "core.plan",
    "FieldPolicy": "core.schema.policy",
    "Rule": "core.schema.policy",
    "Check": "core.schema.checks",
    "Default": "core.schema.shape",
    "Keyed": "core.schema.shape",
    "Mark": "core.schema.shape",
    "shape_of": "core.schema.shape",
    "canonical": "core.values.canonical",
    "digest": "core.values.canonical",
    "same": "core.values.canonical",
    "MISSING": "core.values.json_types",
    "Path": "core.values.paths",
    "judge": "core.wait.judge",
    "Known": "core.wait.outputs",
    "Null": "core.wait.outputs",
    "Unknown": "core.wait.outputs",
    "parse_wait": "core.wait.wait_for",
    "EventRecord": "engine.ports",
    "ResourceRef": "engine.resource",
    "SetpointError": "errors",
    "ResultOutcome": "library.command_document",
    "CommandObserver": "library.command_record",
    "DeclaredChange": "library.declared",
    "DeclaredResource": "library.declared",
    "ResourceListing": "library.declared",
    "ResourceGraph": "library.inspection.graph",
    "EventListing": "library.inspection.records",
    "Inspection": "library.inspection.records",
    "ResourceDescription": "library.inspection.records",
    "StepExplanation": "library.inspection.records",
    "ImportQuery": "library.inspection.live_import",
    "LiveImport": "library.inspection.live_import",
    "StorePlan": "library.inspection.store_plan",
    "open": "library.opening",
    "open_sync": "library.opening",
    "ExitCode": "library.outcome",
    "CommandResult": "library.results",
    "ResourceResult": "library.results",
    "Session": "library.session",
    "SyncSession": "library.sync_session",
}

__all__ = (  # a tuple of the names above, spelled out for those who read
    "MISSING",
    "Check",
    "CommandObserver",
    "CommandResult",
    "Condition",
    "Cookie",
    "Decision",
    "Declared",
    "DeclaredChange",
    "DeclaredResource",
    "Default",
    "EventListing",
    "EventRecord",
    "ExitCode",
    "FieldPolicy",
    "ImportQuery",
    "Inspection",
    "Keyed",
    "Known",
    "LiveImport",
    "Mark",
    "Null",
    "Path",
    "Plan",
    "ResourceDescription",
    "ResourceGraph",
    "ResourceListing",
    "ResourceRef",
    "ResourceResult",
    "ResultOutcome",
    "Rule",
    "Session",
    "SetpointError",
    "StepExplanation",
    "StorePlan",
    "SyncSession",
    "Unknown",
    "__version__",
    "canonical",
    "decide",
    "diff",
    "digest",
    "judge",
    "merge",
    "open",
    "open_sync",
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
