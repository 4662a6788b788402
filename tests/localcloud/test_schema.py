"""Validation of request bodies."""

import pytest

from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.schema import NullMeaning, validate
from setpoint.localcloud.sql.schema import INSTANCE


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"nme": "x"}, 'Invalid JSON payload received. Unknown name "nme": Cannot find field.'),
        (
            {"settings": {"tyre": "x"}},
            "Invalid JSON payload received. Unknown name \"tyre\" at 'settings': Cannot find field.",
        ),
        ({"settings": {"tier": 5}}, "Invalid value at 'settings.tier' (TYPE_STRING), 5"),
        (
            {"settings": {"storageAutoResize": "true"}},
            "Invalid value at 'settings.storageAutoResize' (TYPE_BOOL), \"true\"",
        ),
        ({"settings": {"dataDiskSizeGb": "ten"}}, "Invalid value at 'settings.dataDiskSizeGb' (TYPE_INT64), \"ten\""),
        ({"settings": {"dataDiskSizeGb": True}}, "Invalid value at 'settings.dataDiskSizeGb' (TYPE_INT64), true"),
        ({"settings": {"edition": "PLUS"}}, "Invalid value at 'settings.edition' (TYPE_ENUM), \"PLUS\""),
        ({"settings": {"databaseFlags": {}}}, "Invalid value at 'settings.databaseFlags' (a list), {}"),
        (
            {"settings": {"databaseFlags": [{"name": "a"}, {"val": "b"}]}},
            "Invalid JSON payload received. Unknown name \"val\" at 'settings.databaseFlags[1]': Cannot find field.",
        ),
        ({"settings": {"userLabels": ["a"]}}, "Invalid value at 'settings.userLabels' (an object), [\"a\"]"),
        (
            {"settings": {"ipConfiguration": {"authorizedNetworks": [{"expirationTime": "tomorrow"}]}}},
            "Invalid value at 'settings.ipConfiguration.authorizedNetworks[0].expirationTime' "
            '(type.googleapis.com/google.protobuf.Timestamp), "tomorrow"',
        ),
        ({"settings": {"userLabels": {"a": 1}}}, "Invalid value at 'settings.userLabels.a' (TYPE_STRING), 1"),
    ],
)
def test_unknown_fields_and_wrong_types_are_refused_with_their_path(body: object, message: str) -> None:
    with pytest.raises(CloudApiError) as refusal:
        validate(INSTANCE, body)

    assert (refusal.value.status, refusal.value.message) == (400, message)


def test_a_secret_of_the_wrong_type_is_refused_without_being_shown() -> None:
    with pytest.raises(CloudApiError) as refusal:
        validate(INSTANCE, {"rootPassword": 12345})

    assert "12345" not in refusal.value.message


def test_64_bit_integers_are_strings() -> None:
    body = validate(INSTANCE, {"settings": {"dataDiskSizeGb": 10, "storageAutoResizeLimit": "9007199254740993"}})

    assert body["settings"]["dataDiskSizeGb"] == "10"
    assert body["settings"]["storageAutoResizeLimit"] == "9007199254740993"


def test_output_fields_in_a_request_are_ignored() -> None:
    assert validate(INSTANCE, {"state": 5, "etag": "x", "name": "db"}) == {"kind": "sql#instance", "name": "db"}


def test_null_is_absent_in_a_whole_object_and_a_removal_in_a_patch() -> None:
    body = {"name": None, "settings": {"userLabels": {"a": None}}}

    assert validate(INSTANCE, body)["settings"]["userLabels"] == {}
    assert validate(INSTANCE, body, NullMeaning.REMOVE)["settings"]["userLabels"] == {"a": None}
