"""Access control lists of PostgreSQL: how `aclitem` reads and is written, and which privileges each object type has.

Pure: texts in, values out. An item is `grantee=privileges/grantor`, as in `reader=r*w/owner`; a star is the grant
option, an empty grantee is PUBLIC. A name with other characters than letters, digits and `_` is in double quotes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

# The grantee of everyone's privileges; no role can have this name.
PUBLIC: Final = "public"
_GRANT_OPTION: Final = "*"
LETTERS: Final[Mapping[str, str]] = {
    "r": "SELECT",
    "a": "INSERT",
    "w": "UPDATE",
    "d": "DELETE",
    "D": "TRUNCATE",
    "x": "REFERENCES",
    "t": "TRIGGER",
    "m": "MAINTAIN",
    "X": "EXECUTE",
    "U": "USAGE",
    "C": "CREATE",
    "c": "CONNECT",
    "T": "TEMPORARY",
    "s": "SET",
    "A": "ALTER SYSTEM",
}
_TABLE: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN")
# The privileges that columns can have of their own.
COLUMN_PRIVILEGES: Final = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
# The privileges of each type of object, in the order of PostgreSQL's documentation.
PRIVILEGES: Final[Mapping[str, tuple[str, ...]]] = {
    "TABLE": _TABLE,
    "SEQUENCE": ("USAGE", "SELECT", "UPDATE"),
    "FUNCTION": ("EXECUTE",),
    "DATABASE": ("CREATE", "CONNECT", "TEMPORARY"),
    "SCHEMA": ("CREATE", "USAGE"),
    "TYPE": ("USAGE",),
    "LANGUAGE": ("USAGE",),
    "FOREIGN DATA WRAPPER": ("USAGE",),
    "FOREIGN SERVER": ("USAGE",),
}
# From this version of the server on, tables have MAINTAIN.
MAINTAIN_VERSION: Final = 170000


@dataclass(frozen=True, slots=True)
class AclItem:
    """What one role granted to another: the privileges, and those of them that the grantee may grant on."""

    grantee: str
    privileges: frozenset[str]
    grantable: frozenset[str]
    grantor: str

    def __post_init__(self) -> None:
        if not self.grantable <= self.privileges:
            raise ValueError(f"{sorted(self.grantable - self.privileges)} can be granted on, and are not held")


@dataclass(frozen=True, slots=True)
class HeldPrivileges:
    """The privileges of one grantee on one object, whichever role granted them."""

    privileges: frozenset[str] = frozenset()
    grantable: frozenset[str] = frozenset()


def privileges_of(object_type: str, server_version: int) -> tuple[str, ...]:
    """The privileges that the server knows for this type of object: what ALL PRIVILEGES means."""
    known = PRIVILEGES[object_type]
    return known if server_version >= MAINTAIN_VERSION else tuple(one for one in known if one != "MAINTAIN")


def held_by(grantee: str, items: Iterable[AclItem]) -> HeldPrivileges:
    """What the grantee holds by these items together."""
    own = [item for item in items if item.grantee == grantee]
    return HeldPrivileges(
        frozenset().union(*(item.privileges for item in own)), frozenset().union(*(item.grantable for item in own))
    )


# --- Texts -----------------------------------------------------------------------------------------------------------


def render_item(item: AclItem) -> str:
    """The item as PostgreSQL writes it."""
    letters = "".join(
        letter + (_GRANT_OPTION if privilege in item.grantable else "")
        for letter, privilege in LETTERS.items()
        if privilege in item.privileges
    )
    grantee = "" if item.grantee == PUBLIC else _quoted(item.grantee)
    return f"{grantee}={letters}/{_quoted(item.grantor)}"


def parse_item(text: str) -> AclItem:
    """The item that the text stands for; ValueError for a text that is none."""
    grantee, rest = _name(text)
    if not rest.startswith("="):
        raise ValueError(f"{text!r} is no access control item: a name is followed by '='")
    privileges, grantable, rest = _privileges(rest[1:])
    if not rest.startswith("/"):
        raise ValueError(f"{text!r} is no access control item: privileges are followed by '/' and the grantor")
    grantor, left = _name(rest[1:])
    if left:
        raise ValueError(f"{text!r} is no access control item: {left!r} follows its grantor")
    return AclItem(grantee or PUBLIC, privileges, grantable, grantor)


def _quoted(name: str) -> str:
    """The name, in quotes unless it consists of ASCII letters, digits and `_`."""
    is_plain = name.isascii() and name.replace("_", "a").isalnum()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _name(text: str) -> tuple[str, str]:
    """The name that the text begins with, without its quotes; and the rest."""
    found: list[str] = []
    in_quotes, at = False, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            if in_quotes and text[at + 1 : at + 2] == '"':
                found.append(char)
                at += 1
            else:
                in_quotes = not in_quotes
        elif not in_quotes and char in "=/":
            break
        else:
            found.append(char)
        at += 1
    if in_quotes:
        raise ValueError(f"{text!r} is no access control item: a quote is not closed")
    return "".join(found), text[at:]


def _privileges(text: str) -> tuple[frozenset[str], frozenset[str], str]:
    """The privileges that the text begins with, those of them with a star, and the rest."""
    held: set[str] = set()
    grantable: set[str] = set()
    last, at = "", 0
    while at < len(text) and text[at] != "/":
        char = text[at]
        if char == _GRANT_OPTION and last:
            grantable.add(last)
        elif char in LETTERS:
            last = LETTERS[char]
            held.add(last)
        else:
            raise ValueError(f"{char!r} is no letter of a privilege")
        at += 1
    return frozenset(held), frozenset(grantable), text[at:]


# --- Differences -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AclChange:
    """What takes a grantee from what it holds to what it should hold; each set may be empty."""

    grant: frozenset[str]
    grant_with_option: frozenset[str]
    revoke: frozenset[str]
    revoke_option: frozenset[str]


def acl_change(before: HeldPrivileges, after: HeldPrivileges) -> AclChange:
    """The grants and revocations between the two."""
    with_option = after.grantable - before.grantable
    return AclChange(
        grant=after.privileges - before.privileges - with_option,
        grant_with_option=with_option,
        revoke=before.privileges - after.privileges,
        revoke_option=(before.grantable - after.grantable) & after.privileges,
    )


def applied(before: HeldPrivileges, change: AclChange) -> HeldPrivileges:
    """What the grantee holds after the change."""
    return HeldPrivileges(
        (before.privileges | change.grant | change.grant_with_option) - change.revoke,
        (before.grantable | change.grant_with_option) - change.revoke - change.revoke_option,
    )
