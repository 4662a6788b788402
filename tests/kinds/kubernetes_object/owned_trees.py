"""Partly owned objects: any values, and the fieldsV1 that a server would write for them."""

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from setpoint.core.values.paths import Path, Selector

Fields = dict[str, Any]
NAMES = st.text("abcdefgh.-/", min_size=1, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text("xyz \"'[]", max_size=4)
ATOMIC = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(NAMES, SCALARS, max_size=3)


@dataclass(frozen=True)
class Owned:
    """A value, its owned fields, and the owned leaves."""

    value: Any
    fields: Fields
    leaves: dict[Path, Any] = field(default_factory=dict)


def below(step: Any, owned: Owned) -> dict[Path, Any]:
    return {Path((step, *path.steps)): value for path, value in owned.leaves.items()}


@st.composite
def maps(draw: st.DrawFn, inside: st.SearchStrategy[Owned]) -> Owned:
    """A map: some members are owned, some are owned by another manager."""
    ours = draw(st.dictionaries(NAMES, inside, min_size=1, max_size=3))
    theirs = draw(st.dictionaries(NAMES, ATOMIC, max_size=2))
    leaves = {path: value for name, one in ours.items() for path, value in below(name, one).items()}
    fields = {f"f:{name}": one.fields for name, one in ours.items()}
    if draw(st.booleans()):
        fields["."] = {}
    return Owned({**theirs, **{name: one.value for name, one in ours.items()}}, fields, leaves)


@st.composite
def keyed_lists(draw: st.DrawFn, inside: st.SearchStrategy[Owned]) -> Owned:
    """A keyed list: some elements are owned, with owned and unowned fields in them."""
    names = draw(st.lists(NAMES | st.integers(0, 9), min_size=1, max_size=4, unique_by=str))
    value, fields, leaves = [], {}, {}
    for position, name in enumerate(names):
        if position and draw(st.booleans()):
            value.append({"name": name, "theirs": draw(ATOMIC)})
            continue
        one = draw(inside)
        value.append({"name": name, "ours": one.value, "theirs": draw(ATOMIC)})
        fields[f"k:{json.dumps({'name': name}, separators=(',', ':'))}"] = {".": {}, "f:name": {}, "f:ours": one.fields}
        selector = Selector((("name", str(name)),))
        leaves[Path((selector, "name"))] = name
        leaves |= {Path((selector, *path.steps)): found for path, found in below("ours", one).items()}
    return Owned(value, fields, leaves)


@st.composite
def sets(draw: st.DrawFn) -> Owned:
    """A set list: its elements are identified by their values."""
    ours = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    theirs = draw(st.lists(NAMES.filter(lambda one: one not in ours), max_size=2, unique=True))
    fields: Fields = {f"v:{json.dumps(one)}": {} for one in ours}
    return Owned(draw(st.permutations([*ours, *theirs])), fields, {Path((one,)): one for one in ours})


LEAVES = st.builds(lambda value: Owned(value, {}, {Path(): value}), ATOMIC)
OWNED: st.SearchStrategy[Owned] = st.recursive(
    LEAVES | sets(), lambda inside: maps(inside) | keyed_lists(inside), max_leaves=8
)
OBJECTS = maps(OWNED)
