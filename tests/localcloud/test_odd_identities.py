"""Ids that a service makes, and objects that it keeps for a time after their deletion."""

from setpoint.localcloud.cloud import Cloud
from tests.localcloud.requests import OPERATION_SECONDS, error_message, get, ok

_FOLDERS = "/cloudresourcemanager.googleapis.com/v3/folders"
_CHANNELS = "/monitoring.googleapis.com/v3/projects/acme/notificationChannels"


def _folder(cloud: Cloud, name: str, parent: str = "organizations/1") -> str:
    ok(cloud.call("POST", _FOLDERS, {"displayName": name, "parent": parent}))
    cloud.advance(OPERATION_SECONDS)
    found = get(cloud, f"{_FOLDERS}?parent={parent}")["folders"]
    return next(str(one["name"]) for one in found if one["displayName"] == name)


def test_the_service_makes_another_id_for_each_object(cloud: Cloud) -> None:
    first, second = (ok(cloud.call("POST", _CHANNELS, {"type": "email"})) for _ in range(2))

    assert first["name"] != second["name"]
    assert [str(one["name"]).rpartition("/")[2].isdecimal() for one in (first, second)] == [True, True]


def test_a_list_of_folders_is_one_of_a_parent(cloud: Cloud) -> None:
    name = _folder(cloud, "a")
    _folder(cloud, "a", "organizations/2")

    assert [one["name"] for one in get(cloud, f"{_FOLDERS}?parent=organizations/1")["folders"]] == [name]
    assert get(cloud, f"{_FOLDERS}?parent=organizations/3") == {}


def test_a_parent_has_no_two_folders_of_the_same_name(cloud: Cloud) -> None:
    _folder(cloud, "a")

    refused = cloud.call("POST", _FOLDERS, {"displayName": "a", "parent": "organizations/1"})

    assert refused.status == 409
    assert "already exists" in error_message(refused)


def test_a_deleted_folder_is_kept_and_gives_its_name_free(cloud: Cloud) -> None:
    name = _folder(cloud, "a")
    path = f"{_FOLDERS}/{name.rpartition('/')[2]}"
    ok(cloud.call("DELETE", path))
    cloud.advance(OPERATION_SECONDS)

    assert get(cloud, path)["state"] == "DELETE_REQUESTED"
    assert get(cloud, f"{_FOLDERS}?parent=organizations/1") == {}
    assert [one["name"] for one in get(cloud, f"{_FOLDERS}?parent=organizations/1&showDeleted=true")["folders"]] == [
        name
    ]
    assert cloud.call("DELETE", path).status == 400
    assert _folder(cloud, "a") != name


def test_a_deleted_project_is_kept_and_its_id_stays_taken(cloud: Cloud) -> None:
    projects = "/cloudresourcemanager.googleapis.com/v1/projects"
    ok(cloud.call("POST", projects, {"projectId": "acme", "name": "Acme"}))
    cloud.advance(OPERATION_SECONDS)

    assert ok(cloud.call("DELETE", f"{projects}/acme")) == {}

    assert get(cloud, f"{projects}/acme")["lifecycleState"] == "DELETE_REQUESTED"
    assert cloud.call("DELETE", f"{projects}/acme").status == 400
    assert cloud.call("POST", projects, {"projectId": "acme", "name": "Acme"}).status == 409
