"""A resource: what an author declared, by group, kind, namespace and name, as a store keeps it."""

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Final, NamedTuple, NewType

from setpoint.core.conditions import Conditions, conditions_from_data
from setpoint.core.owner_references import controller_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.cached_property import cached_property
from setpoint.core.values.canonical import canonical, digest
from setpoint.core.values.canonical import sha256_hex as sha256_of
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject

# The kind of objects with secret values.
SECRET: Final[GroupKind] = ("", "Secret")
# The namespace of a resource that names none.
DEFAULT_NAMESPACE: Final = "default"
Revision = NewType("Revision", str)


@cache
def _encoded(words: tuple[str, ...]) -> tuple[tuple[bytes, bytes], ...]:
    """The first byte of each word, and all of them."""
    return tuple((word[:1].encode(), word.encode()) for word in words)


class ResourceRef(NamedTuple):
    """Which resource. Two versions of one API group are the same resource."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        """Its kind."""
        return self.group, self.kind

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Resource:
    """A resource at one revision. `document` has Kubernetes' members: apiVersion, kind, metadata, spec, status."""

    document: JsonObject
    # The canonical bytes of the author's part, if the store has them.
    written: bytes | None = field(default=None, repr=False, compare=False)

    @cached_property
    def author_digest(self) -> str:
        """The digest of what the author wrote: everything but metadata and status."""
        if self.written is not None:
            return sha256_of(self.written)
        return digest({name: value for name, value in self.document.items() if name not in ("metadata", "status")})

    def mentions(self, *words: str) -> bool:
        """Whether the author's part may contain one of these words; False only when it certainly does not."""
        written = self.written
        if written is None:
            return True
        for first, whole in _encoded(words):  # noqa: SIM110 - a generator takes a call more for each word
            # A single byte is found thirty times faster, and often settles it.
            if first in written and whole in written:
                return True
        return False

    def shows(self, word: str) -> bool:
        """Whether the word may be anywhere in the document; False only when it certainly is not."""
        return True

    @cached_property
    def ref(self) -> ResourceRef:
        """Which resource this is."""
        group, slash, _ = _text(self.document.get("apiVersion")).partition("/")
        metadata = self._metadata
        names = (_text(self.document.get("kind")), _text(metadata.get("namespace")), _text(metadata.get("name")))
        return ResourceRef(group if slash else "", *names)

    @property
    def uid(self) -> str:
        """Distinguishes this resource from an earlier one of the same name."""
        return _text(self._metadata.get("uid"))

    @property
    def revision(self) -> Revision:
        """The resource version: it changes with every write, of the status too. Only its equality has a meaning."""
        return Revision(_text(self._metadata.get("resourceVersion")))

    @property
    def created(self) -> str:
        """When it was created, as a timestamp; empty if that is not known."""
        return _text(self._metadata.get("creationTimestamp"))

    @property
    def generation(self) -> int:
        """How often the author's part has changed."""
        found = self._metadata.get("generation")
        return found if isinstance(found, int) else 0

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was requested; finalizers hold it until they are removed."""
        found = self._metadata.get("deletionTimestamp")
        return isinstance(found, str) and found != ""

    @property
    def finalizers(self) -> tuple[str, ...]:
        """The finalizers: each stands for a clean-up that has to be done before the resource is removed."""
        found = self._metadata.get("finalizers")
        return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The author's labels."""
        return _texts(self._metadata.get("labels"))

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        """The annotations: the author's, and those that the engine sets."""
        return _texts(self._metadata.get("annotations"))

    @cached_property
    def controller(self) -> ResourceRef | None:
        """The owner that controls it, if it is a child."""
        if "ownerReferences" not in self._metadata:
            return None
        found = controller_of({"metadata": self._metadata})
        return None if found is None else ResourceRef(*found)

    @property
    def spec(self) -> JsonObject:
        """What the author wrote; empty for kinds without one."""
        return _tree(self.document.get("spec"))

    @property
    def status(self) -> JsonObject:
        """What the engine reports; empty before the first step."""
        return _tree(self.document.get("status"))

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions in the status."""
        return conditions_from_data(self.status.get("conditions"))

    @property
    def status_hash(self) -> int:
        """A hash of the status, valid in this process only."""
        return hash(canonical(self.status) if self.status else b"")

    @cached_property
    def _metadata(self) -> JsonObject:
        return _tree(self.document.get("metadata"))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _tree(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _texts(value: Json) -> Mapping[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in pairs if isinstance(text, str)}
