"""Everything Cloud SQL remembers, as plain data: it can be written to a file and read back."""

from typing import TypeAlias

from msgspec import Struct, field

from setpoint.localcloud.trees import Tree


class User(Struct, frozen=True):
    """A database user. Of the password only a salted hash is kept; no hash means that nobody can log in."""

    name: str
    host: str
    resource: Tree
    salt: str = ""
    password_hash: str = ""


class Instance(Struct):
    """An instance with all that lives in it. `resource` is what GET answers, as long as nothing is going on."""

    resource: Tree
    users: list[User]
    databases: dict[str, Tree]
    # Outputs that somebody changed behind our back; they outlive the next write.
    overrides: Tree = field(default_factory=dict)


class PutInstance(Struct, frozen=True, tag="put-instance"):
    """The instance becomes this."""

    resource: Tree


class RemoveInstance(Struct, frozen=True, tag="remove-instance"):
    """The instance goes, with everything in it."""


class PutUser(Struct, frozen=True, tag="put-user"):
    """The user of this name and host becomes this."""

    user: User


class RemoveUser(Struct, frozen=True, tag="remove-user"):
    """The user goes."""

    name: str
    host: str


class PutDatabase(Struct, frozen=True, tag="put-database"):
    """The database of this name becomes this."""

    name: str
    resource: Tree


class RemoveDatabase(Struct, frozen=True, tag="remove-database"):
    """The database goes."""

    name: str


Effect: TypeAlias = PutInstance | RemoveInstance | PutUser | RemoveUser | PutDatabase | RemoveDatabase


class Operation(Struct):
    """A long-running operation. Its effect comes at `ends`, or never when there is an `error`."""

    name: str
    project: str
    type: str
    target_id: str
    target_link: str
    # The instance it changes, and all the instances that cannot be written to meanwhile.
    key: str
    locks: list[str]
    inserted: float
    starts: float
    ends: float
    effect: Effect
    error: Tree | None = None
    is_finished: bool = False


class SqlState(Struct):
    """All instances and operations of all projects. An instance's key is `<project>/<name>`."""

    instances: dict[str, Instance] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    # When each name was set free, in seconds since the epoch.
    deleted: dict[str, float] = field(default_factory=dict)
    # How many operations there have ever been.
    count: int = 0
