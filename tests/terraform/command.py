"""Terraform itself, run on a configuration of a test's own with providers from a folder: no network, nothing shared."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.terraform.opentofu import OPENTOFU

TIMEOUT_S: Final = 240
# What `terraform init` leaves in a folder.
_INITIALISED: Final = (".terraform", ".terraform.lock.hcl")
_PROVIDER: Final = re.compile(r'source\s*=\s*"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A diagnostic that Terraform showed, and the line of the configuration that it points at."""

    severity: str
    summary: str
    detail: str
    line: str = ""
    # Of the resource that it is about.
    address: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    events: Sequence[Mapping[str, Any]]
    errors: str

    @property
    def actions(self) -> dict[str, str]:
        """The planned action for each resource that changes."""
        planned = [one["change"] for one in self.events if one["type"] == "planned_change"]
        return {one["resource"]["addr"]: one["action"] for one in planned}

    @property
    def drifted(self) -> list[str]:
        """The resources that drifted."""
        return [one["change"]["resource"]["addr"] for one in self.events if one["type"] == "resource_drift"]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The diagnostics that were shown to the user."""
        shown = [one["diagnostic"] for one in self.events if one["type"] == "diagnostic"]
        return [
            Diagnostic(
                one["severity"],
                one["summary"],
                one["detail"],
                one.get("snippet", {}).get("code", "").strip(),
                one.get("address", ""),
            )
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
    """The binary, and the environment in which it finds the providers of the tests and no others."""

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
        """The folder with the objects of the probe providers."""
        return self.folder / "objects"

    def write(self, text: str) -> None:
        """Replaces the configuration; OBJECTS in it stands for the folder with the objects."""
        (self.folder / "main.tf").write_text(text.replace("OBJECTS", str(self.object_folder)))

    def initialise(self) -> None:
        """`terraform init`. It is run once for each set of providers, and its result copied from then on."""
        if (self.folder / ".terraform").exists():
            return
        providers = sorted(set(_PROVIDER.findall((self.folder / "main.tf").read_text())))
        kept = Path(self.installation.environment["HOME"], "initialised", "+".join(providers).replace("/", "-"))
        if not kept.exists():
            outcome = self.run("init", "-input=false", "-no-color")
            assert outcome.code == 0, outcome.errors
            # The links to programs become copies of them: a link may be relative.
            shutil.copytree(self.folder / _INITIALISED[0], kept / _INITIALISED[0])
            shutil.copy(self.folder / _INITIALISED[1], kept / _INITIALISED[1])
            return
        shutil.copytree(kept, self.folder, dirs_exist_ok=True)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Starts a command, in a process group of its own."""
        command = [self.installation.binary, f"-chdir={self.folder}", *arguments]
        environment = {**self.installation.environment, **self.more}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def run(self, *arguments: str) -> Outcome:
        """Runs a command to its end."""
        return finished(self.start(*arguments))

    def plan(self, *more: str) -> Outcome:
        """`terraform plan`; the exit code is 2 when there are changes."""
        return self.run("plan", "-json", "-input=false", "-detailed-exitcode", *more)

    def apply(self, *more: str) -> Outcome:
        """`terraform apply`."""
        return self.run("apply", "-json", "-input=false", "-auto-approve", *more)

    def apply_until_started(self, address: str, action: Callable[[], None]) -> Outcome:
        """`terraform apply`, and `action` as soon as it begins to apply the resource at `address`."""
        process = self.start("apply", "-json", "-input=false", "-auto-approve")
        assert process.stdout is not None
        before: list[str] = []
        for line in process.stdout:
            before.append(line)
            event = json.loads(line)
            if event.get("type") == "apply_start" and event["hook"]["resource"]["addr"] == address:
                action()
                break
        return finished(process, "".join(before))

    def destroy(self) -> Outcome:
        """`terraform destroy`."""
        return self.run("apply", "-json", "-destroy", "-input=false", "-auto-approve")

    def instances(self) -> dict[str, Mapping[str, Any]]:
        """The instances of all resources in the state file, by address. Terraform locks an empty file."""
        state = json.loads((self.folder / "terraform.tfstate").read_text() or '{"resources": []}')
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
        """The names of all objects."""
        return sorted(file.stem for file in self.object_folder.glob("*.json"))


def finished(process: "subprocess.Popen[str]", before: str = "") -> Outcome:
    """The outcome of a command, after its end; `before` is the output that was read already."""
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    events = [json.loads(line) for line in (before + output).splitlines() if line.startswith("{")]
    return Outcome(process.returncode, [one for one in events if "type" in one], errors)


def find_terraform() -> str:
    """The binary that SETPOINT_TERRAFORM names, else the one on the PATH, else OpenTofu; NotBuilt says why not."""
    return shutil.which(os.environ.get("SETPOINT_TERRAFORM") or "terraform") or str(OPENTOFU.built(os.environ))
