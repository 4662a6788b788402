"""A cached property is computed once for each instance, and is an attribute of it from then on."""

from dataclasses import dataclass, field

from setpoint.core.values.cached_property import cached_property


@dataclass
class _Text:
    text: str
    computed: list[str] = field(default_factory=list)

    @cached_property
    def size(self) -> int:
        """Its length."""
        self.computed.append(self.text)
        return len(self.text)


def test_it_is_computed_once_for_each_instance() -> None:
    one, other = _Text("a"), _Text("abc")

    assert (one.size, one.size, other.size) == (1, 1, 3)
    assert (one.computed, other.computed) == (["a"], ["abc"])
    assert vars(one)["size"] == 1


def test_it_is_kept_under_the_name_that_the_class_has_for_it() -> None:
    class Named:
        wide = cached_property(lambda _: 7)

    found = Named()

    assert found.wide == 7
    assert vars(found) == {"wide": 7}


def test_the_class_has_the_property_and_its_docstring() -> None:
    found: object = vars(_Text)["size"]

    assert found is _Text.size
    assert found.__doc__ == "Its length."
