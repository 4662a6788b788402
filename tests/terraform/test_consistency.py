"""Results that are not as planned: found by the rules of Terraform, and told with the state saved."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from setpoint.terraform.cty.types import CtyType, ListType, MapType, ObjectType, SetType, TupleType
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, Dynamic, UnknownValue
from setpoint.terraform.framework.call import CallContext, InstanceState
from setpoint.terraform.framework.consistency import deviations
from setpoint.terraform.framework.provider import CreateRequest, UpdateRequest
from setpoint.terraform.rpc.context import read_value
from tests.laws.terraform_values import actual_types, values_of
from tests.terraform.plan_rules import result_problems
from tests.terraform.probe.thing import TYPE, Thing
from tests.terraform.test_service import NAMED, ServiceHarness, call, summaries, value


def _has_set(type_: CtyType) -> bool:
    match type_:
        case SetType():
            return True
        case ListType(element) | MapType(element):
            return _has_set(element)
        case TupleType(elements):
            return any(map(_has_set, elements))
        case ObjectType(attributes):
            return any(map(_has_set, attributes.values()))
        case _:
            return False


def _unrefined(value: CtyValue) -> CtyValue:
    match value:
        case UnknownValue():
            return UNKNOWN
        case Dynamic(type_, inner):
            assume(not _has_set(type_))
            return Dynamic(type_, _unrefined(inner))
        case Mapping():
            return {key: _unrefined(one) for key, one in value.items()}
        case tuple():
            return tuple(_unrefined(one) for one in value)
        case _:
            return value


@given(st.data())
def test_a_result_deviates_if_and_only_if_terraform_rejects_it(data: st.DataObject) -> None:
    type_ = data.draw(actual_types.filter(lambda one: not _has_set(one)))
    planned = _unrefined(data.draw(values_of(type_)))
    actual = data.draw(values_of(type_, known=True) | st.just(planned))
    is_rejected = bool(result_problems(ObjectType({"a": type_}), {"a": planned}, {"a": actual}))

    assert bool(list(deviations(planned, actual, type_))) == is_rejected


@pytest.mark.parametrize(
    ("planned", "actual", "paths"),
    [
        (("a", "b"), ("b", "a"), []),
        (("a", UNKNOWN), ("a",), []),
        (("a",), ("a", "b"), [()]),
        (("a", "c"), ("a", "b"), [()]),
    ],
)
def test_the_elements_of_a_set_need_a_counterpart_each(
    planned: CtyValue, actual: CtyValue, paths: list[tuple[str, ...]]
) -> None:
    assert list(deviations(planned, actual, TYPE.attributes["labels"])) == paths


class Deviating(Thing):
    """A thing that another writer changes while it is applied."""

    async def create(self, request: CreateRequest, call: CallContext) -> InstanceState:
        return _deviating(await Thing.create(self, request, call))

    async def update(self, request: UpdateRequest, call: CallContext) -> InstanceState:
        return _deviating(await Thing.update(self, request, call))


def _deviating(made: InstanceState) -> InstanceState:
    return InstanceState({**made.state, "tags": {"a": "theirs"}}, b"kept")


def test_a_result_that_is_not_as_planned_is_an_error_without_values_and_is_in_the_state(tmp_path: Path) -> None:
    config: AttributeValues = {**NAMED, "tags": {"a": "s3cret", "b": "2"}}
    planned = {**config, "id": UNKNOWN, "revision": UNKNOWN, "echo": UNKNOWN, "took_password": UNKNOWN}
    sent = {"config": value(config), "prior_state": value(None), "planned_state": value(planned)}
    answer = call(ServiceHarness(tmp_path, Deviating), "ApplyResourceChange", type_name="probe_thing", **sent)

    assert summaries(answer) == ["The result is not as planned"]
    assert "tags.b, tags.a" in answer.diagnostics[0].detail
    assert "s3cret" not in answer.diagnostics[0].detail
    state = read_value(answer.new_state, TYPE)
    assert isinstance(state, Mapping)
    assert (state["tags"], answer.private) == ({"a": "theirs"}, b"kept")
