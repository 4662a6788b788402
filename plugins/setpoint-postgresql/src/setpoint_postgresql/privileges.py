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


@dataclass(frozen=True, slots=True)
class ObjectAcl:
    """The access control list of one object: what each grantee holds, on it and on its columns."""

    name: str
    held: Mapping[str, HeldPrivileges]
    columns: Mapping[str, Mapping[str, HeldPrivileges]]

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
        ObjectAcl(name, _by_grantee(items), {column: _by_grantee(own) for column, own in columns.items()})
        for name, items, columns, _ in row.objects
    ]
    return ObjectAcls(row.version, objects)


def _by_grantee(texts: Iterable[str]) -> Mapping[str, HeldPrivileges]:
    items: dict[str, list[AclItem]] = {}
    for text in texts:
        item = parse_item(text)
        items.setdefault(item.grantee, []).append(item)
    return {grantee: held_by(grantee, own) for grantee, own in items.items()}


# --- What is held, in the terms of what is declared ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclaredPrivileges:
    """What a resource declares for one grantee: privileges, and whether it is exclusive."""

    object_type: str
    grantee: str
    privileges: Mapping[str, LivePrivilege]
    is_exclusive: bool


def live_privileges(acls: ObjectAcls, declared: DeclaredPrivileges) -> LiveGrant | None:
    """What the grantee holds of it; None for nothing at all."""
    known = privileges_of(declared.object_type, acls.version)
    shown = [one for name in declared.privileges if (one := _shown(name, acls, declared, known)) is not None]
    covered = set(known) if ALL in declared.privileges else set(declared.privileges)
    if declared.is_exclusive:
        others = [name for name in known if name not in covered]
        shown += [one for name in others if (one := _held_anywhere(name, acls, declared.grantee)) is not None]
        covered = set(known)
    if not shown and not any(_is_held_anywhere(name, acls, declared.grantee) for name in covered):
        return None
    return LiveGrant(sorted(shown, key=lambda one: one.privilege))


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
    before: Iterable[LivePrivilege], after: Iterable[LivePrivilege], grants: Grants, *, is_for_many: bool = False
) -> list[ddl.Statement]:
    """GRANT and REVOKE from what is held to what is wanted; revocations first, because one of a table is also one of
    its columns. `is_for_many`: of several objects, some may have the grant option though it was not seen."""
    was, wanted = {one.privilege: one for one in before}, {one.privilege: one for one in after}
    revoked: list[ddl.Statement] = []
    granted: list[ddl.Statement] = []
    for name in sorted({*was, *wanted}):
        old, new = was.get(name), wanted.get(name)
        is_elsewhere = old is not None and new is not None and old.columns != new.columns
        if old is not None and (new is None or is_elsewhere):
            revoked += grants(AclChange(_NONE, _NONE, frozenset((name,)), _NONE), old.columns or ())
        if new is not None and (old is None or is_elsewhere or old.grantOption != new.grantOption):
            granted += grants(_granting(name, None if is_elsewhere else old, new, is_for_many), new.columns or ())
    return revoked + granted


def _granting(name: str, old: LivePrivilege | None, new: LivePrivilege, is_for_many: bool) -> AclChange:  # noqa: FBT001 - a value
    one = frozenset((name,))
    if new.grantOption:
        return AclChange(_NONE, one, _NONE, _NONE)
    takes_option = is_for_many or (old is not None and old.grantOption)
    return AclChange(one if old is None else _NONE, _NONE, _NONE, one if takes_option else _NONE)
