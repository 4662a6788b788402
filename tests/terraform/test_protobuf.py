"""Messages are encoded as protocol 6 defines them."""

import pytest

from setpoint.terraform.rpc.protobuf import build_messages, plugin_messages, provider_messages

MESSAGES = provider_messages()


@pytest.mark.parametrize(
    ("name", "fields", "data"),
    [
        ("DynamicValue", {"msgpack": b"\xc0"}, b"\x0a\x01\xc0"),
        ("Diagnostic", {"severity": 2, "summary": "s"}, b"\x08\x02\x12\x01s"),
        ("AttributePath", {"steps": [{"element_key_int": 0}]}, b"\x0a\x02\x18\x00"),
        ("AttributePath.Step", {"attribute_name": ""}, b"\x0a\x00"),
        ("Schema.Attribute", {"nested_type": {"nesting": 2}, "write_only": True}, b"\x52\x02\x18\x02\x58\x01"),
        ("RawState", {"flatmap": {"a": "b"}}, b"\x12\x06\x0a\x01a\x12\x01b"),
        ("StopProvider.Response", {"Error": "e"}, b"\x0a\x01e"),
        ("GetMetadata.Response", {"ephemeral_resources": [{"type_name": "e"}]}, b"\x32\x03\x0a\x01e"),
        (
            "OpenEphemeralResource.Request",
            {"type_name": "e", "config": {"msgpack": b"m"}},
            b"\x0a\x01e\x12\x03\x0a\x01m",
        ),
        (
            "OpenEphemeralResource.Response",
            {"result": {"msgpack": b"m"}, "private": b"p"},
            b"\x1a\x03\x0a\x01m\x22\x01p",
        ),
        ("RenewEphemeralResource.Response", {"private": b"p"}, b"\x1a\x01p"),
        ("CloseEphemeralResource.Request", {"type_name": "e", "private": b"p"}, b"\x0a\x01e\x12\x01p"),
        ("MoveResourceState.Request", {"target_type_name": "t", "source_private": b"p"}, b"\x2a\x01t\x32\x01p"),
        ("MoveResourceState.Response", {"target_private": b"p"}, b"\x1a\x01p"),
    ],
)
def test_a_field_has_its_number(name: str, fields: dict[str, object], data: bytes) -> None:
    assert MESSAGES[name](**fields).SerializeToString() == data
    assert MESSAGES[name].FromString(data) == MESSAGES[name](**fields)


def test_a_map_is_a_list_of_pairs() -> None:
    message = MESSAGES["GetProviderSchema.Response"]()
    message.functions["f"].summary = "s"
    message.ephemeral_resource_schemas["e"].version = 1

    assert message.SerializeToString() == b"\x3a\x08\x0a\x01f\x12\x03\x22\x01s" + b"\x42\x07\x0a\x01e\x12\x02\x08\x01"


def test_fields_of_a_newer_terraform_are_skipped() -> None:
    newer = build_messages("newer", "Request type_name:string=1 identity:bytes=6")["Request"](
        type_name="a", identity=b"i"
    )

    assert MESSAGES["ReadResource.Request"].FromString(newer.SerializeToString()).type_name == "a"


def test_plugin_messages_are_separate() -> None:
    assert plugin_messages()["StdioData"](channel=1, data=b"x").SerializeToString() == b"\x08\x01\x12\x01x"
