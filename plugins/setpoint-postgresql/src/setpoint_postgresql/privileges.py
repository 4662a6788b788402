"""Privileges of one grantee on one object, or on all objects of a schema: read from access control lists, compared with
what is declared, and changed. Pure.

A declared privilege counts as held when every object has it. One that is not declared is shown only where the resource
is exclusive: then one object that has it is enough, because it is to be revoked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from setpoint_postgresql import statements as ddl
from setpoint_postgresql.acl import AclChange, AclItem, HeldPrivileges, held_by, parse_item, privileges_of

ALL: Final = "ALL"
_NOTHING: Final = HeldPrivileges()
_NONE: Final[frozenset[str]] = frozenset()


class LivePrivilege(Struct, frozen=True, omit_defaults=True):
    """A privilege as the server has it: on the whole object, or on some columns."""

    privilege: str
    grantOption: bool = False
    columns: list[str] | UnsetType = UNSET


class LiveGrant(Struct, frozen=True):
    """The privileges of the grantee that the resource is about."""

    privileges: list[LivePrivilege] = []
    # Whether they can be granted on: every one, where that is declared of any; any one, where it is not.
    grantOption: bool = False


@dataclass(frozen=True, slots=True)
class ObjectAcl:
    """The access control list of one object: what each grantee holds, on it and on its columns."""

    name: str
    held: Mapping[str, HeldPrivileges]
    columns: Mapping[str, Mapping[str, HeldPrivileges]]
    # What other roles than the owner granted, on the object and on its columns.
    of_others: Sequence[AclItem] = ()

    def of(self, grantee: str) -> HeldPrivileges:
        """What the grantee holds on the object as a whole."""
        return self.held.get(grantee, _NOTHING)

    def columns_with(self, privilege: str, grantee: str) -> dict[str, bool]:
        """The columns on which the grantee holds the privilege, each with its grant option."""
        found = {column: held.get(grantee, _NOTHING) for column, held in self.columns.items()}
        return {
            column: privilege in held.grantable
            for column, held in sorted(found.items())
            if privilege in held.privileges
        }


class _AclRow(Struct, frozen=True):
    version: int
    objects: list[tuple[str, list[str], dict[str, list[str]], str]] = []


@dataclass(frozen=True, slots=True)
class ObjectAcls:
    """The lists of all objects that a resource is about, and the version of the server."""

    version: int
    objects: Sequence[ObjectAcl]


_row: Final = msgspec.json.Decoder(_AclRow)


@lru_cache(maxsize=256)
def read_acls(body: bytes) -> ObjectAcls:
    """The lists in a row of the catalog; parsed once for all resources about the same objects."""
    row = _row.decode(body)
    objects = [
        ObjectAcl(
            name,
            _by_grantee(items),
            {column: _by_grantee(own) for column, own in columns.items()},
            _of_others([*items, *(one for own in columns.values() for one in own)], owner),
        )
        for name, items, columns, owner in row.objects
    ]
    return ObjectAcls(row.version, objects)


def _by_grantee(texts: Iterable[str]) -> Mapping[str, HeldPrivileges]:
    items: dict[str, list[AclItem]] = {}
    for text in texts:
        item = parse_item(text)
        items.setdefault(item.grantee, []).append(item)
    return {grantee: held_by(grantee, own) for grantee, own in items.items()}


def _of_others(texts: Iterable[str], owner: str) -> list[AclItem]:
    return [item for text in texts if (item := parse_item(text)).grantor != owner]


# --- What other roles than the owner granted: only they can take it back ----------------------------------------------


@dataclass(frozen=True, slots=True)
class ThirdGrant:
    """What a role that is not the owner of an object granted on it to the grantee of a resource."""

    object_name: str
    grantor: str
    held: HeldPrivileges

    def part_of(self, change: AclChange) -> AclChange:
        """The revocations of `change` that are about what this role granted."""
        held, option = self.held.privileges, self.held.grantable
        revoked = held if ALL in change.revoke else held & change.revoke
        options = option if ALL in change.revoke_option else option & change.revoke_option
        return AclChange(_NONE, _NONE, revoked, options - revoked)


def third_grants_in(acls: ObjectAcls, grantee: str) -> list[ThirdGrant]:
    """What other roles granted to the grantee, by object and grantor."""
    found: dict[tuple[str, str], list[AclItem]] = {}
    for one in acls.objects:
        for item in one.of_others:
            if item.grantee == grantee:
                found.setdefault((one.name, item.grantor), []).append(item)
    return [ThirdGrant(*key, held_by(grantee, items)) for key, items in found.items()]


# --- What is held, in the terms of what is declared ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclaredPrivileges:
    """What a resource declares for one grantee: privileges, and whether it is exclusive.

    `recorded` are the names of privileges that it declared before: what the author takes out of the spec is revoked.
    """

    object_type: str
    grantee: str
    privileges: Mapping[str, LivePrivilege]
    is_exclusive: bool
    recorded: frozenset[str] = frozenset()

    def others(self, version: int) -> list[str]:
        """The names of privileges that are not declared, and are revoked where they are held."""
        known = privileges_of(self.object_type, version)
        covered = set(known) if ALL in self.privileges else set(self.privileges)
        return [name for name in known if name not in covered and (self.is_exclusive or name in self.recorded)]


def live_privileges(acls: ObjectAcls, declared: DeclaredPrivileges) -> LiveGrant | None:
    """What the grantee holds of it; None for nothing at all."""
    known = privileges_of(declared.object_type, acls.version)
    shown = [one for name in declared.privileges if (one := _shown(name, acls, declared, known)) is not None]
    others = declared.others(acls.version)
    shown += [one for name in others if (one := _held_anywhere(name, acls, declared.grantee)) is not None]
    covered = {*(known if ALL in declared.privileges else declared.privileges), *others}
    if not shown and not any(_is_held_anywhere(name, acls, declared.grantee) for name in covered):
        return None
    options = [one.grantOption for one in shown]
    is_declared = any(one.grantOption for one in declared.privileges.values())
    has_option = bool(options) and (all(options) if is_declared else any(options))
    return LiveGrant(sorted(shown, key=lambda one: one.privilege), has_option)


def _shown(name: str, acls: ObjectAcls, declared: DeclaredPrivileges, known: Sequence[str]) -> LivePrivilege | None:
    """A declared privilege as it is held: by every object, or else on some columns."""
    names = frozenset(known) if name == ALL else frozenset((name,))
    held = [one.of(declared.grantee) for one in acls.objects]
    if all(names <= one.privileges for one in held):
        # An option that is declared has to be on every object, one that is not declared on none.
        combined = all if declared.privileges[name].grantOption else any
        return LivePrivilege(name, combined(names <= one.grantable for one in held))
    if len(acls.objects) == 1 and name != ALL:
        return _on_columns(name, acls.objects[0], declared.grantee, declared.privileges[name].grantOption)
    return None


def _on_columns(name: str, one: ObjectAcl, grantee: str, is_declared_with_option: bool) -> LivePrivilege | None:  # noqa: FBT001 - a value
    columns = one.columns_with(name, grantee)
    if not columns:
        return None
    combined = all if is_declared_with_option else any
    return LivePrivilege(name, combined(columns.values()), list(columns))


def _held_anywhere(name: str, acls: ObjectAcls, grantee: str) -> LivePrivilege | None:
    held = [one.of(grantee) for one in acls.objects]
    if any(name in one.privileges for one in held):
        return LivePrivilege(name, any(name in one.grantable for one in held))
    found = [column for one in acls.objects for column in one.columns_with(name, grantee)]
    return LivePrivilege(name, False, sorted(set(found))) if found else None


def _is_held_anywhere(name: str, acls: ObjectAcls, grantee: str) -> bool:
    return _held_anywhere(name, acls, grantee) is not None


# --- Changes ---------------------------------------------------------------------------------------------------------

# The statements for one change, on an object or on these columns.
Grants = Callable[[AclChange, Sequence[str]], list[ddl.Statement]]


def privilege_statements(
    before: Iterable[LivePrivilege], after: Iterable[LivePrivilege], grants: Grants, *, revoked: Iterable[str] = ()
) -> list[ddl.Statement]:
    """GRANT and REVOKE that lead to what is wanted, also from what another writer made of it meanwhile.

    `revoked` are names to revoke beside those that are held and not wanted. What is wanted is granted anew, held or
    not. Columns are taken back by a revocation for the whole object: only where they differ, because a revocation
    also takes back what the grantee has granted on.
    """
    was, wanted = {one.privilege: one for one in before}, {one.privilege: one for one in after}
    is_new = not was
    whole = {name for name, one in wanted.items() if one.columns is UNSET}
    options = {name for name in whole if wanted[name].grantOption}
    moved = {name for name, one in was.items() if name in wanted and _columns(one) != _columns(wanted[name])}
    change = AclChange(
        grant=frozenset(whole - options),
        grant_with_option=frozenset(options),
        revoke=frozenset(({*was, *revoked} - {*wanted}) | moved),
        revoke_option=frozenset() if is_new else frozenset(whole - options - moved),
    )
    found = grants(change, ())
    for name in sorted({*wanted} - whole):
        found += grants(_on_columns_change(wanted[name], is_new=is_new or name in moved), _columns(wanted[name]))
    return found


def _columns(one: LivePrivilege) -> Sequence[str]:
    return [] if one.columns is UNSET else one.columns


def _on_columns_change(one: LivePrivilege, *, is_new: bool) -> AclChange:
    name = frozenset((one.privilege,))
    if one.grantOption:
        return AclChange(_NONE, name, _NONE, _NONE)
    return AclChange(name, _NONE, _NONE, _NONE if is_new else name)
