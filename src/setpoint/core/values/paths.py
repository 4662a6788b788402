"""Field paths, and the keyed lists they select from: `spec.databaseFlags[name=x].value`, `items[0]`, `labels["a/b"]`.

Reading, setting and removing never mutate their input: a new tree shares every unchanged part.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from json import JSONDecodeError, JSONDecoder
from json.encoder import encode_basestring
from typing import Final, TypeAlias, TypeGuard

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import MISSING, Json, Missing, number_text
from setpoint.errors import ManifestInvalid, UnknownField


@dataclass(frozen=True, slots=True)
class Selector:
    """The element of a keyed list whose fields have these values, as text: `[name=x]`, `[name=x,value=y]`."""

    pairs: tuple[tuple[str, str], ...]

    def matches(self, element: Json) -> bool:
        """Whether `element` is an object whose fields read as this selector says."""
        return isinstance(element, dict) and all(
            name in element and scalar_text(element[name]) == text for name, text in self.pairs
        )

    def __str__(self) -> str:
        return "[" + ",".join(f"{_word(name)}={_word(text)}" for name, text in self.pairs) + "]"


PathStep: TypeAlias = str | int | Selector


@dataclass(frozen=True, slots=True)
class Path:
    """The location of a value in a tree. `Path.parse` is the inverse of `str()`."""

    steps: tuple[PathStep, ...] = ()

    @staticmethod
    def parse(text: str) -> "Path":
        """The path written as `text`; ManifestInvalid names the character where it is malformed."""
        return Path(tuple(_read_steps(text)))

    def __truediv__(self, step: PathStep) -> "Path":
        return Path((*self.steps, step))

    def __str__(self) -> str:
        return _text_of(self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    @property
    def parent(self) -> "Path":
        """The path without its last step; the root is its own parent."""
        return Path(self.steps[:-1])

    def covers(self, other: "Path") -> bool:
        """Whether `other` is this path or a descendant of it."""
        return other.steps[: len(self.steps)] == self.steps


@lru_cache(maxsize=4096)
def _text_of(steps: tuple[PathStep, ...]) -> str:
    """The text of a path. A step writes those of its changes into the plan, its record, an event and the log."""
    text = ""
    for step in steps:
        if type(step) is str and _is_name(step):
            text = f"{text}.{step}" if text else step
        else:
            text += _step_text(step)
    return text


def scalar_text(value: Json) -> str | None:
    """A scalar as a selector writes it: text as is, else its JSON form; None for lists, objects, NaN and infinity."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number_text(value)
        case _:
            return None


def _number_text(value: int | float) -> str | None:
    try:
        return number_text(value)
    except ValueError:
        return None


# --- Paths as text ---------------------------------------------------------------------------------------------------

_NAME: Final = re.compile(r"[A-Za-z0-9_$/@+-]+")
_is_name: Final = _NAME.fullmatch
_INDEX: Final = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
# The JSONPath form of a selector, as in kubectl.
_PREDICATE: Final = re.compile(r"\[\?\(@\.([A-Za-z0-9_-]+)\s*==\s*(?:'([^']*)'|\"([^\"]*)\")\)\]")
_quoted: Final = JSONDecoder().raw_decode


def _word(text: str) -> str:
    return text if _NAME.fullmatch(text) else encode_basestring(text)


def _step_text(step: PathStep) -> str:
    """A step in brackets."""
    if isinstance(step, Selector):
        return str(step)
    return f"[{step}]" if isinstance(step, int) else f"[{encode_basestring(step)}]"


def _read_steps(text: str) -> Iterator[PathStep]:
    position = 0
    while position < len(text):
        if text[position] == "[":
            step, position = _read_bracket(text, position)
        else:
            start = position + (text[position] == ".")
            if position and start == position:
                raise _malformed(text, position, "a dot or a bracket belongs here")
            name = _NAME.match(text, start)
            if name is None:
                raise _malformed(text, start, "a field name belongs here; put other characters in quotes")
            step, position = name[0], name.end()
        yield step


def _read_bracket(text: str, position: int) -> tuple[PathStep, int]:
    if index := _INDEX.match(text, position):
        return int(index[1]), index.end()
    if predicate := _PREDICATE.match(text, position):
        return Selector(((predicate[1], predicate[2] or predicate[3] or ""),)), predicate.end()
    word, end = _read_word(text, position + 1)
    if text[end : end + 1] == "]" and text[position + 1] == '"':
        return word, end + 1
    pairs: list[tuple[str, str]] = []
    while text[end : end + 1] == "=":
        value, end = _read_word(text, end + 1)
        pairs.append((word, value))
        if text[end : end + 1] == "]":
            return Selector(tuple(pairs)), end + 1
        if text[end : end + 1] == ",":
            word, end = _read_word(text, end + 1)
    raise _malformed(text, end, "an index, a quoted key or key=value, then a closing bracket, belong here")


def _read_word(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] == '"':
        try:
            word, end = _quoted(text, position)
        except JSONDecodeError as error:
            raise _malformed(text, position, "this quoted text does not end") from error
        return str(word), end
    if plain := _NAME.match(text, position):
        return plain[0], plain.end()
    raise _malformed(text, position, "an index, a quoted key or key=value belongs here")


def _malformed(text: str, position: int, problem: str) -> ManifestInvalid:
    return ManifestInvalid(f"the path {text!r} breaks off at character {position + 1}: {problem}")


# --- Reading and changing trees --------------------------------------------------------------------------------------


def get_at(tree: Json | Missing, path: Path) -> Json | Missing:
    """The value at `path`, or `MISSING` when any step of it is absent."""
    for step in path.steps:
        tree = tree.get(step, MISSING) if type(tree) is dict else value_below(tree, step)
        if tree is MISSING:
            return MISSING
    return tree


def value_below(tree: Json | Missing, step: PathStep) -> Json | Missing:
    """The value one step down, or `MISSING`."""
    if isinstance(tree, dict):
        found: Json | Missing = tree.get(step, MISSING)
        return found
    if isinstance(tree, list | tuple):
        position = _position(tree, step)
        return MISSING if position is None else tree[position]
    return MISSING


def set_at(tree: Json | Missing, path: Path, value: Json) -> Json:
    """`tree` with `value` at `path`; absent objects and keyed elements are created, unchanged parts are shared."""
    return _set(tree, path, 0, value)


def remove_at(tree: Json, path: Path) -> Json:
    """`tree` without the value at `path`; `tree` itself when there is none."""
    if not path.steps or get_at(tree, path) is MISSING:
        return tree
    parent = get_at(tree, path.parent)
    last = path.steps[-1]
    if isinstance(parent, dict):
        return set_at(tree, path.parent, {key: kept for key, kept in parent.items() if key != last})
    assert isinstance(parent, list | tuple)
    position = _position(parent, last)
    return set_at(tree, path.parent, [kept for index, kept in enumerate(parent) if index != position])


def _set(tree: Json | Missing, path: Path, depth: int, value: Json) -> Json:
    if depth == len(path.steps):
        return value
    step = path.steps[depth]
    below = _set(value_below(tree, step), path, depth + 1, value)
    if isinstance(step, str) and (tree is MISSING or tree is None or isinstance(tree, dict)):
        return {**(tree or {}), step: below}
    if not isinstance(step, str) and (tree is MISSING or tree is None or isinstance(tree, list | tuple)):
        return _set_element(list(tree or ()), path, depth, below)
    raise _wrong_parent(tree, path, depth)


def _set_element(elements: list[Json], path: Path, depth: int, below: Json) -> Json:
    step = path.steps[depth]
    position = _position(elements, step)
    if isinstance(step, Selector) and isinstance(below, dict):
        below = {**dict(step.pairs), **below} if position is None else below
    if position is not None:
        elements[position] = below
    elif isinstance(step, int) and step != len(elements):
        here = Path(path.steps[:depth])
        raise UnknownField(f"{path}: {here or 'the list'} has {len(elements)} elements: append at [{len(elements)}]")
    else:
        elements.append(below)
    return elements


def _position(elements: Sequence[Json], step: PathStep) -> int | None:
    if isinstance(step, int):
        return step if step < len(elements) else None
    if isinstance(step, Selector):
        return next((index for index, element in enumerate(elements) if step.matches(element)), None)
    return None


def _wrong_parent(tree: Json | Missing, path: Path, depth: int) -> UnknownField:
    here = Path(path.steps[:depth])
    wanted = "an object" if isinstance(path.steps[depth], str) else "a list"
    return UnknownField(f"cannot set {path}: {here or 'the value'} is not {wanted}", (str(here),))


def nearest(wanted: str, real: Sequence[str]) -> tuple[str, ...]:
    """Up to three of the `real` texts that are most similar to `wanted`, best first, without poor matches."""
    similarity = {text: SequenceMatcher(None, text.lower(), wanted.lower()).ratio() for text in real}
    best = sorted(similarity, key=lambda text: -similarity[text])[:3]
    return tuple(text for text in best if similarity[text] >= max(0.6, similarity[best[0]] - 0.15))


# --- Keyed lists: elements identified by the values of key fields instead of their position ---------------------------

# The values of an element's key fields, as text.
ElementKey: TypeAlias = tuple[str, ...]


def is_list_of_objects(value: Json | Missing) -> TypeGuard[Sequence[Mapping[str, Json]]]:
    """Whether `value` is a list whose elements can have keys."""
    return isinstance(value, list | tuple) and all(isinstance(element, dict) for element in value)


def key_of(element: Json, names: tuple[str, ...]) -> ElementKey:
    """The values of the key fields `names` of `element`; one that is absent or has no text form is ""."""
    if len(names) == 1 and isinstance(element, dict) and isinstance(only := element.get(names[0]), str):
        return (only,)
    found = [value_below(element, name) for name in names]
    return tuple([one if isinstance(one, str) else _text(one) for one in found])


def _text(value: Json | Missing) -> str:
    return "" if isinstance(value, Missing) else scalar_text(value) or ""


def selector(names: tuple[str, ...], key: ElementKey) -> Selector:
    """The path step that selects the element with this key."""
    return Selector(tuple(zip(names, key, strict=True)))


def index_by_key(
    elements: Sequence[Mapping[str, Json]], names: tuple[str, ...]
) -> dict[ElementKey, Mapping[str, Json]]:
    """The elements by key, in order; ManifestInvalid when two have the same key."""
    found: dict[ElementKey, Mapping[str, Json]] = {}
    for element in elements:
        key = key_of(element, names)
        if key in found:
            duplicate = selector(names, key)
            raise ManifestInvalid(f"two elements of one list are {duplicate}: each {'/'.join(names)} may stand once")
        found[key] = element
    return found
