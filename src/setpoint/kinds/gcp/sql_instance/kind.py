"""The kind SQLInstance: where an instance is, how it reads, and the four verbs."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from msgspec import Struct

from setpoint.clients.google import GoogleClient
from setpoint.clients.google_operations import SqlOperation, sql_operation
from setpoint.clients.google_pages import name_in, pages_of
from setpoint.core.canonical import body_digest
from setpoint.core.overlay import Declared
from setpoint.core.paths import Path, get_at
from setpoint.core.plan import Sending, Stage, Write
from setpoint.core.values import Json, Missing
from setpoint.engine.kind import (
    Absent,
    Definition,
    Intent,
    Location,
    Need,
    Operation,
    Present,
    Reconciliation,
    Resolved,
    Unmoved,
    look_at,
)
from setpoint.engine.resource import Resource, Tree
from setpoint.engine.shelf import Shelf
from setpoint.errors import RemoteConflict
from setpoint.kinds.cloud_sql import is_over, to_wait_for
from setpoint.kinds.config_connector import MANAGED, PROJECT, definition_for, google_labels, project_of, resource_id
from setpoint.kinds.gcp.sql_instance.bodies import clone_body, insert_body, patch_body, put_body
from setpoint.kinds.gcp.sql_instance.declared import (
    GROUP,
    check_instance,
    clone_source,
    declared_instance,
    instance_needs,
)
from setpoint.kinds.gcp.sql_instance.fitted import fitted_instance
from setpoint.kinds.gcp.sql_instance.live import Instance, read_instance
from setpoint.kinds.gcp.sql_instance.names import (
    clone_call,
    instance_call,
    instances_call,
    parts_of,
    project_in,
)
from setpoint.kinds.gcp.sql_instance.outputs import instance_outputs
from setpoint.kinds.gcp.sql_instance.spec import SqlInstanceTree
from setpoint.kinds.gcp.sql_instance.status import SqlInstanceStatus
from setpoint.kinds.gcp.sql_instance.users import remove_root, set_root_password
from setpoint.kinds.gcp.sql_instance.view import instance_view
from setpoint.kinds.taken_names import conflict_or_refusal

_VERSION: Final = Path(("spec", "databaseVersion"))
_PASSWORD: Final = Path(("spec", "rootPassword"))
_EDITION: Final = Path(("spec", "settings", "edition"))
_TIER: Final = Path(("spec", "settings", "tier"))
_MAINTENANCE: Final = Path(("spec", "maintenanceVersion"))
# The service takes each of these only by itself. The password goes to a user, and not to the instance.
_SENDING: Final = Sending(
    (
        Stage("root password", (_PASSWORD,)),
        Stage("database version", (_VERSION,)),
        Stage("edition", (_EDITION,)),
        Stage("maintenance version", (_MAINTENANCE,)),
    )
)
_WITH_FIRST_USERS: Final = replace(_SENDING, follow_up="first users")
_DEFINITION: Final = definition_for(
    "SQLInstance", SqlInstanceStatus, "An instance of Cloud SQL: a database server, a replica or a clone."
)


@dataclass(slots=True)
class SqlInstanceKind:
    """The kind."""

    google: GoogleClient
    group: str = GROUP
    version: str = "v1beta1"
    name: str = "SQLInstance"
    reconciliation: Reconciliation = Reconciliation.STATEFUL
    revision: int = 1
    writes_through_clients: ClassVar = True
    annotations: Sequence[str] = (PROJECT,)
    live_type: type[Instance] = Instance
    tree_type: type[Struct] = SqlInstanceTree
    definition: Definition = _DEFINITION

    def check(self, resource: Resource) -> None:
        """ManifestInvalid for a spec that no instance can have."""
        check_instance(resource)

    def needs(self, resource: Resource) -> Sequence[Need]:
        """What is named as a resource, and the secrets."""
        return instance_needs(resource)

    def locate(self, resource: Resource, resolved: Resolved) -> Location:
        """`projects/p/instances/i`."""
        return Location(f"projects/{project_of(resource)}/instances/{resource_id(resource)}")

    def declare(self, resource: Resource, resolved: Resolved) -> Tree:
        """The spec, and the labels to send."""
        return {"spec": declared_instance(resource, resolved), "metadata": {"labels": google_labels(resource)}}

    def view(self, live: Instance) -> Tree:
        """The live instance in the same terms; there are none for one that is still being made, or came to nothing."""
        return instance_view(live)

    def fitted(self, declared: Declared, live: Tree) -> Declared:
        """With what depends on the live instance."""
        return fitted_instance(declared, live)

    def abandons(self, resource: Resource) -> bool:
        """Never by its spec."""
        return False

    def sending(self, intent: Intent) -> Sending:
        """What the service takes only by itself, in the order in which it works; then everything else at once."""
        return _WITH_FIRST_USERS if _comes_with_root(intent) else _SENDING

    async def observe(self, location: Location, known: str | None = None) -> Absent | Present[Instance] | Unmoved:
        """A look."""
        body = await self.google.get(instance_call(location))
        if body is None:
            return Absent()
        mark = body_digest(body)
        if mark == known:
            return Unmoved()
        return _present(body, location, mark)

    async def create(self, intent: Intent, wanted: Tree) -> Operation | None:
        """Makes the instance, from nothing, as a replica or from another one."""
        project, _ = parts_of(intent.location)
        try:
            if intent.resource.spec.get("cloneSource") is not None:
                source = clone_source(intent.resource, intent.resolved)
                answer = await self.google.post(clone_call(project, source), clone_body(intent, wanted))
            else:
                answer = await self.google.post(instances_call(project), insert_body(intent, wanted))
        except RemoteConflict as error:
            raise await conflict_or_refusal(error, look_at(intent.location, self)) from error
        return to_wait_for(sql_operation(answer), project)

    async def update(self, intent: Intent, wanted: Tree, write: Write, before: Present[Instance]) -> Operation | None:
        """Sends one write of the plan."""
        project, _ = parts_of(intent.location)
        return to_wait_for(await self._send(intent, wanted, write, before), project)

    async def _send(self, intent: Intent, wanted: Tree, write: Write, before: Present[Instance]) -> SqlOperation | None:
        call = instance_call(intent.location)
        match write.name:
            case "first users":
                return await self._remove_root(intent.location, before.live)
            case "root password":
                return await self._set_password(intent, wanted, before.live)
            case "database version":
                body: Json = {"databaseVersion": _at(wanted, _VERSION)}
            case "edition":
                body = {"settings": _edition(wanted, before.live)}
            case "maintenance version":
                body = {"maintenanceVersion": _at(wanted, _MAINTENANCE)}
            case _:
                declared = fitted_instance(intent.declared, instance_view(before.live))
                if not before.live.others:
                    return sql_operation(await self.google.put(call, put_body(intent, declared, wanted, before)))
                # Sent whole, it would lose settings that the spec has no word for.
                body = patch_body(intent, declared, wanted, before)
        return sql_operation(await self.google.patch(call, body))

    async def _remove_root(self, location: Location, live: Instance) -> SqlOperation | None:
        is_mysql = (live.databaseVersion or "").startswith("MYSQL")
        # Without the label it is somebody else's who was faster.
        is_ours = MANAGED in (live.settings.userLabels or {})
        return await remove_root(location, self.google) if is_mysql and is_ours else None

    async def _set_password(self, intent: Intent, wanted: Tree, live: Instance) -> SqlOperation | None:
        password = get_at(wanted, _PASSWORD / "value")
        if live.masterInstanceName or not isinstance(password, str):
            # A replica has its primary's users; and one that is unmanaged is not ours to set.
            return None
        return await set_root_password(intent.location, live.databaseVersion or "", password, self.google)

    async def delete(self, location: Location, before: Present[Instance], resource: Resource) -> Operation | None:
        """Removes the instance."""
        body = await self.google.delete(instance_call(location))
        project, _ = parts_of(location)
        return None if body is None else to_wait_for(sql_operation(body), project)

    async def poll(self, operation: Operation) -> bool:
        """Whether it is done. One that is no longer on record is: the look that follows tells how it ended."""
        return await is_over(operation.name, self.google)

    def shelf_of(self, location: Location) -> Shelf | None:
        """The project."""
        project = project_in(location)
        return None if project is None else Shelf(project)

    def pages(self, shelf: Shelf) -> AsyncGenerator[Sequence[bytes], None]:
        """The instances of the project."""
        return pages_of(self.google, instances_call(shelf), f"the instances of project {shelf}")

    def location_of(self, item: bytes, shelf: Shelf) -> Location:
        """`projects/p/instances/i`."""
        return Location(f"projects/{shelf}/instances/{name_in(item, shelf)}")

    def read_item(self, item: bytes, location: Location) -> Present[Instance] | None:
        """The instance."""
        return _present(item, location)


def _present(body: bytes, location: Location, mark: str | None = None) -> Present[Instance]:
    found = read_instance(body, location)
    return Present(found.instance, mark, found.version, instance_outputs(found.aside))


def _comes_with_root(intent: Intent) -> bool:
    """Whether the service adds a user that nobody asked for. A clone has the users of its source."""
    version = get_at(intent.declared.tree, _VERSION)
    is_mysql = not isinstance(version, str) or version.startswith("MYSQL")
    return is_mysql and intent.resource.spec.get("cloneSource") is None


def _edition(wanted: Tree, live: Instance) -> Json:
    """The edition, and the tier with it if that changes: no tier is in both editions."""
    tier = _at(wanted, _TIER)
    changed = {} if tier == live.settings.tier else {"tier": tier}
    return {"edition": _at(wanted, _EDITION), **changed}


def _at(tree: Tree, path: Path) -> Json:
    found = get_at(tree, path)
    assert not isinstance(found, Missing), str(path)
    return found
