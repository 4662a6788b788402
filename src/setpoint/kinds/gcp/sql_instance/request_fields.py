"""Which fields of the effective desired state a request sends, still in the terms of the spec.

A full update resets what it leaves out: it sends what the author declares, and every value that is not the
service's default.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from setpoint.core.overlay import Declared, rule_at
from setpoint.core.schema.policy import Rule
from setpoint.core.schema.shape import UNTYPED, Field, ObjectShape, field_at, field_below, shape_of
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import MISSING, Json, JsonObject, Missing
from setpoint.core.values.paths import Path, get_at, remove_at, set_at
from setpoint.kinds.gcp.sql_instance.spec import PLUS, SqlInstanceTree

# Sent with every full update, as Config Connector does.
ALWAYS_SENT: Final = frozenset(
    Path.parse(f"spec.{path}")
    for path in (
        "instanceType",
        *(f"settings.{name}" for name in ("activationPolicy", "availabilityType", "connectorEnforcement", "diskType")),
        *(f"settings.{name}" for name in ("edition", "pricingPlan", "replicationType", "diskAutoresize")),
        *(f"settings.ipConfiguration.{name}" for name in ("ipv4Enabled", "sslMode")),
    )
)
_SHAPE: Final = Field(shape_of(SqlInstanceTree))
_VERSION: Final = Path(("spec", "databaseVersion"))
_SETTINGS: Final = Path(("spec", "settings"))
_BACKUPS: Final = _SETTINGS / "backupConfiguration"
_BACKUPS_ON: Final = _BACKUPS / "enabled"
_BINARY_LOG: Final = _BACKUPS / "binaryLogEnabled"
_RETAINED: Final = _BACKUPS / "backupRetentionSettings" / "retainedBackups"
_RETENTION_UNIT: Final = _BACKUPS / "backupRetentionSettings" / "retentionUnit"
_START: Final = _BACKUPS / "startTime"
_LOG_DAYS: Final = _BACKUPS / "transactionLogRetentionDays"
_CACHE: Final = _SETTINGS / "dataCacheConfig" / "dataCacheEnabled"
_EDITION: Final = _SETTINGS / "edition"
_NETWORK: Final = _SETTINGS / "ipConfiguration"
_PRIVATE_PATH: Final = _NETWORK / "enablePrivatePathForGoogleCloudServices"
_REQUIRES_SSL: Final = _NETWORK / "requireSsl"
_INSIGHTS: Final = _SETTINGS / "insightsConfig"
_PLANS: Final = _INSIGHTS / "queryPlansPerMinute"
_SIZE: Final = _SETTINGS / "diskSize"
_RESIZES: Final = _SETTINGS / "diskAutoresize"


def all_fields(tree: JsonObject) -> JsonObject:
    """All fields of a tree except empty lists and objects."""
    return _tree(_sent(tree, tree, _SHAPE, Path()))


def non_default_fields(tree: JsonObject) -> JsonObject:
    """The fields of a tree whose value is not the default of the service."""
    return _tree(_sent(tree, {}, _SHAPE, Path()))


def patch_fields(declared: Declared, wanted: JsonObject) -> JsonObject:
    """The fields of a patch, before the difference to the live instance is taken."""
    tree = _tree(_sent(wanted, declared.tree, _SHAPE, Path()))
    return _with_explicit_off(tree, declared, wanted)


def created_fields(declared: Declared, wanted: JsonObject) -> JsonObject:
    """The fields of a new instance: what the author declares, and the defaults that are always sent.

    No default is sent for a field that an annotation leaves to the service.
    """
    tree = _for_full_update(declared, _with_unmanaged_defaults(declared, wanted))
    if isinstance(get_at(declared.tree, _BACKUPS), Mapping) and isinstance(get_at(tree, _BACKUPS), Mapping):
        is_plus = get_at(tree, _EDITION) == PLUS
        tree = _with_default(tree, declared, _RETAINED, 15 if is_plus else 7)
        tree = _with_default(tree, declared, _RETENTION_UNIT, "COUNT")
    return _with_removed_off(tree, declared) if get_at(tree, _EDITION) == PLUS else tree


def insert_fields(wanted: JsonObject) -> JsonObject:
    """The fields of an insert. The maintenance version of a new instance cannot be chosen."""
    return _without(wanted, [Path(("spec", "maintenanceVersion"))])


def update_fields(declared: Declared, wanted: JsonObject) -> JsonObject:
    """The fields of a full update. `declared` is fitted to the live instance."""
    tree = _for_full_update(declared, wanted)
    tree = _with_explicit_off(tree, declared, wanted)
    if isinstance(get_at(declared.tree, _BACKUPS), Mapping):
        tree = _without_service_chosen(tree, declared, 14 if get_at(wanted, _EDITION) == PLUS else 7)
    if get_at(wanted, _RESIZES) is False and get_at(declared.tree, _SIZE) in (None, MISSING):
        tree = _without(tree, [_SIZE])
    return tree


def _with_unmanaged_defaults(declared: Declared, wanted: JsonObject) -> JsonObject:
    """With the default values of unmanaged fields that an insert has to send."""
    for path in sorted(ALWAYS_SENT, key=str):
        value = field_at(declared.shape, path).default
        is_unmanaged = any(one.covers(path) for one in declared.policy.unmanaged)
        if is_unmanaged and get_at(wanted, path) is MISSING and not isinstance(value, Missing):
            wanted = _put(wanted, path, value)
    return wanted


def _for_full_update(declared: Declared, wanted: JsonObject) -> JsonObject:
    tree = _tree(_sent(wanted, declared.tree, _SHAPE, Path()))
    if isinstance(get_at(declared.tree, _NETWORK), Mapping):
        tree = _with_default(tree, declared, _PRIVATE_PATH, get_at(wanted, _PRIVATE_PATH) is True)
    if not isinstance(get_at(declared.tree, _REQUIRES_SSL), bool):
        tree = _without(tree, [_REQUIRES_SSL])
    plans = get_at(wanted, _PLANS)
    if isinstance(get_at(declared.tree, _INSIGHTS), Mapping) and not isinstance(plans, Missing):
        tree = _put(tree, _PLANS, plans)
    return tree


def _with_default(tree: JsonObject, declared: Declared, path: Path, value: Json) -> JsonObject:
    """With the value of a field that is sent whether it is declared or not, unless it is left to the service."""
    is_left = rule_at(declared, path) in (Rule.LISTED, Rule.IGNORED)
    return tree if is_left or not isinstance(get_at(tree, path), Missing) else _put(tree, path, value)


def _with_explicit_off(tree: JsonObject, declared: Declared, wanted: JsonObject) -> JsonObject:
    """With an explicit false where Enterprise Plus turns a missing setting on."""
    if get_at(wanted, _EDITION) != PLUS:
        return tree
    version = get_at(wanted, _VERSION)
    is_mysql = isinstance(version, str) and version.startswith("MYSQL")
    for path in (_BACKUPS_ON, _CACHE, *([_BINARY_LOG] if is_mysql else [])):
        if get_at(wanted, path) is False:
            tree = _put(tree, path, value=False)
    return _with_removed_off(tree, declared)


def _with_removed_off(tree: JsonObject, declared: Declared) -> JsonObject:
    """With an explicit false where the author removed a setting that Enterprise Plus turns on by default."""
    for path in (_BACKUPS_ON, _BINARY_LOG):
        above = (Path(path.steps[:depth]) for depth in range(1, len(path.steps) + 1))
        is_removed = any(get_at(declared.tree, one) is None for one in above)
        # Unmanaged settings are not removed by the author.
        if is_removed and get_at(tree, path) is not True:
            tree = _put(tree, path, value=False)
    return tree


def _without_service_chosen(tree: JsonObject, declared: Declared, default_days: int) -> JsonObject:
    """Without values that the service chose, where it would choose the same again."""
    if rule_at(declared, _START) is Rule.CHOSEN:
        tree = _without(tree, [_START])
    if rule_at(declared, _LOG_DAYS) is Rule.CHOSEN and same(get_at(tree, _LOG_DAYS) or 0, default_days):
        tree = _without(tree, [_LOG_DAYS])
    return tree


def _sent(wanted: Json | Missing, declared: Json | Missing, field: Field, at: Path) -> Json | Missing:
    if isinstance(field.shape, ObjectShape) and isinstance(wanted, Mapping):
        inside = {
            name: _sent(value, _child(declared, name), field_below(field, name) or UNTYPED, at / name)
            for name, value in wanted.items()
        }
        return {name: value for name, value in inside.items() if not isinstance(value, Missing)} or MISSING
    if wanted is None or isinstance(wanted, Missing) or _is_empty(wanted):
        return MISSING
    if at in ALWAYS_SENT or not (declared is None or isinstance(declared, Missing)):
        return wanted
    return MISSING if wanted in (False, 0, "") or _is_default(wanted, field) else wanted


def _is_empty(wanted: Json) -> bool:
    return isinstance(wanted, Mapping | list | tuple) and not wanted


def _is_default(wanted: Json, field: Field) -> bool:
    return not isinstance(field.default, Missing) and same(wanted, field.default)


def _child(value: Json | Missing, name: str) -> Json | Missing:
    return value.get(name, MISSING) if isinstance(value, Mapping) else MISSING


def _put(tree: JsonObject, path: Path, value: Json) -> JsonObject:
    return _tree(set_at(tree, path, value))


def _without(tree: JsonObject, paths: Iterable[Path]) -> JsonObject:
    for path in paths:
        tree = _tree(remove_at(tree, path))
    return tree


def _tree(value: Json | Missing) -> JsonObject:
    assert isinstance(value, Mapping)
    return value
