"""Terraform itself, run on a configuration of a test's own with providers from a folder: no network, nothing shared."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.terraform.opentofu import opentofu

TIMEOUT_S: Final = 240


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What Terraform showed, and the text of the line that it pointed at."""

    severity: str
    summary: str
    detail: str
    line: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    events: Sequence[Mapping[str, Any]]
    errors: str

    @property
    def actions(self) -> dict[str, str]:
        """What was planned for each resource that changes."""
        planned = [one["change"] for one in self.events if one["type"] == "planned_change"]
        return {one["resource"]["addr"]: one["action"] for one in planned}

    @property
    def drifted(self) -> list[str]:
        """The resources that drifted."""
        return [one["change"]["resource"]["addr"] for one in self.events if one["type"] == "resource_drift"]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was shown to the user."""
        shown = [one["diagnostic"] for one in self.events if one["type"] == "diagnostic"]
        return [
            Diagnostic(one["severity"], one["summary"], one["detail"], one.get("snippet", {}).get("code", "").strip())
            for one in shown
        ]

    def summary(self, operation: str) -> tuple[int, int, int]:
        """How many resources were added, changed and removed."""
        (found,) = [one["changes"] for one in self.events if _is_summary(one, operation)]
        return found["add"], found["change"], found["remove"]


def _is_summary(event: Mapping[str, Any], operation: str) -> bool:
    return bool(event["type"] == "change_summary" and event["changes"]["operation"] == operation)


@dataclass(frozen=True, slots=True)
class Installation:
    """The binary, and the environment in which it knows our providers and no other."""

    binary: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a configuration."""

    installation: Installation
    folder: Path
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def object_folder(self) -> Path:
        """Where the objects of the providers are."""
        return self.folder / "objects"

    def write(self, text: str) -> None:
        """Puts a configuration in place of the last one; OBJECTS in it is where the objects are."""
        (self.folder / "main.tf").write_text(text.replace("OBJECTS", str(self.object_folder)))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """A command under way, in a group of processes of its own."""
        command = [self.installation.binary, f"-chdir={self.folder}", *arguments]
        environment = {**self.installation.environment, **self.more}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def run(self, *arguments: str) -> Outcome:
        """A command from start to end."""
        return finished(self.start(*arguments))

    def plan(self, *more: str) -> Outcome:
        """`terraform plan`; code 2 when there is something to do."""
        return self.run("plan", "-json", "-input=false", "-detailed-exitcode", *more)

    def apply(self, *more: str) -> Outcome:
        """`terraform apply`."""
        return self.run("apply", "-json", "-input=false", "-auto-approve", *more)

    def destroy(self) -> Outcome:
        """`terraform destroy`."""
        return self.run("apply", "-json", "-destroy", "-input=false", "-auto-approve")

    def instances(self) -> dict[str, Mapping[str, Any]]:
        """What the state has of each resource, as it stands in the file."""
        state = json.loads((self.folder / "terraform.tfstate").read_text())
        return {
            f"{one['type']}.{one['name']}" + (f"[{instance['index_key']}]" if "index_key" in instance else ""): instance
            for one in state["resources"]
            if one["mode"] == "managed"
            for instance in one["instances"]
        }

    def attributes(self, address: str) -> Mapping[str, Any]:
        """The attributes of one resource in the state."""
        found: Mapping[str, Any] = self.instances()[address]["attributes"]
        return found

    def objects(self) -> list[str]:
        """The names of the objects that there are."""
        return sorted(file.stem for file in self.object_folder.glob("*.json"))


def finished(process: "subprocess.Popen[str]") -> Outcome:
    """How a command ends, once it does."""
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return Outcome(process.returncode, [one for one in events if "type" in one], errors)


def find_terraform() -> str:
    """The binary that SETPOINT_TERRAFORM names, else the one on the PATH, else OpenTofu; NotBuilt says why not."""
    return shutil.which(os.environ.get("SETPOINT_TERRAFORM") or "terraform") or str(opentofu())
