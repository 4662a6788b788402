"""The database versions that exist, and validation: instances and changes that Cloud SQL refuses."""

import re
from enum import StrEnum
from typing import Final

from setpoint.core.values.canonical import same
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.localcloud.api_errors import invalid
from setpoint.localcloud.schema import JsonBody, check_labels, member, without_member


class DatabaseEngine(StrEnum):
    """A database engine."""

    MYSQL = "MYSQL"
    POSTGRES = "POSTGRES"
    SQLSERVER = "SQLSERVER"


@dataclass(frozen=True, slots=True)
class DatabaseVersion:
    """A database version, with the installed minor version and the maintenance version behind it."""

    name: str
    installed: str
    maintenance: str
    upgrades: tuple[str, ...] = ()
    # The default edition of an instance.
    edition: str = "ENTERPRISE"
    has_plus: bool = True

    @property
    def engine(self) -> DatabaseEngine:
        """The engine it is a version of."""
        return DatabaseEngine(self.name.split("_")[0])


PLUS: Final = "ENTERPRISE_PLUS"
_MYSQL_8_0_MINORS: Final = (18, *range(26, 44))
_MINORS_OF_8_0: Final = tuple(f"MYSQL_8_0_{minor}" for minor in _MYSQL_8_0_MINORS)
# The first four are as recorded from Google; the other release dates are invented.
_MAIN_VERSIONS: Final = (
    DatabaseVersion(
        "MYSQL_5_7", "MYSQL_5_7_44", "MYSQL_5_7_44.R20231105.01_03", ("MYSQL_8_0", *_MINORS_OF_8_0), has_plus=False
    ),
    DatabaseVersion("MYSQL_8_0", "MYSQL_8_0_41", "MYSQL_8_0_41.R20251004.01_07", (*_MINORS_OF_8_0[-2:], "MYSQL_8_4")),
    DatabaseVersion(
        "POSTGRES_15", "POSTGRES_15_7", "POSTGRES_15_7.R20240514.00_12", ("POSTGRES_16", "POSTGRES_17", "POSTGRES_18")
    ),
    DatabaseVersion(
        "POSTGRES_16", "POSTGRES_16_3", "POSTGRES_16_3.R20240527.01_10", ("POSTGRES_17", "POSTGRES_18"), PLUS
    ),
    DatabaseVersion("MYSQL_5_6", "MYSQL_5_6_51", "MYSQL_5_6_51.R20230605.01_00", ("MYSQL_5_7",), has_plus=False),
    DatabaseVersion("MYSQL_8_4", "MYSQL_8_4_6", "MYSQL_8_4_6.R20251004.01_07", (), PLUS),
    DatabaseVersion("POSTGRES_17", "POSTGRES_17_6", "POSTGRES_17_6.R20251004.01_07", ("POSTGRES_18",), PLUS),
    DatabaseVersion("POSTGRES_18", "POSTGRES_18_0", "POSTGRES_18_0.R20251004.01_07", (), PLUS),
)
_OLD_POSTGRES: Final = ("9_6", "10", "11", "12", "13", "14")
_SQLSERVER_YEARS: Final = (2017, 2019, 2022)
_SQLSERVER_FLAVOURS: Final = ("STANDARD", "ENTERPRISE", "EXPRESS", "WEB")


def find_version(name: str) -> DatabaseVersion | None:
    """The version called `name`, if there is one."""
    return _VERSIONS.get(name)


def engine_of(database_version: str) -> DatabaseEngine:
    """The engine of a version that exists."""
    return _VERSIONS[database_version].engine


def upgradable(version: DatabaseVersion) -> list[JsonBody]:
    """The versions that `version` can be upgraded to, as the service lists them."""
    return [
        {"displayName": _display_name(name), "majorVersion": _major(name), "name": name} for name in version.upgrades
    ]


def _postgres(number: str) -> DatabaseVersion:
    name = f"POSTGRES_{number}"
    later = (*_OLD_POSTGRES[_OLD_POSTGRES.index(number) + 1 :], "15", "16", "17", "18")
    upgrades = tuple(f"POSTGRES_{one}" for one in later)
    has_plus = number in ("12", "13", "14")
    return DatabaseVersion(name, f"{name}_20", f"{name}_20.R20240514.00_12", upgrades, has_plus=has_plus)


def _sqlserver(year: int, flavour: str) -> DatabaseVersion:
    name = f"SQLSERVER_{year}_{flavour}"
    upgrades = tuple(f"SQLSERVER_{later}_{flavour}" for later in _SQLSERVER_YEARS if later > year)
    has_plus = year > 2017 and flavour == "ENTERPRISE"
    return DatabaseVersion(name, f"{name}_CU26", f"{name}_CU26.R20240514.00_12", upgrades, has_plus=has_plus)


def _mysql_minor(minor: int) -> DatabaseVersion:
    name = f"MYSQL_8_0_{minor}"
    upgrades = tuple(f"MYSQL_8_0_{later}" for later in _MYSQL_8_0_MINORS if later > minor)
    return DatabaseVersion(name, name, f"{name}.R20251004.01_07", (*upgrades, "MYSQL_8_4"))


def _major(name: str) -> str:
    return re.sub(r"^(MYSQL_8_0)_\d+$", r"\1", name)


def _display_name(name: str) -> str:
    engine, _, number = name.partition("_")
    if engine == DatabaseEngine.SQLSERVER:
        return "SQL Server " + number.replace("_", " ").title()
    return {"MYSQL": "MySQL", "POSTGRES": "PostgreSQL"}[engine] + " " + number.replace("_", ".")


_VERSIONS: Final = {
    version.name: version
    for version in (
        *_MAIN_VERSIONS,
        *(_postgres(number) for number in _OLD_POSTGRES),
        *(_mysql_minor(minor) for minor in _MYSQL_8_0_MINORS),
        *(_sqlserver(year, flavour) for year in _SQLSERVER_YEARS for flavour in _SQLSERVER_FLAVOURS),
    )
}


_NAME: Final = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")
_PLUS_TIERS: Final = ("db-perf-optimized-", "db-c4a-", "db-memory-optimized-")
_MAINTENANCE: Final = re.compile(r"(?P<version>[A-Z0-9_]+)\.R(?P<date>\d{8})\.(?P<build>\d\d_\d\d)")

# Immutable fields, with their names in the error message.
_IMMUTABLE: Final = {
    "name": "the name",
    "region": "the region",
    "instanceType": "the instance type",
    "masterInstanceName": "the primary of a replica",
    "diskEncryptionConfiguration.kmsKeyName": "the encryption key",
    "settings.dataDiskType": "the type of the data disk",
    "settings.collation": "the collation of the server",
    "settings.timeZone": "the time zone of the server",
}


def check_name(project: str, name: str) -> None:
    """Refuses an invalid name of an instance."""
    if not _NAME.fullmatch(name) or len(f"{project}:{name}") > 98:
        raise invalid(
            f"Invalid instance name ({name}): lower-case letters, digits and hyphens, a letter first, and at most 98 "
            "characters together with the project"
        )


def check_instance(instance: JsonBody) -> None:
    """Refuses an invalid instance; it is complete with its defaults."""
    version = find_version(instance["databaseVersion"])
    if version is None:
        raise invalid(f"Invalid database version ({instance['databaseVersion']})")
    settings = instance["settings"]
    check_tier(settings, version)
    check_disk(settings)
    check_backups(settings, version, instance)
    check_network(settings)
    check_zones(settings, instance["region"])
    check_flags(settings)
    check_labels(settings.get("userLabels", {}), invalid)


def check_tier(settings: JsonBody, version: DatabaseVersion) -> None:
    """Refuses a tier that does not go with the edition, and an edition that does not go with the version."""
    tier, edition = settings.get("tier"), settings["edition"]
    if not tier:
        raise invalid("Missing parameter: settings.tier")
    if edition == PLUS and not version.has_plus:
        raise invalid(f"The edition ENTERPRISE_PLUS is not available for {version.name}")
    if (edition == PLUS) != tier.startswith(_PLUS_TIERS):
        like = "db-perf-optimized-N-*" if edition == PLUS else "db-custom-*"
        raise invalid(f"Invalid Tier ({tier}) for ({edition}) Edition. Use a predefined Tier like {like} instead")
    if edition != PLUS and member(settings, "dataCacheConfig.dataCacheEnabled"):
        raise invalid("Data cache is only supported for ENTERPRISE_PLUS edition")


def check_disk(settings: JsonBody) -> None:
    """Refuses a disk that is too small, and a limit below the disk."""
    size, limit = int(settings["dataDiskSizeGb"]), int(settings["storageAutoResizeLimit"])
    if size < 10:
        raise invalid(f"The data disk size ({size} GB) must be at least 10 GB")
    if limit and limit < size:
        raise invalid(f"The storage auto resize limit ({limit} GB) is below the data disk size ({size} GB)")


def check_backups(settings: JsonBody, version: DatabaseVersion, instance: JsonBody) -> None:
    """Refuses logs without backups, high availability without logs, and retention out of range."""
    backups = settings["backupConfiguration"]
    is_primary = "masterInstanceName" not in instance
    has_log = bool(backups.get("binaryLogEnabled"))
    if is_primary and not backups["enabled"]:
        if has_log:
            raise invalid("Binary log can only be enabled when backups are enabled")
        if backups.get("pointInTimeRecoveryEnabled"):
            raise invalid("Point-in-time recovery can only be enabled when backups are enabled")
    if (
        settings["availabilityType"] == "REGIONAL"
        and version.engine is DatabaseEngine.MYSQL
        and is_primary
        and not has_log
    ):
        raise invalid("A REGIONAL MySQL instance must have backups and the binary log enabled")
    check_retention(backups, 35 if settings["edition"] == PLUS else 7)


def check_retention(backups: JsonBody, most_days: int) -> None:
    """Refuses to keep backups or logs for a time that the edition does not offer."""
    if not 1 <= backups["transactionLogRetentionDays"] <= most_days:
        raise invalid(f"The number of transaction log retention days must be between 1 and {most_days}")
    if not 1 <= backups["backupRetentionSettings"]["retainedBackups"] <= 365:
        raise invalid("The number of retained backups must be between 1 and 365")
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", backups["startTime"]):
        raise invalid(f"Invalid backup start time ({backups['startTime']}): HH:MM in 24 hours")


def check_network(settings: JsonBody) -> None:
    """Refuses an instance without any IP address, and authorized networks without a value."""
    network = settings["ipConfiguration"]
    if not (network["ipv4Enabled"] or network.get("privateNetwork") or member(network, "pscConfig.pscEnabled")):
        raise invalid("At least one of public IP, private IP and Private Service Connect must be enabled")
    for entry in network["authorizedNetworks"]:
        if not entry.get("value"):
            raise invalid("An authorized network must have a value")


def check_zones(settings: JsonBody, region: str) -> None:
    """Refuses zones outside the region."""
    for name in ("zone", "secondaryZone"):
        zone = settings["locationPreference"].get(name)
        if zone is not None and not zone.startswith(f"{region}-"):
            raise invalid(f"The {name} {zone} is not in the region {region}")


def check_flags(settings: JsonBody) -> None:
    """Refuses a database flag without a name, or named twice."""
    names = [flag.get("name") for flag in settings.get("databaseFlags", [])]
    for name in names:
        if not name or names.count(name) > 1:
            raise invalid(f"Each database flag must have a name of its own ({name})")


def check_change(before: JsonBody, after: JsonBody) -> None:
    """Refuses a change between two complete instances that Cloud SQL does not support."""
    for path, what in _IMMUTABLE.items():
        was, now = member(before, path), member(after, path)
        if was != now:
            raise invalid(f"{path} cannot change from {was} to {now}: {what} is fixed when the instance is created")
    was_size, size = int(before["settings"]["dataDiskSizeGb"]), int(after["settings"]["dataDiskSizeGb"])
    if size < was_size:
        raise invalid(f"settings.dataDiskSizeGb cannot change from {was_size} to {size}: a data disk cannot shrink")
    check_upgrade(before, after)
    check_maintenance(before, after)


def check_upgrade(before: JsonBody, after: JsonBody) -> None:
    """Refuses a database version that the current one cannot be upgraded to."""
    was, now = before["databaseVersion"], after["databaseVersion"]
    version = find_version(was)
    if was != now and (version is None or now not in version.upgrades):
        raise invalid(f"The database version cannot change from {was} to {now}")


def check_maintenance(before: JsonBody, after: JsonBody) -> None:
    """Refuses a maintenance version that is not of this database, not newer, or not alone in its request."""
    was, now = before["maintenanceVersion"], after["maintenanceVersion"]
    found = _MAINTENANCE.fullmatch(now)
    if found is None or not found["version"].startswith(after["databaseVersion"]):
        raise invalid(f"The maintenance version {now} is not one of {after['databaseVersion']}")
    if was == now or before["databaseVersion"] != after["databaseVersion"]:
        return
    if _release(now) < _release(was):
        raise invalid(f"The maintenance version cannot change from {was} back to {now}")
    if not same(without_member(before, "maintenanceVersion"), without_member(after, "maintenanceVersion")):
        raise invalid("The maintenance version cannot change together with anything else")


def _release(maintenance: str) -> tuple[str, str]:
    found = _MAINTENANCE.fullmatch(maintenance)
    return (found["date"], found["build"]) if found else ("", "")


def check_replica(replica: JsonBody, primary: JsonBody) -> None:
    """Refuses a replica that does not fit its primary."""
    if replica["instanceType"] != "READ_REPLICA_INSTANCE":
        raise invalid("An instance with a masterInstanceName must have the instance type READ_REPLICA_INSTANCE")
    if replica["databaseVersion"] != primary["databaseVersion"]:
        raise invalid("A replica must have the database version of its primary")
    if int(replica["settings"]["dataDiskSizeGb"]) < int(primary["settings"]["dataDiskSizeGb"]):
        raise invalid("The data disk of a replica must not be smaller than that of its primary")
    is_mysql = engine_of(primary["databaseVersion"]) is DatabaseEngine.MYSQL
    if is_mysql and not member(primary, "settings.backupConfiguration.binaryLogEnabled"):
        raise invalid("The primary of a MySQL replica must have the binary log enabled")
