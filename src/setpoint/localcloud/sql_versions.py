"""Which database versions there are, and what each may become."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from setpoint.localcloud.trees import Tree


class Engine(StrEnum):
    """A database engine."""

    MYSQL = "MYSQL"
    POSTGRES = "POSTGRES"
    SQLSERVER = "SQLSERVER"


@dataclass(frozen=True, slots=True)
class Version:
    """A version that can be asked for. The installed one is more exact, the maintenance one most."""

    name: str
    installed: str
    maintenance: str
    upgrades: tuple[str, ...] = ()
    # The edition of an instance that names none.
    edition: str = "ENTERPRISE"
    has_plus: bool = True

    @property
    def engine(self) -> Engine:
        """The engine it is a version of."""
        return Engine(self.name.split("_")[0])


PLUS: Final = "ENTERPRISE_PLUS"
_MYSQL_8_0_MINORS: Final = (18, *range(26, 44))
_MINORS_OF_8_0: Final = tuple(f"MYSQL_8_0_{minor}" for minor in _MYSQL_8_0_MINORS)
# The first four are as recorded; the other release dates are made up.
_MAIN: Final = (
    Version(
        "MYSQL_5_7", "MYSQL_5_7_44", "MYSQL_5_7_44.R20231105.01_03", ("MYSQL_8_0", *_MINORS_OF_8_0), has_plus=False
    ),
    Version("MYSQL_8_0", "MYSQL_8_0_41", "MYSQL_8_0_41.R20251004.01_07", (*_MINORS_OF_8_0[-2:], "MYSQL_8_4")),
    Version(
        "POSTGRES_15", "POSTGRES_15_7", "POSTGRES_15_7.R20240514.00_12", ("POSTGRES_16", "POSTGRES_17", "POSTGRES_18")
    ),
    Version("POSTGRES_16", "POSTGRES_16_3", "POSTGRES_16_3.R20240527.01_10", ("POSTGRES_17", "POSTGRES_18"), PLUS),
    Version("MYSQL_5_6", "MYSQL_5_6_51", "MYSQL_5_6_51.R20230605.01_00", ("MYSQL_5_7",), has_plus=False),
    Version("MYSQL_8_4", "MYSQL_8_4_6", "MYSQL_8_4_6.R20251004.01_07", (), PLUS),
    Version("POSTGRES_17", "POSTGRES_17_6", "POSTGRES_17_6.R20251004.01_07", ("POSTGRES_18",), PLUS),
    Version("POSTGRES_18", "POSTGRES_18_0", "POSTGRES_18_0.R20251004.01_07", (), PLUS),
)
_OLD_POSTGRES: Final = ("9_6", "10", "11", "12", "13", "14")
_SQLSERVER_YEARS: Final = (2017, 2019, 2022)
_SQLSERVER_FLAVOURS: Final = ("STANDARD", "ENTERPRISE", "EXPRESS", "WEB")


def find_version(name: str) -> Version | None:
    """The version called `name`, if there is one."""
    return _VERSIONS.get(name)


def engine_of(database_version: str) -> Engine:
    """The engine of a version that exists."""
    return _VERSIONS[database_version].engine


def upgradable(version: Version) -> list[Tree]:
    """What an instance of `version` may become, as the service lists it."""
    return [{"displayName": _shown(name), "majorVersion": _major(name), "name": name} for name in version.upgrades]


def _postgres(number: str) -> Version:
    name = f"POSTGRES_{number}"
    later = (*_OLD_POSTGRES[_OLD_POSTGRES.index(number) + 1 :], "15", "16", "17", "18")
    upgrades = tuple(f"POSTGRES_{one}" for one in later)
    has_plus = number in ("12", "13", "14")
    return Version(name, f"{name}_20", f"{name}_20.R20240514.00_12", upgrades, has_plus=has_plus)


def _sqlserver(year: int, flavour: str) -> Version:
    name = f"SQLSERVER_{year}_{flavour}"
    upgrades = tuple(f"SQLSERVER_{later}_{flavour}" for later in _SQLSERVER_YEARS if later > year)
    has_plus = year > 2017 and flavour == "ENTERPRISE"
    return Version(name, f"{name}_CU26", f"{name}_CU26.R20240514.00_12", upgrades, has_plus=has_plus)


def _mysql_minor(minor: int) -> Version:
    name = f"MYSQL_8_0_{minor}"
    upgrades = tuple(f"MYSQL_8_0_{later}" for later in _MYSQL_8_0_MINORS if later > minor)
    return Version(name, name, f"{name}.R20251004.01_07", (*upgrades, "MYSQL_8_4"))


def _major(name: str) -> str:
    return re.sub(r"^(MYSQL_8_0)_\d+$", r"\1", name)


def _shown(name: str) -> str:
    engine, _, number = name.partition("_")
    if engine == Engine.SQLSERVER:
        return "SQL Server " + number.replace("_", " ").title()
    return {"MYSQL": "MySQL", "POSTGRES": "PostgreSQL"}[engine] + " " + number.replace("_", ".")


_VERSIONS: Final = {
    version.name: version
    for version in (
        *_MAIN,
        *(_postgres(number) for number in _OLD_POSTGRES),
        *(_mysql_minor(minor) for minor in _MYSQL_8_0_MINORS),
        *(_sqlserver(year, flavour) for year in _SQLSERVER_YEARS for flavour in _SQLSERVER_FLAVOURS),
    )
}
