"""All mistakes are told at once, each once."""

from collections.abc import Iterator

import pytest

from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.problems import Problems, joined_problems, problems_of
from setpoint.errors import ManifestInvalid, NotReady, UnknownField, UserError


def _wrong(field: str, why: str = " is wrong") -> ManifestInvalid:
    return ManifestInvalid(Message(FieldTerm(field), why))


def _raise(error: Exception) -> None:
    raise error


def test_one_problem_is_raised_as_it_is() -> None:
    problems, problem = Problems(), UnknownField("no field a")
    problems.collect(_raise, problem)

    with pytest.raises(UnknownField) as raised:
        problems.require_none()
    assert raised.value is problem


def test_several_problems_are_one_error_with_a_line_for_each() -> None:
    problems = Problems()
    problems.collect(_raise, _wrong("spec.a"))
    problems.collect(_raise, UnknownField("no field b"))

    with pytest.raises(ManifestInvalid) as raised:
        problems.require_none()
    assert str(raised.value) == "spec.a is wrong\nno field b"
    assert [str(one) for one in problems_of(raised.value)] == ["spec.a is wrong", "no field b"]


def test_the_problems_of_an_error_are_collected_one_by_one() -> None:
    problems = Problems()
    problems.collect(_raise, joined_problems([_wrong("spec.a"), _wrong("spec.b")]))

    assert [str(one) for one in problems.found] == ["spec.a is wrong", "spec.b is wrong"]


def test_of_several_problems_of_one_field_the_first_is_told() -> None:
    problems = Problems()
    problems.add([_wrong("spec.a", " is text"), _wrong("spec.a", " is no name"), UserError("x"), UserError("x")])

    assert [str(one) for one in problems.found] == ["spec.a is text", "x"]


def test_a_check_that_passes_gives_its_result() -> None:
    problems = Problems()

    assert problems.collect(int, "7") == 7
    assert problems.collect(_raise, _wrong("spec.a")) is None
    Problems().require_none()


def test_an_error_that_is_no_mistake_of_the_author_is_raised_at_once() -> None:
    with pytest.raises(NotReady):
        Problems().collect(_raise, NotReady("later"))


def test_only_the_first_fifty_mistakes_are_told() -> None:
    problems, asked = Problems(), 0

    def endless() -> Iterator[ManifestInvalid]:
        nonlocal asked
        while True:
            asked += 1
            yield ManifestInvalid(f"mistake {asked}")

    problems.add(endless())
    problems.add(endless())

    assert (len(problems.found), asked) == (50, 50)
    assert len(problems_of(joined_problems(endless()))) == 50
