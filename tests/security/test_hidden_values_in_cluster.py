"""Secret values of custom resources, on a real API server: commands hide them as they do those of an embedded store."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from setpoint.app import AppSettings, StoreAccess, definitions, open_app
from setpoint.cli.main import main
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.resource import ResourceRef
from setpoint.engine.step.outcomes import Settled, Stopped
from setpoint.engine.step.reconcile import preview, step
from setpoint.errors import ManifestInvalid
from tests.cluster.access import Access
from tests.cluster.objects.object_harness import environment
from tests.cluster.polling import until
from tests.security.secret_places import LAST_APPLIED, bytes_of, kubernetes_object, secret, traces, user

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PASSWORD = "correct-horse-battery-staple"
OTHER = "another-horse-battery-staple"
USER: GroupKind = ("sql.cnrm.cloud.google.com", "SQLUser")
OBJECT: GroupKind = ("setpoint.dev", "KubernetesObject")
PATHS = {USER: "sql.cnrm.cloud.google.com/v1beta1", OBJECT: "setpoint.dev/v1alpha1"}


@pytest.fixture
def served(api_server: Access) -> Access:
    """The shared API server, which serves our kinds."""
    paths = list[str]()
    for (group, _), definition in definitions().items():
        made = api_server.call("POST", DEFINITIONS, definition)
        assert made.status in (201, 409), made
        spec: Any = definition["spec"]
        paths.append(f"/apis/{group}/{spec['versions'][0]['name']}/namespaces/default/{spec['names']['plural']}")
    until(lambda: all(api_server.call("GET", path).status == 200 for path in paths))
    return api_server


def create(document: JsonObject, kind: GroupKind, served: Access, namespace: str) -> None:
    """Creates a custom resource as kubectl does: with a copy of it in an annotation."""
    metadata: Any = document["metadata"]
    annotations = {LAST_APPLIED: json.dumps(document), "cnrm.cloud.google.com/project-id": "some-project"}
    path = f"/apis/{PATHS[kind]}/namespaces/{namespace}/{kind[1].lower()}s"
    body = {**document, "metadata": {**metadata, "namespace": namespace, "annotations": annotations}}
    made = served.call("POST", path, body)
    assert made.status == 201, made


def test_commands_hide_the_secret_values_of_custom_resources(served: Access, namespace: str) -> None:
    create(user(PASSWORD), USER, served, namespace)
    create(kubernetes_object(secret(PASSWORD)), OBJECT, served, namespace)
    kubeconfig = {**environment(served.kubeconfig), "SETPOINT_GCP_AUTH": "anonymous"}

    def printed(*arguments: str) -> str:
        done = CliRunner().invoke(main, ["--store", "kubernetes", *arguments, "-n", namespace], env=kubeconfig)
        assert done.exit_code == 0, done.output
        return done.output

    seen = [
        printed(command, f"{kind}/app", "-o", form)
        for command in ("get", "describe", "explain")
        for kind in ("SQLUser", "KubernetesObject")
        for form in ("table", "yaml", "json")
    ]
    seen += [printed("export"), printed("events"), printed("graph")]

    assert traces(PASSWORD, "".join(seen).encode()) == []
    assert PASSWORD in printed("get", "SQLUser/app", "-o", "yaml", "--show-secrets")


def test_the_mark_of_a_hidden_value_never_becomes_a_password(served: Access, namespace: str) -> None:
    create(user("(redacted)"), USER, served, namespace)
    settings = AppSettings("kubernetes", environment=environment(served.kubeconfig))

    async def scenario() -> Any:
        async with open_app(settings, StoreAccess.WRITE) as opened:
            outcome = await step(ResourceRef(*USER, namespace, "app"), opened.engine)
            # Nothing was asked of Google.
            return outcome, opened.requests[0]

    outcome, requests = asyncio.run(scenario())

    assert isinstance(outcome, Stopped)
    assert isinstance(outcome.error, ManifestInvalid)
    assert 'spec.password.value is "(redacted)"' in str(outcome.error)
    assert requests == {}


def test_the_plan_for_a_custom_resource_hides_its_secret_values(served: Access, namespace: str, tmp_path: Path) -> None:
    settings = AppSettings(f"sqlite:///{tmp_path}/state.db", environment=environment(served.kubeconfig))
    ref = ResourceRef(*OBJECT, "default", "app")

    async def scenario() -> list[str]:
        async with open_app(settings, StoreAccess.WRITE) as opened:
            plans = []
            for text in (PASSWORD, OTHER):
                await opened.engine.store.apply(kubernetes_object(user(text, namespace=namespace)))
                plans.append(str((await preview(ref, opened.engine)).to_data()))
                assert isinstance(await step(ref, opened.engine), Settled)
            return [*plans, str((await opened.engine.store.get(ref)).status)]  # type: ignore[union-attr] # it is there

    first, second, status = asyncio.run(scenario())

    assert "spec.password" in first
    assert "(redacted)" in first
    assert "spec.password" in second
    for content in (first.encode(), second.encode(), status.encode(), bytes_of(tmp_path)):
        assert [traces(text, content) for text in (PASSWORD, OTHER)] == [[], []]
    live = served.call("GET", f"/apis/{PATHS[USER]}/namespaces/{namespace}/sqlusers/app").body
    assert live["spec"]["password"] == {"value": OTHER}
