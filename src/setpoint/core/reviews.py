"""What is to be written of one child now, field by field, and who has the last word on each: told beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from setpoint.core.canonical import canonical
from setpoint.core.children import Child, Contents, Renewal, renewed
from setpoint.core.diff import FieldChange, diff
from setpoint.core.fates import Fate, Finding
from setpoint.core.hiding import hidden
from setpoint.core.kubernetes import group_and_kind, text_at, title
from setpoint.core.owners import OwnerName, Ownership, controller_of, owned_by, ownership
from setpoint.core.paths import Path, get_at
from setpoint.core.plan import Action, Write
from setpoint.core.policy import Rule
from setpoint.core.threeway import Memory
from setpoint.core.values import MISSING, Json, Missing
from setpoint.errors import DependencyInvalid, DependencyNotReady

Tree: TypeAlias = Mapping[str, Json]

_RULES: Final = {
    Fate.REVERTED: Rule.MANAGED,
    Fate.RETIRED: Rule.RETIRED,
    Fate.PRESERVED: Rule.EDITED,
    Fate.CONFLICTING: Rule.CONFLICTING,
}
# What a new object is told by; where it is and whose it is, is the same for all.
_TOLD_APART: Final = ("apiVersion", "kind", "metadata")
_LONG_TEXT: Final = 200
_SHORT_TEXT: Final = 60


@dataclass(frozen=True, slots=True)
class Review:
    """One child: what should be there, the write that makes it so, and what became of people's changes.

    `write` is None when nothing is to be written. The paths of its changes, and of `kept`, begin with the child's key.
    """

    child: Child
    document: Tree
    write: Write | None = None
    findings: tuple[Finding, ...] = ()
    kept: tuple[FieldChange, ...] = ()


def review(child: Child, live: Tree | None, owner: Tree, last: Memory | None) -> Review:
    """What to do about `child`, which is `live` now; DependencyInvalid when it is another owner's.

    DependencyNotReady when it is still that of an owner of the same name before.
    """
    if live is None:
        return Review(child, child.object, Write(Action.CREATE, child.key, _born(child)))
    match ownership(live, owner):
        case Ownership.ANOTHERS if child.contents is not Contents.ONCE:
            raise _taken(live, owner)
        case Ownership.OURS:
            return _renewed(child, live, renewed(child, owned_by(live, owner), last))
        case Ownership.NOBODYS if child.is_adopted:
            return _renewed(child, live, renewed(child, owned_by(live, owner), last))
        case _:
            return Review(child, live)


def _taken(live: Tree, owner: Tree) -> DependencyNotReady:
    whose = controller_of(live)
    mine = OwnerName(
        *group_and_kind(owner), text_at(owner, "metadata", "namespace"), text_at(owner, "metadata", "name")
    )
    if whose == mine:
        return DependencyNotReady(
            f"{title(live)} is left of an earlier {mine}: it is made anew once it is gone; delete it if that takes long"
        )
    return DependencyInvalid(f"{title(live)} belongs to {whose}: delete it there, or give this one another name")


def _renewed(child: Child, live: Tree, renewal: Renewal) -> Review:
    kept = hidden(_kept(child, live, renewal.findings), live)
    review = Review(child, renewal.object, None, renewal.findings, _placed(child, kept))
    if renewal.object is live:
        return review
    changes = hidden((_with_rule(one, renewal.findings) for one in diff(live, renewal.object)), live)
    return replace(review, write=Write(Action.UPDATE, child.key, _placed(child, changes)))


def _born(child: Child) -> tuple[FieldChange, ...]:
    contents = {name: value for name, value in child.object.items() if name not in _TOLD_APART}
    made = hidden(diff({name: {} for name in contents}, contents), child.object)
    return _placed(child, tuple(replace(one, before=MISSING, rule=Rule.GENERATED) for one in made))


def _with_rule(change: FieldChange, findings: tuple[Finding, ...]) -> FieldChange:
    about = (one for one in findings if one.path.covers(change.path) or change.path.covers(one.path))
    rules = [_RULES[one.fate] for one in about if one.fate in (Fate.REVERTED, Fate.RETIRED)]
    return replace(change, rule=rules[0] if rules else Rule.GENERATED)


def _kept(child: Child, live: Tree, findings: tuple[Finding, ...]) -> list[FieldChange]:
    seen = child.view.read(live)
    edits = (one for one in findings if one.fate in (Fate.PRESERVED, Fate.CONFLICTING))
    return [FieldChange(one.path, value := _held_at(seen, one.path), value, _RULES[one.fate]) for one in edits]


def _held_at(seen: Json, path: Path) -> Json | Missing:
    """The value there; an entry of a list of texts is its own value."""
    value, step = get_at(seen, path), path.steps[-1]
    around = get_at(seen, path.parent)
    return step if isinstance(around, list | tuple) and isinstance(step, str) and step in around else value


def _placed(child: Child, changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    return tuple(
        replace(
            one,
            path=Path((child.key, *one.path.steps)),
            before=_shortened(one.before),
            after=_shortened(one.after),
        )
        for one in changes
    )


def _shortened(value: Json | Missing) -> Json | Missing:
    """A plan is for people, and goes on record: nobody reads a whole file in it."""
    if isinstance(value, Missing):
        return value
    text = value if isinstance(value, str) else canonical(value).decode()
    return f"{text[:_SHORT_TEXT]}… ({len(text)} characters)" if len(text) > _LONG_TEXT else value
