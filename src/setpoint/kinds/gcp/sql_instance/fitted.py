"""What is asked for of this very instance: what follows from the rest of the spec, from its edition, from its disk."""

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Final

from setpoint.core.overlay import Declared, Tree, overlay, overlay_typed
from setpoint.core.paths import Path, get_at, set_at
from setpoint.core.policy import FieldPolicy
from setpoint.core.shape import Mark, Object, with_defaults, with_marks
from setpoint.core.values import Json, Missing
from setpoint.kinds.config_connector import without_mark
from setpoint.kinds.gcp.sql_instance.spec import PLUS, UNENCRYPTED, SqlInstanceSpec, SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.spelling import CERTIFICATE, with_ssl_mode

_SETTINGS: Final = "spec.settings"
_NETWORK: Final = f"{_SETTINGS}.ipConfiguration"
_RETENTION: Final = f"{_SETTINGS}.backupConfiguration.backupRetentionSettings"
_EDITION: Final = Path(("spec", "settings", "edition"))
_RESIZES: Final = Path(("spec", "settings", "diskAutoresize"))
_SIZE: Final = Path(("spec", "settings", "diskSize"))
_REQUIRES_SSL: Final = Path(("spec", "settings", "ipConfiguration", "requireSsl"))
_SSL_MODE: Final = Path(("spec", "settings", "ipConfiguration", "sslMode"))
_PRIVATE: Final = Path(("spec", "settings", "ipConfiguration", "privateNetworkRef"))
_VERSION: Final = Path(("spec", "databaseVersion"))


class Fit(Enum):
    """What about an instance changes the shape of its spec."""

    PLUS = "the higher edition"
    SSL_FOLLOWS = "the older switch for SSL follows the mode"
    STAYS_PRIVATE = "the author wants it out of its private network"
    CANNOT_SHRINK = "the author wants a smaller disk"


def effective_desired_sql_instance(
    spec: SqlInstanceSpec, live: SqlInstanceSpec | Missing, policy: FieldPolicy
) -> SqlInstanceSpec:
    """What the instance should be: the spec over the live instance in the spec's terms; paths start with `spec`."""
    before = live if isinstance(live, Missing) else SqlInstanceTree(spec=live)
    return overlay_typed(SqlInstanceTree(spec=spec), before, policy, fitted_instance).spec


def fitted_instance(declared: Declared, live: Tree) -> Declared:
    """With what depends on the live instance."""
    wanted = overlay(declared, live)
    fits = set()
    if get_at(wanted, _EDITION) == PLUS:
        fits.add(Fit.PLUS)
    if not isinstance(get_at(declared.tree, _REQUIRES_SSL), bool):
        fits.add(Fit.SSL_FOLLOWS)
    if get_at(declared.tree, _PRIVATE) is None and isinstance(get_at(live, _PRIVATE), Mapping):
        fits.add(Fit.STAYS_PRIVATE)
    tree = _with_ssl_mode(without_mark(declared, live).tree, live)
    size, had = get_at(tree, _SIZE), get_at(live, _SIZE)
    if isinstance(size, int) and isinstance(had, int) and size < had:
        # A disk that grew by itself is no smaller for what the author once asked for.
        if get_at(wanted, _RESIZES) is True:
            tree = _put(tree, _SIZE, had)
        else:
            fits.add(Fit.CANNOT_SHRINK)
    return replace(declared, tree=tree, shape=_shaped(declared.shape, frozenset(fits)))


@cache
def _shaped(shape: Object, fits: frozenset[Fit]) -> Object:
    kept = 15 if Fit.PLUS in fits else 7
    own: dict[str, Json] = {"retainedBackups": kept, "retentionUnit": "COUNT"}
    shape = with_defaults(shape, {_RETENTION: {}, **{f"{_RETENTION}.{name}": value for name, value in own.items()}})
    marks: dict[str, Mark] = {}
    if Fit.PLUS in fits:
        marks[f"{_SETTINGS}.dataCacheConfig.dataCacheEnabled"] = Mark.CHOSEN
    if Fit.SSL_FOLLOWS in fits:
        marks[f"{_NETWORK}.requireSsl"] = Mark.OUTPUT_ONLY
    if Fit.STAYS_PRIVATE in fits:
        marks[f"{_NETWORK}.privateNetworkRef"] = Mark.IMMUTABLE
    if Fit.CANNOT_SHRINK in fits:
        marks[f"{_SETTINGS}.diskSize"] = Mark.IMMUTABLE
    return with_marks(shape, marks)


def _with_ssl_mode(tree: Tree, live: Tree) -> Tree:
    if get_at(tree, _REQUIRES_SSL) is False and get_at(live, _SSL_MODE) == CERTIFICATE:
        return tree if isinstance(get_at(tree, _SSL_MODE), str) else _put(tree, _SSL_MODE, UNENCRYPTED)
    version = get_at(tree, _VERSION) or get_at(live, _VERSION)
    return {**tree, "spec": with_ssl_mode(_part(tree, "spec"), version if isinstance(version, str) else "")}


def _part(tree: Tree, name: str) -> Tree:
    found = tree[name]
    assert isinstance(found, Mapping)
    return found


def _put(tree: Tree, path: Path, value: Json) -> Tree:
    found = set_at(tree, path, value)
    assert isinstance(found, Mapping)
    return found
