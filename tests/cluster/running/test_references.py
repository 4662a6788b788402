"""What resources refer to: resources that are created later, and Secrets whose values are not watched."""

import json

from tests.cluster.polling import until
from tests.cluster.running.manifests import PROJECT, database, instance, instance_path, secret, user
from tests.cluster.running.controller_harness import Site


def _logs_in(site: Site, at: str, name: str, password: str) -> bool:
    return site.in_cloud(lambda cloud: cloud.password_matches(PROJECT, at, name, password))


def test_what_refers_to_something_that_comes_later_waits_for_it(busy_site: Site) -> None:
    busy_site.kubectl.apply(database("later", "comes-later"))
    busy_site.kubectl(
        "wait",
        "sqldatabase/later",
        "--for=jsonpath={.status.conditions[0].reason}=DependencyNotFound",
        "--timeout=240s",
    )

    busy_site.kubectl.apply(instance("comes-later"))
    busy_site.kubectl.until_ready("sqlinstance/comes-later", "sqldatabase/later")

    assert busy_site.live(f"{instance_path('comes-later')}/databases/later")["charset"] == "utf8mb4"


def test_a_secret_that_changes_rotates_the_password_at_once(busy_site: Site) -> None:
    busy_site.kubectl.apply(
        instance("rotated"), user("app", "rotated", "app-password"), secret("app-password", "One-1")
    )
    busy_site.kubectl.until_ready("sqlinstance/rotated", "sqluser/app")
    before = _logs_in(busy_site, "rotated", "app", "One-1")

    busy_site.kubectl.apply(secret("app-password", "Two-2"))
    until(lambda: _logs_in(busy_site, "rotated", "app", "Two-2"))
    busy_site.kubectl.until_ready("sqluser/app")

    assert before
    # The users that an instance is made with are deleted.
    written = [one.method for one in busy_site.writes_to(f"{instance_path('rotated')}/users")]
    assert [method for method in written if method != "DELETE"] == ["POST", "PUT"]


def test_values_of_secrets_are_neither_watched_nor_told(busy_site: Site) -> None:
    busy_site.kubectl.apply(instance("discreet"), user("silent", "discreet", "silence"), secret("silence", "Sesame-3"))
    busy_site.kubectl.until_ready("sqluser/silent")
    told = busy_site.kubectl("get", "setpoint,events", "-o", "json")
    logged = json.dumps([process.lines() for process in busy_site.processes])

    lists_and_watches = [one for one in busy_site.asked() if one.path.endswith("/secrets")]
    assert lists_and_watches
    assert [one for one in lists_and_watches if "as=PartialObjectMetadata" not in one.accept] == []
    assert not any(form in text for form in ("Sesame-3", "U2VzYW1lLTM=") for text in (told, logged))
