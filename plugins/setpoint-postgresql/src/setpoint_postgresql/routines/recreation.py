"""Objects with fields that no statement can change: a change is refused, or the object is dropped and created anew.

`spec.onChange` decides. The types do not mark these fields as immutable: an API server would refuse every edit of them.
The plan is made with types that do, so that a change is refused and named, unless the author allows a new object.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

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

    # The fields that no statement can change.
    fixed: ClassVar[tuple[str, ...]]

    def effective(self, spec: Struct, live: Struct | Missing, policy: FieldPolicy) -> EffectiveState[Struct]:
        """See BaseKind; with immutable fields, unless the author allows a new object."""
        found = effective_state(spec, live, policy)
        if isinstance(live, Missing) or self._may_change(found.tree, msgspec.to_builtins(live)):
            return found
        tree_type = _fixed_tree(type(spec), self.fixed)
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
def _fixed_tree(tree_type: type[Struct], fixed: tuple[str, ...]) -> type[Struct]:
    """The type of a tree whose spec has these fields as immutable ones."""
    spec_type = get_type_hints(tree_type)["spec"]
    hints: dict[str, Any] = get_type_hints(spec_type, include_extras=True)
    fields = [(name, _optional(hint, is_fixed=name in fixed), UNSET) for name, hint in hints.items()]
    made = msgspec.defstruct(f"Fixed{spec_type.__name__}", fields, bases=(SpecStruct,), frozen=True)
    return msgspec.defstruct(f"Fixed{tree_type.__name__}", [("spec", made)], frozen=True)


def _optional(hint: Any, *, is_fixed: bool) -> Any:  # noqa: ANN401 # a type
    inner, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    found = [*marks, Mark.IMMUTABLE] if is_fixed else marks
    return Annotated[(inner | UnsetType, *found)] if found else inner | UnsetType
