"""Objects with fields that no statement can change: a change is refused, or the object is dropped and created anew.

`spec.onChange` decides. In the types these fields are immutable, so that a change is refused and named as every other
one; where the author allows a new object, the plan is made with the same types without that mark.
"""

from functools import cache
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint.kind import (
    Default,
    EffectiveState,
    FieldPolicy,
    JsonObject,
    Mark,
    Maybe,
    Missing,
    SpecStruct,
    effective_state,
)
from setpoint_postgresql.connection import PostgresKind, PostgresSpec, Target, spec_in

REFUSE: Final = "Refuse"
RECREATE: Final = "Recreate"


class RecreatableSpec(PostgresSpec, frozen=True, kw_only=True):
    """What the spec of an object has that may be created anew."""

    onChange: Annotated[Maybe[Literal["Refuse", "Recreate"]], Default(REFUSE)] = UNSET
    """What becomes of a change that PostgreSQL cannot make: it is refused, or the object is created anew."""


S = TypeVar("S", bound=RecreatableSpec)
L = TypeVar("L", bound=Struct)


class RecreatableKind(PostgresKind[S, L], Generic[S, L]):
    """A kind whose spec has `onChange`. Its live type has it, too: as the spec says, so that it never differs."""

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """See BaseKind; with fields that can change where the author allows a new object."""
        found = effective_state(spec, live, policy)
        if isinstance(live, Missing) or not self._may_change(found.tree, msgspec.to_builtins(live)):
            return found
        tree_type = _changeable_tree(type(spec))
        return effective_state(_converted(spec, tree_type), _converted(live, tree_type), policy)

    def _may_change(self, wanted: JsonObject, live: JsonObject) -> bool:
        spec = spec_in(wanted)
        return spec.get("onChange") == RECREATE or self.is_changeable(spec, spec_in(live))

    def is_changeable(self, spec: JsonObject, live: JsonObject) -> bool:
        """Whether a statement can change the live object to the spec though an immutable field differs."""
        return False

    @staticmethod
    def on_change(target: Target[S]) -> str:
        """What the spec says."""
        return target.spec.onChange or REFUSE


def _converted(struct: Struct, tree_type: type[Struct]) -> Struct:
    return msgspec.convert(msgspec.to_builtins(struct), tree_type)


@cache
def _changeable_tree(tree_type: type[Struct]) -> type[Struct]:
    """The type of a tree whose spec has no immutable field."""
    spec_type = get_type_hints(tree_type)["spec"]
    hints: dict[str, Any] = get_type_hints(spec_type, include_extras=True)
    fields = [(name, _changeable(hint), UNSET) for name, hint in hints.items()]
    changed = msgspec.defstruct(f"Changeable{spec_type.__name__}", fields, bases=(SpecStruct,), frozen=True)
    return msgspec.defstruct(f"Changeable{tree_type.__name__}", [("spec", changed)], frozen=True)


def _changeable(hint: Any) -> Any:  # noqa: ANN401 # a type
    if get_origin(hint) is not Annotated:
        return hint | UnsetType
    inner, *marks = get_args(hint)
    return Annotated[(inner | UnsetType, *(one for one in marks if one is not Mark.IMMUTABLE), "changeable")]
