"""A workspace with a Trustee, in a store without a cluster."""

from collections.abc import Sequence
from typing import Any, Final

import yaml

from tests.cli.workspace import Workspace

TRUSTEE: Final = """apiVersion: confidentialcontainers.org/v1alpha1
kind: TrusteeConfig
metadata: {{name: trustee}}
spec: {{profileType: {profile}}}
"""
POLICY: Final = """apiVersion: v1
kind: ConfigMap
metadata: {name: trustee-resource-policy}
data: {resource-policy.rego: mine}
"""
KBS: Final = "KbsConfig/trustee-kbs-config"
ROLLING: Final = "Deployment default/trustee-deployment: the controller has not reported yet"


def trustee(profile: str = "Permissive") -> str:
    """The manifest of a Trustee."""
    return TRUSTEE.format(profile=profile)


class TrusteeCommands:
    """Runs commands with the environment variable that a Trustee needs; `store` are the options of another store."""

    def __init__(self, workspace: Workspace, *store: str) -> None:
        self.workspace = workspace
        self._store = store

    def run(self, *arguments: str) -> tuple[int, list[str]]:
        """The exit code, and the lines on standard output and standard error."""
        done = self.workspace.run(*self._store, *arguments, OPERATOR_IMAGE_NAME="operator:1")
        return done.returncode, (done.stdout + done.stderr).splitlines()

    def apply(self, *manifests: str) -> tuple[int, list[str]]:
        """Applies manifests: the exit code and the lines."""
        self.workspace.write(*manifests)
        return self.run("apply", "-f", "manifest.yaml")

    def tree(self, name: str) -> Any:
        """An object in the store."""
        code, lines = self.run("get", name, "-o", "yaml")
        assert code == 0, lines
        return yaml.safe_load("\n".join(lines))

    def edit(self, name: str, **fields: Any) -> tuple[int, list[str]]:
        """Applies an object with some fields of its spec replaced."""
        found = self.tree(name)
        found["spec"] |= fields
        return self.apply(yaml.safe_dump(found))

    def changes(self) -> Sequence[str]:
        """The lines of the plan of the owner, between its reason and the summary."""
        return self.run("plan", "TrusteeConfig/trustee")[1][2:-1]
