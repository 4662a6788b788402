"""Rules about several fields of one object, written once: for the API server, and for the check of any manifest.

A type lists its rules as `__checks__`:

    class Address(Struct):
        name: str | None | UnsetType = UNSET
        external: str | None | UnsetType = UNSET

        __checks__: ClassVar = (Check(ExactlyOne(NotEmpty("name"), NotEmpty("external")), "write name or external"),)

A field that is null counts as left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject


class Predicate(ABC):
    """A statement about the fields of one object."""

    @property
    @abstractmethod
    def cel(self) -> str:
        """The statement in CEL, about `self`; empty if the keywords say it."""

    @abstractmethod
    def holds(self, value: JsonObject) -> bool:
        """Whether the statement is true of `value`."""

    @property
    def keywords(self) -> Mapping[str, Json]:
        """The keywords of OpenAPI that say it, where CEL cannot see the fields."""
        return {}


@dataclass(frozen=True, slots=True)
class Given(Predicate):
    """The field has a value."""

    name: str

    @property
    def cel(self) -> str:
        """See Predicate."""
        return f"has(self.{self.name})"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return value.get(self.name) is not None


@dataclass(frozen=True, slots=True)
class NotEmpty(Predicate):
    """The field has a value, and that is neither empty text nor an empty list or map."""

    name: str

    @property
    def cel(self) -> str:
        """See Predicate."""
        return f"(has(self.{self.name}) && self.{self.name}.size() > 0)"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return bool(value.get(self.name))


@dataclass(frozen=True, slots=True, init=False)
class Is(Predicate):
    """The field has one of these values."""

    name: str
    values: tuple[str | bool, ...]

    def __init__(self, name: str, *values: str | bool) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", values)

    @property
    def cel(self) -> str:
        """See Predicate."""
        listed = ", ".join(str(one).lower() if isinstance(one, bool) else f"'{one}'" for one in self.values)
        return f"(has(self.{self.name}) && self.{self.name} in [{listed}])"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return value.get(self.name) in self.values


@dataclass(frozen=True, slots=True)
class InOrder(Predicate):
    """The first field is not greater than the second, where both have a value."""

    low: str
    high: str

    @property
    def cel(self) -> str:
        """See Predicate."""
        return f"!has(self.{self.low}) || !has(self.{self.high}) || self.{self.low} <= self.{self.high}"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        match value.get(self.low), value.get(self.high):
            case (str() as low, str() as high):
                return low <= high
            case (int() | float() as first, int() | float() as second):
                return first <= second
            case _:
                return True


@dataclass(frozen=True, slots=True)
class Sized(Predicate):
    """The list of the field has so many elements, where it has a value."""

    name: str
    low: int
    high: int

    @property
    def cel(self) -> str:
        """See Predicate."""
        size = f"self.{self.name}.size()"
        return f"!has(self.{self.name}) || ({size} >= {self.low} && {size} <= {self.high})"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        found = value.get(self.name)
        return not isinstance(found, list) or self.low <= len(found) <= self.high


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """The statement is false."""

    of: Predicate

    @property
    def cel(self) -> str:
        """See Predicate."""
        return f"!({self.of.cel})"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return not self.of.holds(value)


@dataclass(frozen=True, slots=True, init=False)
class AnyOf(Predicate):
    """One or more of the statements are true."""

    of: tuple[Predicate, ...]

    def __init__(self, *of: Predicate) -> None:
        object.__setattr__(self, "of", of)

    @property
    def cel(self) -> str:
        """See Predicate."""
        return " || ".join(one.cel for one in self.of)

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        for one in self.of:  # noqa: SIM110 - asked of each element of a list, and a generator takes three calls more
            if one.holds(value):
                return True
        return False


@dataclass(frozen=True, slots=True, init=False)
class ExactlyOne(Predicate):
    """One of the statements is true, and no other."""

    of: tuple[Predicate, ...]

    def __init__(self, *of: Predicate) -> None:
        object.__setattr__(self, "of", of)

    @property
    def cel(self) -> str:
        """See Predicate."""
        return f"[{', '.join(one.cel for one in self.of)}].exists_one(one, one)"

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return sum(one.holds(value) for one in self.of) == 1


@dataclass(frozen=True, slots=True, init=False)
class OneMember(Predicate):
    """The object has one of these members, and no other of them; null counts. For members of any type."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)

    @property
    def cel(self) -> str:
        """See Predicate."""
        return ""

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return sum(name in value for name in self.names) == 1

    @property
    def keywords(self) -> Mapping[str, Json]:
        """See Predicate."""
        return {"oneOf": [{"required": [name]} for name in self.names]}


@dataclass(frozen=True, slots=True)
class Cel(Predicate):
    """A statement in CEL, for what no other predicate says. Only a cluster checks it: the kind says the same."""

    text: str

    @property
    def cel(self) -> str:
        """See Predicate."""
        return self.text

    def holds(self, value: JsonObject) -> bool:
        """See Predicate."""
        return True


@dataclass(frozen=True, slots=True, init=False)
class Check:
    """A rule for every value of a type: `message` says what to do; `field` is the member that it is about."""

    rule: Predicate
    message: str
    field: str

    def __init__(self, rule: Predicate | str, message: str, field: str = "") -> None:
        object.__setattr__(self, "rule", Cel(rule) if isinstance(rule, str) else rule)
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "field", field)
