"""`setpoint run --notify`: real processes that are killed and started again, and receivers that are HTTP servers."""

import re
import signal
from urllib.request import urlopen

import pytest

from tests.cli.workspace import Workspace, bucket
from tests.runtime.receivers import receiving


def _drift(workspace: Workspace, storage_class: str) -> None:
    def change(cloud: object) -> None:
        body = {"storageClass": storage_class}
        assert cloud.call("PATCH", "/storage/v1/b/seen-1", body).status == 200  # type: ignore[attr-defined]

    workspace.in_cloud(change)


def _apply_observed(workspace: Workspace) -> None:
    """A bucket that is there, and only observed from now on."""
    workspace.apply(bucket("seen-1"))
    workspace.apply(bucket("seen-1").replace("annotations: {", "annotations: {setpoint.dev/management: observe, "))


def test_drift_is_told_once_over_a_kill_and_its_end_as_well(workspace: Workspace) -> None:
    raised, resolved = ("raised", "drift", "seen-1"), ("resolved", "drift", "seen-1")
    with receiving() as receiver:
        _apply_observed(workspace)
        _drift(workspace, "NEARLINE")
        first = workspace.daemon("--notify", f"{receiver.url}/hook")
        receiver.until(lambda: receiver.told() == [raised])
        # The answer may still be on its way: what is on record decides.
        receiver.until(lambda: (workspace.folder / ".setpoint/state.db.notified").exists())
        first.send(signal.SIGKILL)
        first.end()

        second = workspace.daemon("--notify", f"{receiver.url}/hook", "--metrics", "127.0.0.1:0")
        assert workspace.run("reconcile", "StorageBucket/seen-1").returncode in (0, 3)
        _drift(workspace, "STANDARD")
        assert workspace.run("reconcile", "StorageBucket/seen-1").returncode == 0
        receiver.until(lambda: receiver.told() == [raised, resolved])
        second.until(lambda: "serving" in second.text)
        second.send(signal.SIGTERM)

        assert second.end() == 0
        assert receiver.told() == [raised, resolved]
        assert receiver.received[0].json["message"].startswith("The live object differs in spec.storageClass")


def test_a_receiver_that_hangs_delays_no_step(workspace: Workspace) -> None:
    with receiving(*[(0, {})] * 3) as receiver:
        _apply_observed(workspace)
        _drift(workspace, "NEARLINE")
        process = workspace.daemon("--notify", f"slack+{receiver.url}", "--metrics", "127.0.0.1:0")
        receiver.until(lambda: len(receiver.received) == 1)
        workspace.write(bucket("more-1"))

        # The receiver still holds its answer back.
        applied = workspace.run("apply", "-f", "manifest.yaml")
        process.until(lambda: re.search(r'"port":\d+|127\.0\.0\.1:\d+', process.text))
        (address,) = set(re.findall(r"127\.0\.0\.1:\d{4,5}", process.text)) - {receiver.url.removeprefix("http://")}
        with urlopen(f"http://{address}/metrics") as response:
            page = response.read().decode()
        receiver.released.set()
        process.send(signal.SIGTERM)

        assert applied.stdout == "StorageBucket default/more-1 created\ncreated 1\n"
        assert process.end() == 0
        assert 'setpoint_notifications_total{receiver="1 127.0.0.1",result="sent"} 0.0' in page


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--notify", "example.com"], "--notify: address 1 begins with ''"),
        (["--notify", "pager+https://example.com"], "'pager' is no format"),
        (["--notify-secret-file", "nowhere"], "--notify-secret-file is for the messages of --notify"),
        (["--notify", "https://example.com", "--notify-secret-file", "nowhere"], "nowhere cannot be read"),
    ],
)
def test_a_wrong_option_ends_the_process_at_its_start(workspace: Workspace, options: list[str], why: str) -> None:
    done = workspace.run("run", *options)

    assert done.returncode == 1
    assert why in done.stderr


def test_a_damaged_record_ends_the_process_at_its_start(workspace: Workspace) -> None:
    workspace.apply(bucket("seen-1"))
    (workspace.folder / ".setpoint/state.db.notified").write_text("{")

    done = workspace.run("run", "--notify", "http://127.0.0.1:9/")

    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert "state.db.notified" in done.stderr
