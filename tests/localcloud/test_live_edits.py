"""Edits of live objects: drift, without validation."""

import pytest

from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.cloud import Cloud
from tests.localcloud.requests import BUCKET, DB, create, done, get, make_bucket, ok


def test_an_edited_instance_shows_the_edit_and_a_new_settings_version(cloud: Cloud) -> None:
    create(cloud)
    cloud.edit(DB, {"region": "mars", "settings": {"tier": "db-huge", "storageAutoResizeLimit": None}})
    live = get(cloud, DB)

    assert (live["region"], live["settings"]["tier"]) == ("mars", "db-huge")
    assert "storageAutoResizeLimit" not in live["settings"]
    assert live["settings"]["settingsVersion"] == "2"


def test_an_edited_output_outlives_the_next_write(cloud: Cloud) -> None:
    create(cloud)
    cloud.edit(DB, {"ipAddresses": [{"ipAddress": "192.0.2.1", "type": "PRIMARY"}], "state": "SUSPENDED"})
    done(cloud, "PATCH", DB, {"settings": {"tier": "db-f1-micro"}})
    live = get(cloud, DB)

    assert live["ipAddresses"] == [{"ipAddress": "192.0.2.1", "type": "PRIMARY"}]
    assert (live["state"], live["settings"]["tier"]) == ("SUSPENDED", "db-f1-micro")


def test_an_edit_that_changes_nothing_moves_no_version(cloud: Cloud) -> None:
    live, bucket = create(cloud), make_bucket(cloud)
    cloud.edit(DB, {"settings": {"tier": "db-custom-1-3840"}})
    cloud.edit(BUCKET, {"storageClass": "STANDARD"})

    assert get(cloud, DB) == live
    assert get(cloud, BUCKET) == bucket


def test_buckets_and_databases_can_be_edited_too(cloud: Cloud) -> None:
    create(cloud)
    make_bucket(cloud)
    ok(cloud.call("POST", f"{DB}/databases", {"name": "orders"}))
    cloud.edit(f"{DB}/databases/orders", {"charset": "latin1"})
    cloud.edit("/b/stuff", {"location": "MARS", "labels": {"by": "hand"}})

    assert get(cloud, f"{DB}/databases/orders")["charset"] == "latin1"
    assert (get(cloud, BUCKET)["location"], get(cloud, BUCKET)["metageneration"]) == ("MARS", "2")


@pytest.mark.parametrize("path", [DB, f"{DB}/databases/orders", BUCKET, "/somewhere/else"])
def test_a_missing_object_cannot_be_edited(cloud: Cloud, path: str) -> None:
    if "databases" in path:
        create(cloud)

    with pytest.raises(CloudApiError):
        cloud.edit(path, {"a": 1})
