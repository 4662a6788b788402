"""A resource: what someone asked for, by kind, namespace and name, as a store keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

from setpoint.core.paths import Path, get_at
from setpoint.core.values import Json

Tree = Mapping[str, Json]
Revision = NewType("Revision", str)


@dataclass(frozen=True, slots=True, order=True)
class ResourceRef:
    """Which resource. Two versions of one API group are the same resource."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Resource:
    """One state of a resource. `document` has Kubernetes' members: apiVersion, kind, metadata, spec, status."""

    document: Tree

    @property
    def ref(self) -> ResourceRef:
        """Which resource this is."""
        group, slash, _ = self._text("apiVersion").partition("/")
        names = (self._text("kind"), self._text("metadata", "namespace"), self._text("metadata", "name"))
        return ResourceRef(group if slash else "", *names)

    @property
    def uid(self) -> str:
        """Tells this resource from an earlier one of the same name."""
        return self._text("metadata", "uid")

    @property
    def revision(self) -> Revision:
        """Which state this is: it moves with every change, of the status too. Nothing but equality means anything."""
        return Revision(self._text("metadata", "resourceVersion"))

    @property
    def generation(self) -> int:
        """How often the author's part has changed."""
        found = get_at(self.document, Path(("metadata", "generation")))
        return found if isinstance(found, int) else 0

    @property
    def is_deleting(self) -> bool:
        """Whether somebody asked for its deletion; finalizers hold it until they are gone."""
        return bool(self._text("metadata", "deletionTimestamp"))

    @property
    def finalizers(self) -> tuple[str, ...]:
        """Who has to clean up before it may go."""
        found = get_at(self.document, Path(("metadata", "finalizers")))
        return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()

    @property
    def labels(self) -> Mapping[str, str]:
        """The author's labels."""
        return self._texts("labels")

    @property
    def annotations(self) -> Mapping[str, str]:
        """The author's annotations, and those that the engine was told to keep there."""
        return self._texts("annotations")

    @property
    def spec(self) -> Tree:
        """What the author wrote; empty for kinds without one."""
        return self._tree("spec")

    @property
    def status(self) -> Tree:
        """What the engine found out; empty before its first look."""
        return self._tree("status")

    def _text(self, *names: str) -> str:
        found = get_at(self.document, Path(names))
        return found if isinstance(found, str) else ""

    def _texts(self, name: str) -> Mapping[str, str]:
        found = get_at(self.document, Path(("metadata", name)))
        pairs = found.items() if isinstance(found, dict) else ()
        return {key: value for key, value in pairs if isinstance(value, str)}

    def _tree(self, name: str) -> Tree:
        found = self.document.get(name)
        return found if isinstance(found, dict) else {}
