"""Lists with many similar entries are folded."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from rich.console import RenderableType
from rich.text import Text

from setpoint.cli.views.table import fold_similar

MORE = "… and {} more like this; -o json has all of them"


def folded(each: list[tuple[str, int]]) -> list[str]:
    def lines(one: tuple[str, int]) -> Iterator[RenderableType]:
        yield Text(f"{one[0]}{one[1]}")

    return [str(line) for line in fold_similar(each, lines, lambda one: one[0])]


def test_of_similar_entries_ten_are_shown_and_the_rest_are_counted() -> None:
    many = [("a", number) for number in range(25)]

    assert folded([*many[:12], ("b", 0), *many[12:]]) == [*(f"a{n}" for n in range(10)), MORE.format(15), "b0"]
    assert folded(many[:10]) == [f"a{n}" for n in range(10)]
    assert folded([]) == []


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_no_entry_is_left_out_of_the_count(names: list[str]) -> None:
    lines = folded([(name, number) for number, name in enumerate(names)])

    shown = [line for line in lines if not line.startswith("…")]
    more = sum(int(line.split()[2]) for line in lines if line.startswith("…"))
    assert len(shown) + more == len(names)
    assert shown == [line for line in (f"{name}{n}" for n, name in enumerate(names)) if line in shown]
    assert {line[0] for line in shown} == set(names)
