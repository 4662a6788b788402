"""Another way to handle a kind within the same version: with or without a cookie, or as it was done before."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

from setpoint.engine.abilities import Succeeding
from setpoint.engine.kind import AnyKind, Reconciliation
from setpoint.engine.scene import World
from setpoint.errors import UserError


def with_variants(world: World, words: Mapping[str, str]) -> World:
    """The world with some kinds handled otherwise: each by its name, as `stateless`, `stateful` or a revision."""
    kinds = dict(world.kinds)
    names = {key[1].lower(): key for key in kinds}
    for name, word in words.items():
        key = names.get(name.lower())
        if key is None:
            known = ", ".join(sorted(key[1] for key in kinds))
            raise UserError(f"no kind {name!r} can be handled otherwise; there is {known}")
        kinds[key] = as_variant(kinds[key], word)
    return replace(world, kinds=kinds)


def as_variant(kind: AnyKind, word: str) -> AnyKind:
    """The kind as `word` says; UserError for one that it does not have."""
    if word in tuple(Reconciliation):
        other = copy(kind)
        other.reconciliation = Reconciliation(word)
        return other
    former = kind.former() if isinstance(kind, Succeeding) else ()
    known = {str(one.revision): one for one in (*former, kind)}
    if word not in known:
        words = ", ".join((*tuple(Reconciliation), *known))
        raise UserError(f"{kind.name} is not handled as {word!r} in any way that is known here: there is {words}")
    return known[word]
