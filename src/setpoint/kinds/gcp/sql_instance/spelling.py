"""Small values in one spelling, whoever wrote them: moments, engines, SSL modes, names of instances."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from setpoint.core.canonical import same
from setpoint.core.paths import Path, get_at, set_at
from setpoint.core.values import Json
from setpoint.kinds.config_connector import relative
from setpoint.kinds.gcp.sql_instance.spec import UNENCRYPTED

# A tree of SqlInstanceTree, or a part of one.
Part: TypeAlias = Mapping[str, Any]
CERTIFICATE: Final = "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"
_REQUIRES_SSL: Final = Path(("settings", "ipConfiguration", "requireSsl"))
_SSL_MODE: Final = Path(("settings", "ipConfiguration", "sslMode"))
_OWN_FIGURES: Final = {"queryPlansPerMinute": 5, "queryStringLength": 1024}
_ENCRYPTED: Final = "ENCRYPTED_ONLY"


def ssl_mode(*, requires_ssl: bool, database_version: str) -> str:
    """The SSL mode that the older switch stands for."""
    if not requires_ssl:
        return UNENCRYPTED
    return CERTIFICATE if database_version.startswith(("MYSQL", "POSTGRES")) else _ENCRYPTED


def with_ssl_mode(spec: Mapping[str, Json], database_version: str) -> Mapping[str, Json]:
    """The author's spec with the SSL mode that the older switch asks for, when that switch is all that was said."""
    if get_at(spec, _REQUIRES_SSL) is not True or isinstance(get_at(spec, _SSL_MODE), str):
        return spec
    found = set_at(spec, _SSL_MODE, ssl_mode(requires_ssl=True, database_version=database_version))
    assert isinstance(found, Mapping)
    return found


def moment(text: str) -> str:
    """A time in one spelling: UTC, no more digits than it needs; what is no time is left as it is."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    if found.tzinfo is None:
        return text
    plain = found.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{plain.rstrip('0') if '.' in plain else plain}Z"


def instance_path(text: str, project: str) -> str:
    """`project:instance`, for an instance by its bare name, by that very form, or by a link."""
    if ":" in text and "/" not in text:
        return text
    _, found, rest = relative(text).partition("projects/")
    owner, _, name = rest.partition("/instances/")
    return f"{owner}:{name}" if found and name else f"{project}:{text}"


def said(part: Mapping[str, Json]) -> dict[str, Json]:
    """A part without what says nothing in it: nulls, empty lists, empty text."""
    return {name: value for name, value in part.items() if value not in (None, "", [])}


def authorized_network(entry: Mapping[str, Json]) -> dict[str, Json]:
    """An authorized network as it is compared."""
    plain = said(entry)
    until = plain.get("expirationTime")
    return {**plain, "expirationTime": moment(until)} if isinstance(until, str) else plain


def psc_config(config: Mapping[str, Json]) -> list[Json]:
    """Private Service Connect as it is compared: a list of one, or of none when it is off."""
    plain = {name: value for name, value in said(config).items() if value is not False}
    return [plain] if plain else []


def insights_config(config: Mapping[str, Json]) -> dict[str, Json]:
    """Query insights as they are compared: a zero here is the service's own figure."""
    return {
        name: _OWN_FIGURES[name] if same(value, 0) and name in _OWN_FIGURES else value for name, value in config.items()
    }
