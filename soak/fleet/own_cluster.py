"""An API server of the soak's own, with an installation: processes have its rights, and a tenant is set up."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner

from setpoint.app import definitions
from setpoint.cli.main import main
from setpoint.core.values.json_types import JsonObject
from setpoint.deployment.installation import Installation
from soak.fleet.cluster_objects import AUDIT_POLICY
from soak.fleet.scenario import Place, Print
from soak.fleet.subjects import PROJECT
from tests.cluster.access import Access, write_account_kubeconfig
from tests.cluster.assets import Missing, find
from tests.cluster.polling import until
from tests.cluster.progress import Progress
from tests.cluster.server import CONTROLLERS, Cluster, Settings
from tests.deployment.installed_objects import DEFAULT, process

_RIGHTS: Final = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def own_cluster(folder: Path, report: Print) -> Iterator[Place]:
    """A namespace there, set up as a tenant; it ends with the block. SystemExit when there are no programs for it."""
    assets = find(os.environ, Progress(report))
    if isinstance(assets, Missing):
        raise SystemExit(f"no API server: {assets.reason}")
    server, policy, log = folder / "cluster", folder / "audit-policy.yaml", folder / "audit.log"
    server.mkdir(exist_ok=True)
    policy.write_text(json.dumps(AUDIT_POLICY), encoding="utf-8")
    # The role of a tenant is an aggregated one.
    settings = Settings(CONTROLLERS, arguments=(f"--audit-policy-file={policy}", f"--audit-log-path={log}"))
    with Cluster(assets, server, settings) as cluster:
        _install(cluster.access)
        namespace = cluster.access.new_namespace(is_tenant=False, project="")
        kubeconfig = folder / "controller.kubeconfig"
        _set_up(cluster.access, namespace, kubeconfig)
        yield Place(cluster.access, namespace, folder, kubeconfig, log)


def _install(access: Access) -> None:
    """Our kinds are served when this returns."""
    found = list(definitions().values())
    for one in found:
        assert access.call("POST", _DEFINITIONS, one).status == HTTPStatus.CREATED
    until(lambda: all(access.call("GET", _collection(one)).status == HTTPStatus.OK for one in found))


def _set_up(access: Access, namespace: str, kubeconfig: Path) -> None:
    """Installs what the processes may do in the one namespace that they reconcile, and makes its users a tenant."""
    installation = replace(DEFAULT, namespace=namespace, watch_namespace=namespace)
    options = ("tenant", namespace, "--project", PROJECT, "--operator-namespace", namespace)
    account = ("--operator-service-account", installation.account)
    done = CliRunner(env={"KUBECONFIG": str(access.kubeconfig)}).invoke(main, [*options, *account])
    assert done.exit_code == 0, done.output
    for path, one in _objects(installation):
        answer = access.call("POST", path, one)
        assert answer.status == HTTPStatus.CREATED, answer
    write_account_kubeconfig(access, namespace, installation.account, kubeconfig)


def _objects(installation: Installation) -> Iterator[tuple[str, JsonObject]]:
    """The accounts and roles of an installation, each with the path where it is made."""
    for (kind, namespace, _), one in process(installation).items():
        if kind in _RIGHTS:
            place = f"/namespaces/{namespace}" if namespace else ""
            version = str(one["apiVersion"])
            yield f"/{'api' if version == 'v1' else 'apis'}/{version}{place}/{kind.lower()}s", one


def _collection(definition: JsonObject) -> str:
    spec: Any = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
