"""JSON objects as requests and responses carry them, and the merge patch of RFC 7386."""

from typing import Any, TypeAlias

# The edge: what a client sent, or will get. Every one is checked against a schema before it is used.
# A tree is never changed in place: whoever wants another one makes it.
JsonBody: TypeAlias = dict[str, Any]


def merge_patch(target: JsonBody, patch: JsonBody) -> JsonBody:
    """`target` after `patch`: null removes, objects merge, anything else replaces."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            below = merged.get(name)
            merged[name] = merge_patch(below if isinstance(below, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def member(tree: JsonBody, path: str) -> object:
    """The value at a dotted path, or None when any step of the way is absent."""
    here: object = tree
    for name in path.split("."):
        here = here.get(name) if isinstance(here, dict) else None
    return here


def with_member(tree: JsonBody, path: str, value: object) -> JsonBody:
    """`tree` with `value` at a dotted path; objects on the way are made when they are not there."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**tree, name: value}
    below = tree.get(name)
    return {**tree, name: with_member(below if isinstance(below, dict) else {}, rest, value)}


def without_member(tree: JsonBody, path: str) -> JsonBody:
    """`tree` without what is at a dotted path."""
    name, _, rest = path.partition(".")
    if not rest:
        return {key: value for key, value in tree.items() if key != name}
    below = tree.get(name)
    return {**tree, name: without_member(below, rest)} if isinstance(below, dict) else tree
