"""The effective desired state of a SQLInstance: the declared instance over the live one, or as it is created.

What the live instance fixes or derives is fitted in first: a disk cannot shrink, an edition brings its own defaults.
"""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Final

from setpoint.core.overlay import Declared, EffectiveState, effective_of_trees, overlay, rule_at, tree_of
from setpoint.core.schema.policy import FieldPolicy, Rule
from setpoint.core.schema.shape import Mark, ObjectShape, shape_of, with_defaults, with_marks
from setpoint.core.values.deferred_dataclass import replace
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.messages import FieldTerm, Message
from setpoint.core.values.paths import Path, get_at, set_at
from setpoint.errors import ManifestInvalid
from setpoint.kinds.gcp.shared.config_connector import without_managed_label
from setpoint.kinds.gcp.sql_instance.normalization import CERTIFICATE, with_ssl_mode
from setpoint.kinds.gcp.sql_instance.request_fields import created_fields
from setpoint.kinds.gcp.sql_instance.spec import ENTERPRISE, PLUS, UNENCRYPTED, SqlInstanceTree

_SETTINGS: Final = "spec.settings"
_NETWORK: Final = f"{_SETTINGS}.ipConfiguration"
_RETENTION: Final = f"{_SETTINGS}.backupConfiguration.backupRetentionSettings"
_RESIZES: Final = Path(("spec", "settings", "diskAutoresize"))
_SIZE: Final = Path(("spec", "settings", "diskSize"))
_REQUIRES_SSL: Final = Path(("spec", "settings", "ipConfiguration", "requireSsl"))
_SSL_MODE: Final = Path(("spec", "settings", "ipConfiguration", "sslMode"))
_PRIVATE: Final = Path(("spec", "settings", "ipConfiguration", "privateNetworkRef"))
_VERSION: Final = Path(("spec", "databaseVersion"))
_EDITION: Final = Path(("spec", "settings", "edition"))
_TIER: Final = Path(("spec", "settings", "tier"))
_PRIMARY: Final = Path(("spec", "masterInstanceRef"))


def effective_instance(
    spec: SqlInstanceTree, live: SqlInstanceTree | Missing, policy: FieldPolicy
) -> EffectiveState[SqlInstanceTree]:
    """What the instance should be after this step; one that does not exist yet, as it is created.

    ManifestInvalid when its tier does not exist in the edition that it keeps because the spec names none.
    """
    declared = Declared(tree_of(spec), shape_of(type(spec)), policy)
    return effective_instance_tree(declared, live if isinstance(live, Missing) else tree_of(live))


def effective_instance_tree(declared: Declared, live: JsonObject | Missing) -> EffectiveState[SqlInstanceTree]:
    """See `effective_instance`, for trees."""
    found = effective_of_trees(declared, live, SqlInstanceTree, fit_instance_to_live)
    if not isinstance(live, Missing):
        _require_edition_of_tier(found, live)
        return found
    return replace(found, tree=created_fields(found.declared, found.tree))


# --- Editions ---------------------------------------------------------------------------------------------------------

# The tiers of each edition, as the service documents them; any other tier is left to the service.
_TIERS: Final = {
    PLUS: ("db-perf-optimized-", "db-memory-optimized-", "db-c4a-"),
    ENTERPRISE: ("db-custom-", "db-f1-micro", "db-g1-small", "db-n1-"),
}
# The edition of a new instance that is created without one, by its database version.
_CHOSEN_EDITIONS: Final = {
    PLUS: ("MYSQL_8_4", "POSTGRES_16", "POSTGRES_17", "POSTGRES_18"),
    ENTERPRISE: ("MYSQL_5_", "MYSQL_8_0", "POSTGRES_9_", *(f"POSTGRES_{one}" for one in range(10, 16)), "SQLSERVER_"),
}


def require_edition_for_creation(wanted: JsonObject) -> None:
    """ManifestInvalid when a new instance is refused for want of an edition: the tier does not exist in the default.

    A replica has the edition of its primary.
    """
    edition, version = get_at(wanted, _EDITION), get_at(wanted, _VERSION)
    if isinstance(edition, Missing):
        edition = _by_prefix(_CHOSEN_EDITIONS, version) if get_at(wanted, _PRIMARY) is MISSING else None
    if isinstance(edition, str) and (problem := missing_edition(wanted, edition)):
        raise ManifestInvalid(problem)


def missing_edition(wanted: JsonObject, edition: str | None = None) -> Message | None:
    """What to write when the tier does not exist in `edition`, which the spec does not name; None when it does.

    Without an `edition`, the service has chosen it: then the tier does not exist there.
    """
    tier = get_at(wanted, _TIER)
    needed = _by_prefix(_TIERS, tier)
    if needed is None or needed == edition:
        return None
    if edition is None:
        without = f"the service chooses the edition; write {needed}"
    else:
        without = f"the edition of the instance is {edition}; write {needed}, or a tier of {edition}"
    problem = f" is missing: the tier {tier} exists in {needed} only, and without it {without}"
    return Message(FieldTerm(str(_EDITION)), problem)


def _require_edition_of_tier(found: EffectiveState[SqlInstanceTree], live: JsonObject) -> None:
    """ManifestInvalid when a new tier does not exist in the edition that the instance has, and keeps."""
    edition = get_at(found.tree, _EDITION)
    if get_at(found.tree, _TIER) == get_at(live, _TIER) or not (isinstance(edition, str) and edition):
        return
    if rule_at(found.declared, _EDITION) in (Rule.SPEC, Rule.UNMANAGED):
        return
    if problem := missing_edition(found.tree, edition):
        raise ManifestInvalid(problem)


def _by_prefix(known: Mapping[str, tuple[str, ...]], text: Json | Missing) -> str | None:
    return next((one for one, starts in known.items() if isinstance(text, str) and text.startswith(starts)), None)


# --- What the live instance allows ------------------------------------------------------------------------------------


class LiveConstraint(Enum):
    """A property of the live instance that changes which fields are immutable, output only or chosen by the service."""

    PLUS = "Enterprise Plus"
    SSL_FOLLOWS = "requireSsl follows sslMode"
    STAYS_PRIVATE = "a private network cannot be left"
    CANNOT_SHRINK = "a disk cannot shrink"


def fit_instance_to_live(declared: Declared, live: JsonObject) -> Declared:
    """The declared tree and shape with the constraints of the live instance."""
    wanted = overlay(declared, live)
    constraints = set()
    if get_at(wanted, _EDITION) == PLUS:
        constraints.add(LiveConstraint.PLUS)
    if not isinstance(get_at(declared.tree, _REQUIRES_SSL), bool):
        constraints.add(LiveConstraint.SSL_FOLLOWS)
    if get_at(declared.tree, _PRIVATE) is None and isinstance(get_at(live, _PRIVATE), Mapping):
        constraints.add(LiveConstraint.STAYS_PRIVATE)
    tree = _with_live_ssl_mode(without_managed_label(declared, live).tree, live)
    size, live_size = get_at(tree, _SIZE), get_at(live, _SIZE)
    if isinstance(size, int) and isinstance(live_size, int) and size < live_size:
        # A disk that was resized automatically stays as large as it is.
        if get_at(wanted, _RESIZES) is True:
            tree = _replaced(tree, _SIZE, live_size)
        else:
            constraints.add(LiveConstraint.CANNOT_SHRINK)
    return replace(declared, tree=tree, shape=_constrained(declared.shape, frozenset(constraints)))


@cache
def _constrained(shape: ObjectShape, constraints: frozenset[LiveConstraint]) -> ObjectShape:
    kept = 15 if LiveConstraint.PLUS in constraints else 7
    own: dict[str, Json] = {"retainedBackups": kept, "retentionUnit": "COUNT"}
    shape = with_defaults(shape, {_RETENTION: {}, **{f"{_RETENTION}.{name}": value for name, value in own.items()}})
    marks: dict[str, Mark] = {}
    if LiveConstraint.PLUS in constraints:
        marks[f"{_SETTINGS}.dataCacheConfig.dataCacheEnabled"] = Mark.CHOSEN
    if LiveConstraint.SSL_FOLLOWS in constraints:
        marks[f"{_NETWORK}.requireSsl"] = Mark.OUTPUT_ONLY
    if LiveConstraint.STAYS_PRIVATE in constraints:
        marks[f"{_NETWORK}.privateNetworkRef"] = Mark.IMMUTABLE
    if LiveConstraint.CANNOT_SHRINK in constraints:
        marks[f"{_SETTINGS}.diskSize"] = Mark.IMMUTABLE
    return with_marks(shape, marks)


def _with_live_ssl_mode(tree: JsonObject, live: JsonObject) -> JsonObject:
    if get_at(tree, _REQUIRES_SSL) is False and get_at(live, _SSL_MODE) == CERTIFICATE:
        return tree if isinstance(get_at(tree, _SSL_MODE), str) else _replaced(tree, _SSL_MODE, UNENCRYPTED)
    version = get_at(tree, _VERSION) or get_at(live, _VERSION)
    return {**tree, "spec": with_ssl_mode(_mapping_at(tree, "spec"), version if isinstance(version, str) else "")}


def _mapping_at(tree: JsonObject, name: str) -> JsonObject:
    found = tree[name]
    assert isinstance(found, Mapping)
    return found


def _replaced(tree: JsonObject, path: Path, value: Json) -> JsonObject:
    found = set_at(tree, path, value)
    assert isinstance(found, Mapping)
    return found
