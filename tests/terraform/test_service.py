"""Every RPC gets a response, whatever the provider does."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from setpoint.terraform.cty.codec import encode_msgpack
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue
from setpoint.terraform.framework.call import ActiveCalls, CallContext, InstanceState
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.hidden_texts import HiddenTexts
from setpoint.terraform.framework.provider import CreateRequest, ManagedResource, MovedState, Registration
from setpoint.terraform.rpc.context import read_value, write_diagnostics
from setpoint.terraform.rpc.protobuf import provider_messages
from setpoint.terraform.rpc.service import ProviderService
from tests.terraform.probe.provider import ProbeProvider
from tests.terraform.probe.thing import SCHEMA, TYPE, Thing

MESSAGES = provider_messages()
EMPTY: AttributeValues = dict.fromkeys(SCHEMA.attributes)
NAMED: AttributeValues = {**EMPTY, "name": "a"}


class ServiceHarness:
    """The service of a probe provider, whose RPCs are called directly."""

    def __init__(self, folder: Path, thing: type[Thing] = Thing) -> None:
        self.provider = ProbeProvider()
        self.provider.resources = {"probe_thing": Registration[ManagedResource].of(thing(self.provider.objects))}
        self.folder = str(folder)
        self.calls = ActiveCalls(grace_s=0)
        self.service = ProviderService(self.provider, MESSAGES, self.calls)

    async def call(self, method: str, **fields: Any) -> Any:
        return await self.service.handle(method, MESSAGES[f"{method}.Request"](**fields))

    async def configured(self) -> None:
        config = msgspec.msgpack.encode({"folder": self.folder, "token": None})
        await self.call("ConfigureProvider", config={"msgpack": config})


def call(harness: ServiceHarness, method: str, **fields: Any) -> Any:
    """The response of a configured provider."""

    async def run() -> Any:
        await harness.configured()
        return await harness.call(method, **fields)

    return asyncio.run(run())


def value(of: CtyValue) -> dict[str, bytes]:
    return {"msgpack": encode_msgpack(of, TYPE)}


def summaries(answer: Any) -> list[str]:
    return [one.summary for one in answer.diagnostics]


def test_an_unknown_resource_is_named(tmp_path: Path) -> None:
    assert summaries(call(ServiceHarness(tmp_path), "ReadResource", type_name="probe_none")) == [
        "This provider has no probe_none"
    ]


def test_metadata_has_names_without_schemas(tmp_path: Path) -> None:
    answer = call(ServiceHarness(tmp_path), "GetMetadata")

    assert [one.type_name for one in answer.resources] == ["probe_thing"]
    assert [one.type_name for one in answer.data_sources] == ["probe_lookup"]
    assert [one.name for one in answer.functions] == ["describe"]
    assert (answer.server_capabilities.plan_destroy, answer.server_capabilities.move_resource_state) == (True, True)


def test_functions_are_listed_and_there_are_no_identities(tmp_path: Path) -> None:
    assert list(call(ServiceHarness(tmp_path), "GetFunctions").functions) == ["describe"]
    assert call(ServiceHarness(tmp_path), "GetResourceIdentitySchemas").SerializeToString() == b""


def test_a_state_of_the_current_version_is_returned_unchanged(tmp_path: Path) -> None:
    raw = b'{"name": "a", "anything": {"type": "string", "value": "x"}}'
    state = {"json": raw}
    answer = call(ServiceHarness(tmp_path), "UpgradeResourceState", type_name="probe_thing", version=1, raw_state=state)

    assert answer.upgraded_state.json == raw


def test_a_state_of_an_earlier_version_is_upgraded_by_the_resource(tmp_path: Path) -> None:
    class Upgrading(Thing):
        async def upgrade(self, state: Any, version: int, call: CallContext) -> AttributeValues:
            return {**EMPTY, "name": f"{state['old_name']}-{version}"}

    stored = {"type_name": "probe_thing", "version": 0, "raw_state": {"json": b'{"old_name": "a"}'}}
    broken = {**stored, "raw_state": {"json": b"{"}}
    answer = call(ServiceHarness(tmp_path, Upgrading), "UpgradeResourceState", **stored)

    assert read_value(answer.upgraded_state, TYPE) == {**EMPTY, "name": "a-0"}
    assert summaries(call(ServiceHarness(tmp_path), "UpgradeResourceState", **stored)) == [
        "Version 0 of this state cannot be read by version 1"
    ]
    assert summaries(call(ServiceHarness(tmp_path), "UpgradeResourceState", **broken)) == ["Manifest invalid"]


def test_integers_of_an_earlier_state_keep_all_their_digits(tmp_path: Path) -> None:
    class Upgrading(Thing):
        async def upgrade(self, state: Any, version: int, call: CallContext) -> AttributeValues:
            return {**EMPTY, "size": state["size"]}

    raw = {"json": b'{"size": 12345678901234567890123}'}
    answer = call(ServiceHarness(tmp_path, Upgrading), "UpgradeResourceState", type_name="probe_thing", raw_state=raw)

    assert read_value(answer.upgraded_state, TYPE) == {**EMPTY, "size": 12345678901234567890123}


def test_a_request_that_cannot_be_decoded_leaves_the_prior_state(tmp_path: Path) -> None:
    prior = value({**NAMED, "id": "i"})
    fields = {"prior_state": prior, "planned_state": {"msgpack": b"\xc1"}, "planned_private": b"x"}
    answer = call(ServiceHarness(tmp_path), "ApplyResourceChange", type_name="probe_thing", **fields)

    assert summaries(answer) == ["Manifest invalid"]
    assert ({"msgpack": answer.new_state.msgpack}, answer.private) == (prior, b"x")


def test_the_state_of_another_resource_is_not_moved(tmp_path: Path) -> None:
    fields = {"source_type_name": "other_thing", "source_state": {"json": b"{}"}, "target_type_name": "probe_thing"}
    answer = call(ServiceHarness(tmp_path), "MoveResourceState", **fields)

    assert summaries(answer) == ["other_thing cannot be moved here"]


def test_the_state_of_another_resource_is_moved_by_the_one_that_it_becomes(tmp_path: Path) -> None:
    class Moving(Thing):
        async def move_state(self, source: MovedState, call: CallContext) -> InstanceState:
            name = f"{source.provider_address} {source.type_name} {source.schema_version} {source.state['size']}"
            return InstanceState({**EMPTY, "name": name, "password_wo": "x"}, b"moved")

    fields = {"source_provider_address": "acme/other", "source_type_name": "other_thing", "source_schema_version": 3}
    state = {"source_state": {"json": b'{"size": 12345678901234567890123}'}, "target_type_name": "probe_thing"}
    answer = call(ServiceHarness(tmp_path, Moving), "MoveResourceState", **fields, **state)

    assert summaries(answer) == []
    moved = {**EMPTY, "name": "acme/other other_thing 3 12345678901234567890123"}
    assert (read_value(answer.target_state, TYPE), answer.target_private) == (moved, b"moved")


def test_values_in_json_are_decoded(tmp_path: Path) -> None:
    harness = ServiceHarness(tmp_path)
    answer = call(harness, "ValidateResourceConfig", type_name="probe_thing", config={"json": b'{"size": -1}'})

    assert summaries(answer) == ["Too small"]
    assert [step.attribute_name for step in answer.diagnostics[0].attribute.steps] == ["size"]


@pytest.mark.parametrize(("allowed", "shown"), [(False, ["Write-only attributes are not supported here"]), (True, [])])
def test_a_client_that_would_store_write_only_values_is_refused(
    tmp_path: Path, allowed: bool, shown: list[str]
) -> None:
    config, can = value({**NAMED, "password_wo": "x"}), {"write_only_attributes_allowed": allowed}
    fields = {"type_name": "probe_thing", "config": config, "client_capabilities": can}

    assert summaries(call(ServiceHarness(tmp_path), "ValidateResourceConfig", **fields)) == shown


def test_bytes_that_are_no_messagepack_are_refused(tmp_path: Path) -> None:
    answer = call(
        ServiceHarness(tmp_path), "ValidateResourceConfig", type_name="probe_thing", config={"msgpack": b"\xc1"}
    )

    assert [one.detail for one in answer.diagnostics] == ["a value that is no MessagePack"]


def test_a_planned_value_may_say_that_it_will_not_be_null(tmp_path: Path) -> None:
    new = {"proposed_new_state": value(NAMED), "config": value(NAMED), "prior_state": value(None)}
    answer = call(ServiceHarness(tmp_path), "PlanResourceChange", type_name="probe_thing", **new)
    extension = bytes([0xC7, 3, 12, 0x81, 1, 0xC2])

    assert extension in answer.planned_state.msgpack
    assert answer.planned_private == b"p"


@pytest.mark.parametrize("name", ["none", "describe"])
def test_a_function_that_fails_has_an_error_without_secrets(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    bug = msgspec.msgpack.encode([b'"string"', "bug"])
    answer = call(ServiceHarness(tmp_path), "CallFunction", name=name, arguments=[{"msgpack": bug}])

    assert answer.error.text.startswith(
        "This provider has no function none." if name == "none" else "A mistake of the provider: ZeroDivisionError in"
    )
    assert "hunter2" not in answer.error.text + str([vars(one) for one in caplog.records])


async def _created(harness: ServiceHarness) -> Any:
    new = {"prior_state": value(None), "planned_state": value(NAMED), "config": value(NAMED)}
    return await harness.call("ApplyResourceChange", type_name="probe_thing", **new)


def test_attributes_left_unknown_are_named_and_the_rest_is_stored(tmp_path: Path) -> None:
    class LeavesUnknown(Thing):
        async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
            return InstanceState({**request.planned, "id": "i", "echo": UNKNOWN}, b"x")

    answer = asyncio.run(_created(ServiceHarness(tmp_path, LeavesUnknown)))

    assert [one.detail for one in answer.diagnostics] == ["By now these should be known: echo."]
    assert (read_value(answer.new_state, TYPE), answer.private) == ({**NAMED, "id": "i"}, b"x")


def test_an_answer_that_does_not_fit_the_schema_is_a_bug_and_never_shown(tmp_path: Path) -> None:
    class ReturnsWrongType(Thing):
        async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
            call.save_state(InstanceState({**request.planned, "id": "i"}))
            return InstanceState({**request.planned, "size": "hunter2"})

    answer = asyncio.run(_created(ServiceHarness(tmp_path, ReturnsWrongType)))

    assert [(one.summary, one.detail) for one in answer.diagnostics] == [("Bug", "size is a str, which is no number")]
    assert read_value(answer.new_state, TYPE) == {**NAMED, "id": "i"}


def test_a_resource_that_ignores_the_stop_is_cancelled_and_its_saved_state_is_kept(tmp_path: Path) -> None:
    is_made: asyncio.Event = asyncio.Event()

    class IgnoresStop(Thing):
        async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
            call.save_state(InstanceState({**request.planned, "id": UNKNOWN}, b"half"))
            is_made.set()
            await asyncio.sleep(3600)
            raise AssertionError

    async def run() -> Any:
        harness = ServiceHarness(tmp_path, IgnoresStop)
        creating = asyncio.ensure_future(_created(harness))
        await is_made.wait()
        await harness.call("StopProvider")
        return await creating

    answer = asyncio.run(run())

    assert summaries(answer) == ["Interrupted"]
    assert (read_value(answer.new_state, TYPE), answer.private) == (NAMED, b"half")


def test_a_path_has_a_type_for_each_step() -> None:
    answer = MESSAGES["ReadResource.Response"]()
    paths = [("tags", "x"), ("rules", 1, "port"), ("members", "joe", "role"), ("anything", "deep", 0)]
    write_diagnostics(answer.diagnostics, [error("no", path=one) for one in paths], TYPE)
    steps = [[step.ListFields()[0] for step in one.attribute.steps] for one in answer.diagnostics]

    assert [[(field.name.removeprefix("element_key_"), at) for field, at in those] for those in steps] == [
        [("attribute_name", "tags"), ("string", "x")],
        [("attribute_name", "rules"), ("int", 1), ("attribute_name", "port")],
        [("attribute_name", "members"), ("string", "joe"), ("attribute_name", "role")],
        [("attribute_name", "anything"), ("attribute_name", "deep"), ("int", 0)],
    ]


@pytest.mark.parametrize(("is_searchable", "detail"), [(True, "name is (redacted)"), (False, "")])
def test_values_that_may_be_secret_are_in_no_diagnostic(tmp_path: Path, is_searchable: bool, detail: str) -> None:
    class Secretive(Thing):
        def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
            assert is_searchable
            return HiddenTexts(frozenset({str(values["name"])}))

        async def validate(self, config: AttributeValues, call: CallContext) -> None:
            raise DiagnosticsError(error("No such name", f"name is {config['name']}"))

    config = value({**EMPTY, "name": "hunter2-x"})
    answer = call(ServiceHarness(tmp_path, Secretive), "ValidateResourceConfig", type_name="probe_thing", config=config)

    assert [(one.summary, one.detail) for one in answer.diagnostics] == [("No such name", detail)]
