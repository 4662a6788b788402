"""Paused, observe-only and fully managed resources on the command line; Secrets, which are not reconciled."""

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from setpoint.cli.main import main

pytestmark = pytest.mark.usefixtures("folder_with_cloud")
BUCKET = """\
apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata:
  name: {name}
  annotations:
    cnrm.cloud.google.com/project-id: demo
    setpoint.dev/management: {management}
spec:
  location: {location}
"""


def _write(name: str, management: str = "full", location: str = "EU") -> None:
    text = BUCKET.format(name=name, management=management, location=location)
    Path("bucket.yaml").write_text(text, encoding="utf-8")


def _setpoint(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_unpausing_a_resource_completes_its_deletion_and_the_output_says_so() -> None:
    _write("paused-away", "paused")
    _setpoint("apply", "-f", "bucket.yaml")
    _write("paused-away")
    _setpoint("apply", "-f", "bucket.yaml")
    _write("paused-away", "paused")
    _setpoint("apply", "-f", "bucket.yaml")
    assert "paused" in _setpoint("delete", "StorageBucket/paused-away").output
    _write("paused-away")

    released = _setpoint("apply", "-f", "bucket.yaml")

    message = "StorageBucket default/paused-away was being deleted, and is gone now: apply it again to make it anew"
    assert (released.exit_code, message in released.output) == (3, True)
    assert _setpoint("apply", "-f", "bucket.yaml").exit_code == 0


def test_the_plan_of_an_observe_only_resource_shows_the_diff_and_writes_nothing() -> None:
    _write("observed")
    _setpoint("apply", "-f", "bucket.yaml")
    text = BUCKET.format(name="observed", management="observe", location="EU") + "  versioning: {enabled: true}\n"
    Path("bucket.yaml").write_text(text, encoding="utf-8")

    shown, data = _setpoint("plan", "-f", "bucket.yaml"), _setpoint("plan", "-f", "bucket.yaml", "-o", "json")

    assert (shown.exit_code, data.exit_code) == (0, 0)
    assert "nothing is written: setpoint.dev/management is observe" in shown.output
    (plan,) = (one["plan"] for one in orjson.loads(data.output)["results"])
    assert (plan["writes"], [change["path"] for change in plan["withheld"]]) == ([], ["spec.versioning.enabled"])


def test_the_plan_of_a_paused_resource_says_so() -> None:
    _write("resting", "paused")

    shown = _setpoint("plan", "-f", "bucket.yaml")

    assert (shown.exit_code, "setpoint.dev/management is paused" in shown.output) == (0, True)


def test_a_secret_is_listed_without_a_ready_state() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n"
    Path("bucket.yaml").write_text(text, encoding="utf-8")
    _setpoint("apply", "-f", "bucket.yaml")

    listed = _setpoint("get").output.splitlines()[1].split()

    assert listed[:5] == ["Secret", "default", "s", "-", "-"]
