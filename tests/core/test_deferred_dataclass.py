"""A class of ours behaves as one of the standard library does, and nothing is generated before it is used."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.values.deferred_dataclass import dataclass, replace

T = TypeVar("T")
NAMES = ("alpha", "beta", "gamma", "delta")
Decorator = Callable[[type], type[Any]]


def options() -> st.SearchStrategy[dict[str, bool]]:
    return st.fixed_dictionaries({"frozen": st.booleans(), "eq": st.booleans(), "kw_only": st.booleans()})


def defaults() -> st.SearchStrategy[object]:
    flags = st.fixed_dictionaries({}, optional={name: st.booleans() for name in ("repr", "compare", "init", "kw_only")})
    field: Callable[..., object] = dataclasses.field
    with_default = flags.map(lambda chosen: lambda: field(default=7, **chosen))
    with_factory = flags.map(lambda chosen: lambda: field(default_factory=list, **chosen))
    return st.sampled_from((lambda: 5, lambda: "text", tuple)) | with_default | with_factory


def class_with(bases: tuple[type, ...], required: int, defaulted: list[Any], *, post_init: bool) -> type:
    """A class whose first fields have no default. Its defaults are made anew: a Field belongs to one class."""
    names = NAMES[: required + len(defaulted)]
    body: dict[str, Any] = {"__annotations__": dict.fromkeys(names, object), "__doc__": "A class."}
    body |= {name: make() for name, make in zip(names[required:], defaulted, strict=True)}
    if post_init:
        body["__post_init__"] = lambda self: seen.append(type(self).__name__)
    return type("Drawn", bases, body)


seen: list[str] = []


@given(options(), st.integers(0, 2), st.lists(defaults(), max_size=2), st.booleans())
def test_a_class_behaves_as_the_standard_library_makes_it(
    chosen: dict[str, bool], required: int, defaulted: list[Any], post_init: bool
) -> None:
    ours: type[Any] = dataclass(slots=True, **chosen)(class_with((), required, defaulted, post_init=post_init))
    theirs: type[Any] = dataclasses.dataclass(slots=True, **chosen)(
        class_with((), required, defaulted, post_init=post_init)
    )
    given_names = [one.name for one in dataclasses.fields(theirs) if one.init]

    assert inspect.signature(ours).parameters.keys() == inspect.signature(theirs).parameters.keys()
    assert [one.kind for one in inspect.signature(ours).parameters.values()] == [
        one.kind for one in inspect.signature(theirs).parameters.values()
    ]
    drawn: tuple[list[object], ...] = ([1, 2, 3, 4], [4, 3, 2, 1], [[], [], [], []])
    for values in drawn:
        arguments = dict(zip(given_names, values, strict=False))
        assert behaviour(ours, arguments) == behaviour(theirs, arguments)
        required_alone = {name: arguments[name] for name in given_names if name in NAMES[:required]}
        assert behaviour(ours, required_alone) == behaviour(theirs, required_alone)


def behaviour(cls: type[Any], arguments: dict[str, object]) -> list[object]:
    """What can be seen of two instances that are made with the same arguments."""
    seen.clear()
    one, other = cls(**arguments), cls(**arguments)
    return [
        list(seen),
        repr(one).replace(repr(id(one)), "") if "object at" not in repr(one) else "",
        one == other,
        attempt(lambda: hash(one) == hash(other)),
        attempt(lambda: setattr(one, "alpha", 0)),
        attempt(lambda: delattr(one, "alpha")),
        attempt(lambda: setattr(other, "unknown", 0)),
        cls.__match_args__,
        cls.__slots__,
        [(f.name, f.init, f.repr, f.compare, f.kw_only, f.default, f.default_factory) for f in dataclasses.fields(cls)],
        [getattr(copy.deepcopy(other), f.name, None) for f in dataclasses.fields(cls)],
        attempt(lambda: [getattr(dataclasses.replace(other, beta=9), name, None) for name in NAMES]),
        cls.__init__.__qualname__,
        cls.__init__.__annotations__,
        cls.__dataclass_params__.frozen,
    ]


def attempt(action: Callable[[], object]) -> object:
    """The result; or the class of the error."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - whatever it is, both have it
        return type(error).__name__


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 0
    count: ClassVar[int] = 3
    note: "str" = ""


@dataclass(frozen=True, slots=True)
class NamedPoint(Point):
    """A point with a name."""

    name: str = dataclasses.field(default="origin", kw_only=True)


@dataclass(slots=True)
class Box(Generic[T]):
    """A box, which can be changed."""

    value: T


def test_nothing_is_generated_before_it_is_used() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        """Never made."""

        x: int

    names = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__dataclass_fields__", "__match_args__")
    assert {type(vars(Unused)[name]).__name__ for name in names} == {"_Deferred"}
    looked_up_meanwhile = vars(Unused)["__init__"]
    Unused(1)
    assert looked_up_meanwhile.__get__(None, Unused) is Unused.__init__
    assert {name for name in names if type(vars(Unused)[name]).__name__ != "_Deferred"} == {"__init__"}
    assert [one.name for one in dataclasses.fields(Unused)] == ["x"]
    assert type(vars(Unused)["__repr__"]).__name__ == "_Deferred"
    assert repr(Unused(2)).endswith("Unused(x=2)")
    assert not [name for name in names if type(vars(Unused)[name]).__name__ == "_Deferred"]


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    made = NamedPoint(1, 2, name="corner")

    assert (made.x, made.y, made.name, made.count) == (1, 2, "corner", 3)
    assert repr(made) == "NamedPoint(x=1, y=2, note='', name='corner')"
    assert vars(NamedPoint)["__slots__"] == ("name",)
    assert dataclasses.replace(made, x=5) == NamedPoint(5, 2, name="corner")
    assert hash(made) == hash(NamedPoint(1, 2, name="corner"))
    assert Point.__hash__(made) != 0


def test_a_frozen_instance_cannot_be_changed_and_can_be_pickled() -> None:
    made = Point(1, 2)

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 3  # type: ignore[misc] # that is what is tried
    assert pickle.loads(pickle.dumps(made)) == made


def test_positional_patterns_match() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_a_class_that_can_be_changed_has_no_hash() -> None:
    box = Box(1)
    box.value = 2

    assert box == Box(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(box)


def test_methods_of_the_class_itself_are_kept() -> None:
    @dataclass(frozen=True, slots=True)
    class Lenient:
        """Equal to any other."""

        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Lenient)

        def __repr__(self) -> str:
            return "lenient"

    @dataclass(frozen=True, slots=True, init=False)
    class Spread:
        """Made of many arguments."""

        values: tuple[int, ...]

        def __init__(self, *values: int) -> None:
            object.__setattr__(self, "values", values)

        def __hash__(self) -> int:
            return 7

    assert Lenient(1) == Lenient(2)
    assert repr(Lenient(1)) == "lenient"
    assert hash(Lenient(1)) == hash(Lenient(1))
    assert Spread(1, 2) == Spread(1, 2)
    assert hash(Spread(1)) == 7


def test_a_class_beside_one_with_a_single_slot_adds_its_own() -> None:
    class Base:
        __slots__ = "x"

    @dataclass(slots=True)
    class Derived(Base):
        """With a field that has a slot already."""

        x: int
        y: int

    assert vars(Derived)["__slots__"] == ("y",)
    assert (Derived(1, 2).x, Derived(1, 2).y) == (1, 2)


def test_what_the_standard_library_alone_can_tell_is_left_to_it() -> None:
    @dataclass(frozen=True)
    class WithoutSlots:
        """With a dictionary of attributes."""

        x: int

    @dataclass(slots=True)
    class WithArgument:
        """With an argument that is no field."""

        x: dataclasses.InitVar[int]
        y: int = 0

        def __post_init__(self, x: int) -> None:
            self.y = x

    @dataclass(slots=True)
    class WithTextualClassVar:
        """With a variable of the class, by a text."""

        y: int
        x: "ClassVar[int]" = 4

    assert vars(WithoutSlots(1)) == {"x": 1}
    assert WithArgument(3).y == 3
    assert (WithTextualClassVar(1).x, WithTextualClassVar.__slots__) == (4, ("y",))


@given(options(), st.integers(0, 2), st.lists(defaults(), max_size=2), st.booleans(), st.data())
def test_a_copy_is_the_one_that_the_standard_library_makes(
    chosen: dict[str, bool], required: int, defaulted: list[Any], post_init: bool, data: st.DataObject
) -> None:
    cls: type[Any] = dataclass(slots=True, **chosen)(class_with((), required, defaulted, post_init=post_init))
    fields = dataclasses.fields(cls)
    original = cls(**{one.name: [one.name] for one in fields if one.init})
    names = [*(one.name for one in fields if one.init), *(() if post_init else ("unknown",))]
    changes = {name: object() for name in data.draw(st.sets(st.sampled_from(names)) if names else st.just(()))}

    before = values_of(original)
    theirs = outcome(lambda: dataclasses.replace(original, **changes))
    ours = outcome(lambda: replace(original, **changes))

    assert ours == theirs
    assert values_of(original) == before


def outcome(make: Callable[[], object]) -> object:
    try:
        made = make()
    except TypeError as error:
        return str(error)
    return type(made), values_of(made)


def values_of(instance: object) -> dict[str, object]:
    return {one.name: getattr(instance, one.name) for one in dataclasses.fields(instance)}  # type: ignore[arg-type] # one of a dataclass


def test_a_copy_has_the_changes_and_shares_the_rest() -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        """With two fields."""

        x: list[int]
        y: int

    original = Point([1], 2)

    copied = replace(original, y=3)

    assert (copied.x is original.x, copied.y, original.y) == (True, 3, 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        replace(original, z=4)  # type: ignore[call-arg] # that is the point


def test_a_frozen_class_may_inherit_fields_without_slots() -> None:
    @dataclasses.dataclass(frozen=True)
    class Base:
        """Without slots."""

        x: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        """With one."""

        y: int

    assert replace(Derived(1, 2), x=3) == Derived(3, 2)
