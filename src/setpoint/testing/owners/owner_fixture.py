"""The fixture of an owner for its contract: its manifest, and the fields of its children that other writers change."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path
from setpoint.engine.owner import Owner

# A manifest, or any other object of the store.
StoredDocument: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChildField:
    """A field of a child, and a value that is not generated: `ChildField("ConfigMap/door", "data.text", "Hi")`."""

    # The kind and the name of the child.
    key: str
    field: str
    value: Json

    @property
    def path(self) -> Path:
        """The path of the field in the child."""
        return Path.parse(self.field)


class OwnerPart(StrEnum):
    """What an owner may lack: then its fixture says why, and the claims about it are left out."""

    EDITABLE = "fields that other writers may edit"
    ENTRIES = "editable maps or lists"
    SOURCE = "objects that the children are generated from"
    READINESS = "a child that the readiness depends on"
    CREATE_ONLY = "a child that is created once"
    LABEL = "labels on the children"


# The member of the fixture that each part is about.
OWNER_PART_MEMBERS: Final[Mapping[OwnerPart, str]] = {
    OwnerPart.EDITABLE: "editable",
    OwnerPart.ENTRIES: "entries",
    OwnerPart.SOURCE: "source",
    OwnerPart.READINESS: "readiness_child",
    OwnerPart.CREATE_ONLY: "once",
    OwnerPart.LABEL: "label",
}
_NO_FIELD: Final = ChildField("", "", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerFixture:
    """One owner: `manifest` makes all of its children, out of `source` and of the other `objects`.

    A part that the owner lacks is named in `without`, with the reason.
    """

    owner: Owner
    manifest: StoredDocument
    # Another spec, as far as it differs: it changes a child, and none of the fields below.
    changed: Mapping[str, Any]
    # A field of a child that the owner manages.
    managed: ChildField
    # One that other writers may edit, with a value that they write.
    editable: ChildField = _NO_FIELD
    # The path of an editable map or list in the same child, of which the manifest makes an entry.
    entries: str = ""
    # An object without which there are not all of the children; the same with another content; and what follows it.
    source: StoredDocument = field(default_factory=dict)
    rotated: StoredDocument = field(default_factory=dict)
    followers: tuple[str, ...] = ()
    # Other objects that have to be there.
    objects: tuple[StoredDocument, ...] = ()
    # The child that the readiness depends on, and its status when it is ready.
    readiness_child: str = ""
    ready_status: Mapping[str, Any] = field(default_factory=dict)
    # The child that is created once.
    once: str = ""
    # A label that children have.
    label: str = ""
    # Whether edits are reported: where a child has fields of other writers beside those of the owner, they are not.
    reports_edits: bool = True
    without: Mapping[OwnerPart, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.owner.name

    @property
    def given(self) -> tuple[StoredDocument, ...]:
        """The objects that are there before the first step."""
        return (*self.objects, *([self.source] if self.source else []))

    def has(self, part: OwnerPart) -> bool:
        """Whether the fixture has the member of the part."""
        member = getattr(self, OWNER_PART_MEMBERS[part])
        return bool(member.key if isinstance(member, ChildField) else member)

    def problems(self) -> list[str]:
        """What its author forgot: a namespace; a part without a word, or one that it has and calls lacking."""
        silent = [part for part in OwnerPart if not self.has(part) and part not in self.without]
        contrary = [part for part in OwnerPart if self.has(part) and part in self.without]
        names = OWNER_PART_MEMBERS
        placeless = [one["kind"] for one in (self.manifest, *self.given) if not one["metadata"].get("namespace")]
        return [
            *(f"the {one} has no metadata.namespace: write one" for one in placeless),
            *(f"add `{names[one]}`, or OwnerPart.{one.name} to `without`, with the reason" for one in silent),
            *(f"it has `{names[one]}`: take OwnerPart.{one.name} out of `without`" for one in contrary),
        ]
