"""References to resources that are created later, and to Secrets."""

import json

from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness
from tests.cluster.running.manifests import PROJECT, database, instance, instance_path, secret, user


def _logs_in(harness: ControllerHarness, at: str, name: str, password: str) -> bool:
    return harness.in_cloud(lambda cloud: cloud.password_matches(PROJECT, at, name, password))


def test_a_reference_to_a_later_resource_is_waited_for(shared_harness: ControllerHarness) -> None:
    shared_harness.kubectl.apply(database("later", "comes-later"))
    shared_harness.kubectl(
        "wait",
        "sqldatabase/later",
        "--for=jsonpath={.status.conditions[0].reason}=DependencyNotFound",
        "--timeout=240s",
    )

    shared_harness.kubectl.apply(instance("comes-later"))
    shared_harness.kubectl.until_ready("sqlinstance/comes-later", "sqldatabase/later")

    assert shared_harness.live(f"{instance_path('comes-later')}/databases/later")["charset"] == "utf8mb4"


def test_a_changed_secret_rotates_the_password(shared_harness: ControllerHarness) -> None:
    shared_harness.kubectl.apply(
        instance("rotated"), user("app", "rotated", "app-password"), secret("app-password", "One-1")
    )
    shared_harness.kubectl.until_ready("sqlinstance/rotated", "sqluser/app")
    before = _logs_in(shared_harness, "rotated", "app", "One-1")

    shared_harness.kubectl.apply(secret("app-password", "Two-2"))
    until(lambda: _logs_in(shared_harness, "rotated", "app", "Two-2"))
    shared_harness.kubectl.until_ready("sqluser/app")

    assert before
    # The default users of an instance are deleted.
    written = [one.method for one in shared_harness.writes_to(f"{instance_path('rotated')}/users")]
    assert [method for method in written if method != "DELETE"] == ["POST", "PUT"]


def test_values_of_secrets_are_neither_watched_nor_shown(shared_harness: ControllerHarness) -> None:
    shared_harness.kubectl.apply(
        instance("discreet"), user("silent", "discreet", "silence"), secret("silence", "Sesame-3")
    )
    shared_harness.kubectl.until_ready("sqluser/silent")
    shown = shared_harness.kubectl("get", "setpoint,events", "-o", "json")
    logged = json.dumps([process.lines() for process in shared_harness.processes])

    lists_and_watches = [one for one in shared_harness.requests() if one.path.endswith("/secrets")]
    assert lists_and_watches
    assert [one for one in lists_and_watches if "as=PartialObjectMetadata" not in one.accept] == []
    assert not any(form in text for form in ("Sesame-3", "U2VzYW1lLTM=") for text in (shown, logged))
