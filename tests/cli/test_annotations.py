"""Annotations on the command line: near misses are refused by file and line, others are warned of on standard error."""

import asyncio
import io
import os
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from setpoint.app import DEFAULT_STORE, AppSettings, StoreAccess, open_engine
from setpoint.cli.main import main
from setpoint.cli.views.resources import explanation_of
from setpoint.cli.views.terminal import SafeConsole
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.library.inspection.records import StepExplanation

pytestmark = pytest.mark.usefixtures("folder_with_cloud")
BUCKET = """\
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: {name}
  annotations:
    cnrm.cloud.google.com/project-id: demo
    {annotation}
spec:
  location: EU
"""
TRUSTEE = """\
apiVersion: confidentialcontainers.org/v1alpha1
kind: TrusteeConfig
metadata:
  name: trustee
  annotations:
    cnrm.cloud.google.com/ignore-unspecified-fields: "true"
spec:
  profileType: Permissive
"""
INSTEAD = (
    "cnrm.cloud.google.com/state-into-spec has no effect on a StorageBucket: no live value is written into the spec "
    "here. Config Connector keeps the live value of a field that the spec leaves out, with merge and with absent: "
    'cnrm.cloud.google.com/ignore-unspecified-fields: "true" does so here, and "false" says that such a field goes '
    "back to its default"
)


def _write(name: str, annotation: str) -> None:
    Path("bucket.yaml").write_text(BUCKET.format(name=name, annotation=annotation), encoding="utf-8")


def _setpoint(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def _is_stored(name: str) -> bool:
    return _setpoint("get", f"StorageBucket/{name}").exit_code == 0


@pytest.mark.parametrize("command", ["apply", "plan"])
@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (
            'cnrm.cloud.google.com/ignore-unspecified-field: "true"',
            "cnrm.cloud.google.com/ignore-unspecified-field is unknown: did you mean "
            "cnrm.cloud.google.com/ignore-unspecified-fields?",
        ),
        (
            "cnrm.cloud.google.com/deletion-policy: ABANDON",
            "cnrm.cloud.google.com/deletion-policy is 'ABANDON': write abandon or delete, in lower case",
        ),
        (
            'cnrm.cloud.google.com/force-destroy: "yes"',
            'cnrm.cloud.google.com/force-destroy is \'yes\': write "true" or "false"',
        ),
    ],
    ids=["key", "policy", "force"],
)
def test_a_near_miss_is_refused_by_file_and_line(command: str, annotation: str, problem: str) -> None:
    _write("never-made", annotation)

    done = _setpoint(command, "-f", "bucket.yaml")

    assert (done.exit_code, done.stderr) == (1, f"error: bucket.yaml:7: {problem}\n")
    assert not _is_stored("never-made")


def test_an_owner_refuses_an_annotation_that_has_no_effect_on_it() -> None:
    Path("trustee.yaml").write_text(TRUSTEE, encoding="utf-8")

    done = _setpoint("plan", "-f", "trustee.yaml")

    assert (done.exit_code, done.stderr) == (
        1,
        "error: trustee.yaml:6: cnrm.cloud.google.com/ignore-unspecified-fields has no effect on a TrusteeConfig: it "
        "is for kinds that stand for one live object, except KubernetesObject; leave it out\n",
    )


def test_an_annotation_without_effect_is_named_by_plan_and_apply_and_stops_neither() -> None:
    _write("copied", "cnrm.cloud.google.com/state-into-spec: merge")

    planned, applied = _setpoint("plan", "-f", "bucket.yaml"), _setpoint("apply", "-f", "bucket.yaml")
    again, every = _setpoint("plan", "StorageBucket/copied"), _setpoint("plan", "--all")
    for_programs = _setpoint("plan", "StorageBucket/copied", "-o", "json")
    described = _setpoint("describe", "StorageBucket/copied")

    assert (planned.exit_code, planned.stderr) == (2, f"warning: bucket.yaml:7: {INSTEAD}\n")
    assert (applied.exit_code, applied.stderr) == (0, f"warning: bucket.yaml:7: {INSTEAD}\n")
    assert (again.exit_code, again.stderr) == (0, f"warning: StorageBucket default/copied: {INSTEAD}\n")
    assert (every.exit_code, every.stderr) == (0, f"warning: StorageBucket default/copied: {INSTEAD}\n")
    assert orjson.loads(for_programs.stdout)["warnings"] == [f"StorageBucket default/copied: {INSTEAD}"]
    assert "cnrm.cloud.google.com/state-into-spec has no effect" in " ".join(described.stdout.split())


def test_what_is_said_of_several_resources_is_said_once() -> None:
    texts = [BUCKET.format(name=name, annotation="setpoint.dev/colour: red") for name in ("one", "two")]
    Path("bucket.yaml").write_text("---\n".join(texts), encoding="utf-8")
    _setpoint("apply", "-f", "bucket.yaml")

    done = _setpoint("plan", "--all", "-o", "json")

    orjson.loads(done.stdout)
    assert done.stderr == (
        "warning: StorageBucket default/one, StorageBucket default/two: setpoint.dev/colour is unknown, and has no "
        "effect: correct its name, or leave it out\n"
    )


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        (
            {"cnrm.cloud.google.com/deletion-policy": "ABANDON"},
            "cnrm.cloud.google.com/deletion-policy is 'ABANDON': write abandon or delete, in lower case",
        ),
        (
            {"cnrm.cloud.google.com/deletion-polcy": "abandon"},
            "cnrm.cloud.google.com/deletion-polcy is unknown: did you mean cnrm.cloud.google.com/deletion-policy?",
        ),
    ],
    ids=["word", "key"],
)
def test_a_resource_whose_policy_is_unknown_is_not_deleted(annotation: dict[str, str], problem: str) -> None:
    _write("kept", "cnrm.cloud.google.com/deletion-policy: delete")
    _setpoint("apply", "-f", "bucket.yaml")
    _annotate("kept", annotation)

    done = _setpoint("delete", "StorageBucket/kept")

    message = f"error: StorageBucket default/kept: {problem}; nothing was deleted\n"
    assert (done.exit_code, done.stderr) == (1, message)
    assert _is_stored("kept")


def _annotate(name: str, annotations: dict[str, str]) -> None:
    """Annotates a resource as a version would that knows these annotations."""

    async def annotate() -> None:
        settings = AppSettings(DEFAULT_STORE, environment=dict(os.environ))
        async with open_engine(settings, StoreAccess.WRITE) as engine:
            found = await engine.store.get(
                ResourceRef("storage.cnrm.cloud.google.com", "StorageBucket", "default", name)
            )
            assert found is not None
            await engine.store.annotate(found, annotations)

    asyncio.run(annotate())


def test_a_resource_with_a_wrong_interval_can_be_explained() -> None:
    interval = "cnrm.cloud.google.com/reconcile-interval-in-seconds"
    resource = Resource(
        {
            "apiVersion": "storage.cnrm.cloud.google.com/v1beta1",
            "kind": "StorageBucket",
            "metadata": {"name": "logs", "namespace": "default", "annotations": {interval: "10m"}},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "UpdateFailed"}]},
        }
    )
    console = SafeConsole(width=200, file=io.StringIO())

    console.print(explanation_of(StepExplanation.of(resource, is_resynced=True)))

    assert isinstance(console.file, io.StringIO)
    assert f"next step: when it is edited: {interval} is '10m': write whole seconds" in console.file.getvalue()
