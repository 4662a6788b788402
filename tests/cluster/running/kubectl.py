"""kubectl in one namespace."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setpoint.app import definitions
from tests.cluster.access import Access
from tests.cluster.polling import until


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The program, the API server and the namespace."""

    program: Path
    access: Access
    namespace: str

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """The output; AssertionError with the errors when it fails."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments: str, stdin: str | None = None, editor: str = "") -> "subprocess.CompletedProcess[str]":
        """The completed process. `editor` is the command for `kubectl edit`."""
        place = (f"--kubeconfig={self.access.kubeconfig}", f"--namespace={self.namespace}")
        command, environment = [str(self.program), *place, *arguments], {**os.environ, "KUBE_EDITOR": editor}
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env=environment)

    def apply(self, *manifests: Any) -> None:
        """`kubectl apply` of the manifests."""
        self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def get(self, target: str) -> Any:
        """The object `KIND/NAME`; None when there is none."""
        text = self("get", target, "--ignore-not-found", "--show-managed-fields", "-o", "json")
        return json.loads(text) if text else None

    def until_ready(self, *targets: str) -> None:
        """`kubectl wait` for the condition Ready."""
        self("wait", "--for=condition=Ready", *targets, "--timeout=240s")


def install_kinds(access: Access, program: Path) -> None:
    """Applies our CustomResourceDefinitions, and returns when they are served."""
    found = list(definitions().values())
    kubectl = Kubectl(program, access, "default")
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))

    def are_served() -> bool:
        return all(access.call("GET", _collection(one)).status == 200 for one in found)

    until(are_served)


def _collection(definition: Any) -> str:
    spec = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
