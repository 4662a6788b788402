"""Objects and their versions, as far as deleting a bucket needs them."""

from setpoint.localcloud.cloud import Cloud, CloudRequest
from setpoint.localcloud.schema import JsonBody
from tests.localcloud.requests import BUCKET, error_message, get, make_bucket, ok, refused

OBJECTS = f"{BUCKET}/o"


def _upload(cloud: Cloud, name: str, content: bytes = b"hello") -> JsonBody:
    query = {"uploadType": "media", "name": name}
    answer = cloud.handle(CloudRequest("POST", f"/upload{OBJECTS}", query, content, "text/plain"))
    assert answer is not None
    return ok(answer)


def test_an_upload_is_measured_and_listed(cloud: Cloud) -> None:
    make_bucket(cloud)
    uploaded = _upload(cloud, "a.txt")

    assert (uploaded["size"], uploaded["md5Hash"]) == ("5", "XUFAKrxLKna5cZ2REBfFkg==")
    assert [one["name"] for one in get(cloud, OBJECTS)["items"]] == ["a.txt"]


def test_a_bucket_with_objects_cannot_be_deleted(cloud: Cloud) -> None:
    make_bucket(cloud)
    _upload(cloud, "a.txt")
    full = refused(cloud.call("DELETE", BUCKET))

    assert full == (409, "conflict")
    assert cloud.call("DELETE", f"{OBJECTS}/a.txt").status == 204
    assert get(cloud, OBJECTS) == {"kind": "storage#objects"}
    assert cloud.call("DELETE", BUCKET).status == 204


def test_with_versioning_a_deleted_object_stays_until_its_generation_is_deleted(cloud: Cloud) -> None:
    make_bucket(cloud, {"versioning": {"enabled": True}})
    first, second = _upload(cloud, "a.txt"), _upload(cloud, "a.txt", b"again")
    cloud.call("DELETE", f"{OBJECTS}/a.txt")
    versions = get(cloud, f"{OBJECTS}?versions=true")["items"]

    assert "items" not in get(cloud, OBJECTS)
    assert [one["generation"] for one in versions] == [first["generation"], second["generation"]]
    assert refused(cloud.call("DELETE", BUCKET)) == (409, "conflict")
    for one in versions:
        assert cloud.call("DELETE", f"{OBJECTS}/a.txt?generation={one['generation']}").status == 204
    assert cloud.call("DELETE", BUCKET).status == 204


def test_names_with_slashes_are_prefixes_with_a_delimiter(cloud: Cloud) -> None:
    make_bucket(cloud)
    for name in ("a/1", "a/2", "b"):
        _upload(cloud, name)
    listed = get(cloud, f"{OBJECTS}?delimiter=/")

    assert (listed["prefixes"], [one["name"] for one in listed["items"]]) == (["a/"], ["b"])
    assert get(cloud, f"{OBJECTS}/a%2F1")["name"] == "a/1"


def test_a_retained_object_cannot_be_deleted(cloud: Cloud) -> None:
    make_bucket(cloud, {"retentionPolicy": {"retentionPeriod": "60"}})
    _upload(cloud, "a.txt")
    cloud.advance(59)
    early = refused(cloud.call("DELETE", f"{OBJECTS}/a.txt"))
    cloud.advance(1)

    assert early == (403, "retentionPolicyNotMet")
    assert cloud.call("DELETE", f"{OBJECTS}/a.txt").status == 204


def test_contents_cannot_be_read(cloud: Cloud) -> None:
    make_bucket(cloud)
    _upload(cloud, "a.txt")

    assert "does not keep their contents" in error_message(cloud.call("GET", f"{OBJECTS}/a.txt?alt=media"))
    assert refused(cloud.call("GET", f"{OBJECTS}/b.txt")) == (404, "notFound")
