"""Field policy: which rule decides a field that the spec leaves out, compiled from the author's annotations."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Final

from setpoint.core.schema import annotations as known_annotations
from setpoint.core.schema.annotations import annotation_value
from setpoint.core.schema.shape import (
    AtomicList,
    Field,
    KeyedList,
    Mark,
    ObjectShape,
    Shape,
    atomic_ancestor,
    field_at,
    field_below,
)
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.messages import AnnotationTerm, Message, message_of
from setpoint.core.values.paths import Path, PathStep, Selector
from setpoint.errors import ManifestInvalid, UnknownField

UNMANAGED: Final = known_annotations.UNMANAGED
DEFAULT_TO_GCP: Final = known_annotations.DEFAULT_TO_GCP
IGNORE_UNSPECIFIED: Final = known_annotations.IGNORE_UNSPECIFIED
# The text between two commas; commas inside brackets and quotes do not count.
_PART: Final = re.compile(r"""(?:"(?:\\.|[^"\\])*"|\[(?:"(?:\\.|[^"\\])*"|[^\]"])*\]|[^,])+""")


class Rule(StrEnum):
    """Why a field has its value, strongest rule first; the text is shown in plans."""

    UNMANAGED = "unmanaged"
    SPEC = "spec"
    LISTED = "default-to-gcp-fields"
    IGNORED = "ignore-unspecified-fields"
    PROTECTED = "protected"
    FIXED = "immutable"
    CHOSEN = "chosen by the service"
    # Its removal was sent, and the service keeps a value of its own.
    SERVER_DEFAULT = "server default"
    DEFAULT = "default"
    PRUNED = "pruned"
    # An explicit null: pruned, protected or not.
    RELEASED = "released"
    # Fields of a generated child: set as generated, reverted to that, or removed since no longer generated.
    GENERATED = "generated"
    MANAGED = "managed"
    RETIRED = "no longer generated"
    # An edit that is kept, and one whose generated value has changed as well.
    EDITED = "edited"
    CONFLICTING = "edited, and generated anew"


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """The rule for fields that the spec leaves out, here and below, except at the steps in `below`."""

    rule: Rule
    below: Mapping[PathStep, "CompiledPolicy"] = field(default_factory=dict)
    # Derived from the rule, since the overlay reads them for every field.
    unmanaged: bool = field(init=False)
    keeps: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unmanaged", self.rule is Rule.UNMANAGED)
        object.__setattr__(self, "keeps", self.rule in (Rule.LISTED, Rule.IGNORED))

    def at(self, step: PathStep) -> "CompiledPolicy":
        """The compiled policy one step below."""
        if not self.below:
            return self
        return self.below.get(step) or _UNIFORM[self.rule]

    def strongest_listed_rule(self) -> Rule | None:
        """The strongest annotated rule here or at any depth below; None if there is none."""
        rules = {below.rule for below in self.below.values()} | {
            below.strongest_listed_rule() for below in self.below.values()
        }
        return next((rule for rule in (Rule.UNMANAGED, Rule.LISTED) if rule in {self.rule, *rules}), None)

    def released(self) -> "CompiledPolicy":
        """The policy below an explicit null: every field is released except unmanaged ones."""
        if self.unmanaged:
            return self
        below = {step: compiled.released() for step, compiled in self.below.items()}
        return CompiledPolicy(Rule.RELEASED, below) if below else _UNIFORM[Rule.RELEASED]


_UNIFORM: Final = {rule: CompiledPolicy(rule) for rule in Rule}


@dataclass(frozen=True, slots=True)
class FieldPolicy:
    """The author's annotations about fields. A listed path includes everything below it."""

    unmanaged: tuple[Path, ...] = ()
    listed: tuple[Path, ...] = ()
    unspecified: Rule = Rule.PRUNED
    # Unmanaged paths that lead into JSON that is a text here: the kind, which reads it, leaves those members alone.
    inside_texts: tuple[Path, ...] = ()
    compiled: CompiledPolicy = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        listed = [path.steps for path in self.listed]
        unmanaged = [path.steps for path in self.unmanaged]
        object.__setattr__(self, "compiled", _compile(self.unspecified, listed, unmanaged))

    @staticmethod
    def parse(annotations: Mapping[str, str], shape: ObjectShape) -> "FieldPolicy":
        """The policy of these annotations; UnknownField names the nearest existing paths."""
        inside_texts = tuple(_paths_inside_texts(annotations, shape))
        return FieldPolicy(
            tuple(path for path in _paths(annotations, UNMANAGED, shape) if path not in inside_texts),
            _paths(annotations, DEFAULT_TO_GCP, shape),
            _unspecified(annotations),
            inside_texts,
        )

    def on_create(self) -> "FieldPolicy":
        """The policy for a creation: an unmanaged field starts with the value in the spec."""
        return FieldPolicy((), self.unmanaged + self.listed, self.unspecified) if self.unmanaged else self


def _compile(
    rule: Rule, listed: Sequence[tuple[PathStep, ...]], unmanaged: Sequence[tuple[PathStep, ...]]
) -> CompiledPolicy:
    if () in unmanaged:
        return _UNIFORM[Rule.UNMANAGED]
    if () in listed:
        rule = Rule.LISTED
    heads = dict.fromkeys(steps[0] for steps in (*listed, *unmanaged) if steps)
    return CompiledPolicy(rule, {head: _compile(rule, _after(head, listed), _after(head, unmanaged)) for head in heads})


def _after(head: PathStep, paths: Sequence[tuple[PathStep, ...]]) -> list[tuple[PathStep, ...]]:
    return [steps[1:] for steps in paths if steps and steps[0] == head]


def _unspecified(annotations: Mapping[str, str]) -> Rule:
    return Rule.IGNORED if annotation_value(annotations, IGNORE_UNSPECIFIED) == "true" else Rule.PRUNED


def _paths(annotations: Mapping[str, str], key: str, shape: ObjectShape) -> tuple[Path, ...]:
    parts = (part.strip() for part in _PART.findall(annotations.get(key, "")))
    try:
        return tuple(_real_path(part, shape) for part in parts if part)
    except UnknownField as error:
        raise UnknownField(Message(AnnotationTerm(key), ": ", message_of(error)), error.nearest) from error
    except ManifestInvalid as error:
        raise ManifestInvalid(Message(AnnotationTerm(key), ": ", message_of(error))) from error


def _paths_inside_texts(annotations: Mapping[str, str], shape: ObjectShape) -> Iterator[Path]:
    for path in _paths(annotations, UNMANAGED, shape):
        if _text_above(path, shape):
            yield path


def _text_above(path: Path, shape: ObjectShape) -> bool:
    """Whether the path leads into JSON that is a text."""
    here: Field | None = Field(shape)
    for step in path.steps:
        if here is None or Mark.JSON_TEXT in here.marks:
            return here is not None
        here = field_below(here, step)
    return False


def _real_path(text: str, shape: ObjectShape) -> Path:
    """The path written as `text`, with selectors in the order of the list's keys."""
    path = Path.parse(text)
    if _text_above(path, shape):
        return path
    field_at(shape, path)
    whole = atomic_ancestor(shape, path)
    if whole != path:
        what = "a list" if isinstance(field_at(shape, whole).shape, AtomicList) else "a reference"
        raise UnknownField(f"{path} points into {what} that is one unit: name {whole} itself", (str(whole),))
    here: Field | None = Field(shape)
    steps: list[PathStep] = []
    for step in path.steps:
        assert here is not None
        steps.append(_in_key_order(step, here.shape))
        here = field_below(here, step)
    return Path(tuple(steps))


def _in_key_order(step: PathStep, shape: Shape) -> PathStep:
    if isinstance(step, Selector) and isinstance(shape, KeyedList):
        return Selector(tuple((key, dict(step.pairs)[key]) for key in shape.keys))
    return step


PRUNE: Final = FieldPolicy()
IGNORE: Final = FieldPolicy(unspecified=Rule.IGNORED)
