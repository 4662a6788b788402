"""A cluster with the installed controller, which has only the rights of an installation, and two tenants."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from click.testing import CliRunner

from setpoint.cli.main import main
from soak.fleet.cloud import MultiEndpointCloud
from soak.fleet.process import RunProcess, surroundings
from tests.cluster.access import USERS, Access, write_account_kubeconfig
from tests.cluster.polling import until
from tests.cluster.running.background_loop import BackgroundLoop
from tests.cluster.running.kubectl import Kubectl, install_kinds
from tests.deployment.installed_objects import ALL_KINDS, DEFAULT, process, types

T = TypeVar("T")
_HOME: Final = "setpoint-system"
# What is not applied: the kinds are served already, and pods do not run on this API server.
_LEFT_OUT: Final = ("CustomResourceDefinition", "Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service")


@dataclass(frozen=True, slots=True)
class TenantUser:
    """A user with the role `edit` in one namespace, and with its own token."""

    name: str
    namespace: str
    program: Path
    access: Access

    def kubectl(self, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """kubectl as this user, in the user's namespace."""
        place = (f"--kubeconfig={self.access.kubeconfig_of(self.name)}", f"--namespace={self.namespace}")
        command = [str(self.program), *place, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, env={**os.environ})

    def apply(self, *manifests: Any) -> None:
        """`kubectl apply` as this user; it has to succeed."""
        stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        done = self.kubectl("apply", "-f", "-", stdin=stdin)
        assert done.returncode == 0, done.stderr

    def refused(self, *manifests: Any) -> str:
        """What `kubectl apply` as this user says when the API server refuses a manifest."""
        done = self.kubectl(
            "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        )
        assert done.returncode != 0, done.stdout
        return done.stderr

    def get(self, target: str) -> Any:
        """The object `KIND/NAME`, as this user; None when there is none."""
        done = self.kubectl("get", target, "--ignore-not-found", "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def ready(self, target: str) -> dict[str, str]:
        """The Ready condition, once it is about the current generation; empty before that."""
        found = self.get(target)
        status = {} if found is None else found.get("status", {})
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return {}
        return next((one for one in status.get("conditions", ()) if one["type"] == "Ready"), {})

    def until_reason(self, target: str, *reasons: str) -> str:
        """The message of the Ready condition, once it has one of these reasons."""
        until(lambda: self.ready(target).get("reason") in reasons)
        return self.ready(target)["message"]


@dataclass(slots=True)
class TenantCluster:
    """Enter it to install the controller, to start it as its ServiceAccount, and to set up both tenants."""

    access: Access
    program: Path
    folder: Path
    cloud: MultiEndpointCloud = field(default_factory=MultiEndpointCloud)
    controller: RunProcess = field(init=False)
    alice: TenantUser = field(init=False)
    bob: TenantUser = field(init=False)
    _background: BackgroundLoop = field(default_factory=BackgroundLoop)
    _running: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._running.close()
            raise
        return self

    def _start(self) -> None:
        self._running.enter_context(self._background)
        self._background.run(self.cloud.start())
        self._running.callback(lambda: self._background.run(self.cloud.stop()))
        install_kinds(self.access, self.program)
        Kubectl(self.program, self.access, _HOME).apply(*self._installed_objects())
        self.alice, self.bob = (self._new_user(name) for name in USERS)
        endpoint = self._background.run(self.cloud.open_endpoint("controller"))
        found = surroundings(self._controller_kubeconfig(), _HOME, endpoint, self.folder)
        environment = {**found, "SETPOINT_STORE": "kubernetes"}
        self.controller = RunProcess("controller", self.folder, environment)
        self._running.callback(self._end)
        self.controller.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @property
    def admin(self) -> Kubectl:
        """kubectl as the administrator."""
        return Kubectl(self.program, self.access, "default")

    def in_cloud(self, verb: Callable[[MultiEndpointCloud], T]) -> T:
        """The result of `verb` on the local cloud."""
        return self._background.call(lambda: verb(self.cloud))

    def _installed_objects(self) -> list[Any]:
        objects = (*types(ALL_KINDS).values(), *process(replace(DEFAULT, kinds=ALL_KINDS)).values())
        return [one for one in objects if one["kind"] not in _LEFT_OUT]

    def _controller_kubeconfig(self) -> Path:
        """A kubeconfig with the token of the controller's ServiceAccount, as its pod has it."""
        file = self.folder / "controller.kubeconfig"
        write_account_kubeconfig(self.access, _HOME, "setpoint", file)
        return file

    def _new_user(self, name: str) -> TenantUser:
        """A user with the role `edit`, in a namespace that an administrator set up."""
        namespace = self.access.new_namespace(is_tenant=False, project="")
        environment = {"KUBECONFIG": str(self.access.kubeconfig)}
        options = ["tenant", namespace, "--kinds", ",".join(ALL_KINDS), "--project", f"project-{name}"]
        done = CliRunner(env=environment).invoke(main, options, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        admin = Kubectl(self.program, self.access, namespace)
        admin("create", "rolebinding", "editor", "--clusterrole=edit", f"--user={name}")
        admin("create", "role", "objects", "--verb=*", "--resource=kubernetesobjects.setpoint.dev")
        admin("create", "rolebinding", "objects", "--role=objects", f"--user={name}")
        for resource in ("kubernetesobjects.setpoint.dev", "sqlusers.sql.cnrm.cloud.google.com", "secrets"):
            self.access.until_permitted(name, "create", resource, namespace)
        return TenantUser(name, namespace, self.program, self.access)

    def _end(self) -> None:
        bugs, code = self.controller.bugs(), self.controller.stop()
        assert (bugs, code) == ([], 0), self.controller.child.tail()
