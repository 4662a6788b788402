"""Configurations of `setpoint_patch`, and what is patched by them."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.terraform.command import Outcome
from tests.terraform.objects.workspace import Workspace

P: Final = "setpoint_patch.a"
Q: Final = "setpoint_patch.b"
BACK: Final = "Patched fields go back"


def patched(label: str, name: str, patch: str, more: str = "", *, kind: str = "ConfigMap", version: str = "v1") -> str:
    """A `setpoint_patch` of an object in the namespace of the test; `patch` is an attribute with its value."""
    target = f'{{ api_version = "{version}", kind = "{kind}", name = "{name}", namespace = "NAMESPACE" }}'
    return f'resource "setpoint_patch" "{label}" {{\n  target = {target}\n  {patch}\n  {more}\n}}\n'


def make_config_map(workspace: Workspace, name: str, data: Mapping[str, str] | None = None) -> None:
    """Creates a ConfigMap, as another tool."""
    workspace.make("configmaps", {"metadata": {"name": name}, "data": data or {}})


def data_of(workspace: Workspace, name: str) -> dict[str, str]:
    """The data of a ConfigMap."""
    found: dict[str, str] = workspace.get("configmaps", name).get("data", {})
    return found


def managers_of(workspace: Workspace, kind: str, name: str) -> list[str]:
    """The field managers of an object that are patches."""
    return managers_in(workspace.get(kind, name))


def managers_in(live: Mapping[str, Any]) -> list[str]:
    """The same of a live object."""
    entries = live["metadata"].get("managedFields", [])
    return [one["manager"] for one in entries if "terraform-patch" in one["manager"]]


def warnings_of(outcome: Outcome) -> dict[str, str]:
    """The details of warnings, by address."""
    return {one.address: one.detail for one in outcome.diagnostics if one.severity == "warning"}


def errors_of(outcome: Outcome) -> dict[str, str]:
    """The summaries and details of errors, by address."""
    return {one.address: f"{one.summary}: {one.detail}" for one in outcome.diagnostics if one.severity == "error"}


def encoded(value: Any) -> str:
    """A value as HCL."""
    return f"jsondecode({json.dumps(json.dumps(value))})"
