"""Options of foreign servers and user mappings: declared in plain text or by Secrets, read from catalogs, and sent.

A value from a Secret is in no tree that is compared, shown or kept: a text says whether the server has it.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET
from psycopg import sql

from setpoint.kind import (
    Json,
    Mark,
    Matches,
    Maybe,
    ResolvedReferences,
    Resource,
    SecretSource,
    field_invalid,
)
from setpoint_postgresql import statements as ddl
from setpoint_postgresql.connection import PostgresSpec

_OPTION: Final = Matches("[^\\x00=]+", "the name of an option", 63)
OptionsMap: TypeAlias = dict[Annotated[str, _OPTION], str]
SecretOptionsMap: TypeAlias = dict[Annotated[str, _OPTION], SecretSource]
# What is compared in the place of a value from a Secret: whether the server has that value.
SAME: Final = "(that of its Secret)"
OTHER: Final = "(another one than that of its Secret)"
# The same for an option that may not be read, until it is known that what is declared was sent.
UNREADABLE: Final = "(may not be read)"
# The version of each Secret, which is sent and never read back: a rotation counts as a change.
SECRET_OPTIONS: Final = "secretOptions"
_FIELD: Final = f"spec.{SECRET_OPTIONS}"


class OptionsSpec(PostgresSpec, frozen=True, kw_only=True):
    """What the specs of both kinds have: options."""

    options: Maybe[OptionsMap] = UNSET
    """Its options. One that is left out is dropped."""
    secretOptions: Annotated[Maybe[SecretOptionsMap], Mark.WRITE_ONLY] = UNSET
    """Options whose values are secret: in a Secret, or in the manifest."""


def check_options(resource: Resource, spec: OptionsSpec) -> None:
    """ManifestInvalid for an option that is declared twice."""
    for name in spec.secretOptions or {}:
        if name in (spec.options or {}):
            raise field_invalid(resource, f"{_FIELD}.{name}", " is in spec.options, too: write it once")


def declared_options(spec: OptionsSpec, resolved: ResolvedReferences) -> dict[str, Json]:
    """`options` and `secretOptions` as they are compared and kept on record: of a Secret, its version."""
    secret = spec.secretOptions or {}
    shown: dict[str, Json] = {**(spec.options or {}), **dict.fromkeys(secret, SAME)}
    versions: dict[str, Json] = {name: {"value": _version(name, one, resolved)} for name, one in secret.items()}
    return {"options": shown, **({SECRET_OPTIONS: versions} if versions else {})}


def _version(name: str, source: SecretSource, resolved: ResolvedReferences) -> str:
    return resolved.versions.get(f"{_FIELD}.{name}") or str(source.value)


def secret_values(spec: OptionsSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    """The values of the secret options that are known."""
    given = {name: one.value for name, one in (spec.secretOptions or {}).items() if isinstance(one.value, str)}
    found = {name: secrets.get(f"{_FIELD}.{name}") for name in spec.secretOptions or {}}
    return {**given, **{name: text for name, text in found.items() if text is not None}}


def shown_options(entries: Iterable[str], secret: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The options in a catalog, as `name=value`; of secret ones, whether the value is that of the Secret."""
    found = dict(map(ddl.split_setting, entries))
    for name in names:
        if name in found:
            found[name] = SAME if found[name] == secret.get(name) else OTHER
    return found


def wanted_options(options: Json, secret: Mapping[str, str]) -> dict[str, str]:
    """The options of a tree, with the values of those that are secret."""
    shown = options if isinstance(options, Mapping) else {}
    return {**{str(name): str(text) for name, text in shown.items()}, **secret}


# --- Statements ------------------------------------------------------------------------------------------------------


def option_list(options: Mapping[str, str]) -> sql.Composable:
    """OPTIONS (…) of a new object; empty for none."""
    if not options:
        return sql.SQL("")
    entries = [_entry("{name} {value}", name, value) for name, value in options.items()]
    return sql.SQL(" OPTIONS ({})").format(sql.SQL(", ").join(entries))


def option_changes(before: Mapping[str, str], after: Mapping[str, str], sent: Iterable[str]) -> sql.Composable | None:
    """OPTIONS (ADD …, SET …, DROP …) from what the server has to what it should have; None for no difference.

    `sent` are those that are set whether they differ or not: their values are secret.
    """
    again = set(sent)
    entries = [_entry("DROP {name}", name, "") for name in before if name not in after]
    for name, value in after.items():
        if name not in before:
            entries.append(_entry("ADD {name} {value}", name, value))
        elif before[name] != value or name in again:
            entries.append(_entry("SET {name} {value}", name, value))
    return sql.SQL("OPTIONS ({})").format(sql.SQL(", ").join(entries)) if entries else None


def _entry(words: str, name: str, value: str) -> sql.Composable:
    return sql.SQL(words).format(name=ddl.name(name), value=sql.Literal(value))
