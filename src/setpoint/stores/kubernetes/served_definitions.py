"""The definitions that a cluster serves for our kinds: whether they have every status field that the engine relies on.

An API server drops each field that a definition does not have. One that is older than this process would drop what the
engine has to find again: which object it made. The definitions are read from the OpenAPI documents, which every account
may read; a status that comes back without what was written shows it as well.
"""

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from setpoint.clients.kubernetes.client import KubernetesClient
from setpoint.clients.response_bodies import decode_response
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.json_limits import MAX_LIST_VALUES
from setpoint.core.values.json_types import JsonObject
from setpoint.engine.ports import Clock, outdated_definition
from setpoint.engine.resource import ResourceRef
from setpoint.engine.state import ENGINE_STATE
from setpoint.errors import RemoteError, StoreError
from setpoint.stores.kubernetes.served_kinds import ServedKind

_log: Final = logging.getLogger(__name__)
_ROOT: Final = "/openapi/v3"
_ACCEPT: Final = {"Accept": "application/json"}
# How often the definitions are read: while one is outdated, and otherwise.
_OUTDATED_SECONDS: Final = 5.0
_CURRENT_SECONDS: Final = 30.0


class _Document(msgspec.Struct, rename={"address": "serverRelativeURL"}):
    address: str


class _Documents(msgspec.Struct):
    """The documents by version, such as `apis/GROUP/VERSION`. The address changes with the content."""

    paths: dict[str, _Document] = {}


class _Node(msgspec.Struct, rename={"is_open": "x-kubernetes-preserve-unknown-fields"}):
    properties: dict[str, "_Node"] = {}
    is_open: bool = False


class _KindName(msgspec.Struct):
    group: str = ""
    kind: str = ""
    version: str = ""


class _Schema(
    _Node, rename={"names": "x-kubernetes-group-version-kind", "is_open": "x-kubernetes-preserve-unknown-fields"}
):
    names: list[_KindName] = []


class _Components(msgspec.Struct):
    schemas: dict[str, _Schema] = {}


class _OpenApi(msgspec.Struct):
    components: _Components = msgspec.field(default_factory=_Components)


_documents, _open_api = msgspec.json.Decoder(_Documents), msgspec.json.Decoder(_OpenApi)


class ServedDefinitions:
    """The definitions of these kinds, as they were last read; each that becomes outdated, or current, is logged."""

    def __init__(
        self,
        client: KubernetesClient,
        kinds: Iterable[ServedKind],
        clock: Clock,
        unhandled: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        self._client = client
        # By apiVersion, the kinds that a process would handle if the cluster served them when it starts.
        self._unhandled = {version: set(names) for version, names in unhandled.items()}
        self._clock = clock
        self._kinds = tuple(kind for kind in kinds if kind.status_fields)
        self._outdated: dict[GroupKind, tuple[str, ...]] = {}
        # The resources whose record was dropped in a write, while their definition is outdated.
        self._dropped: set[ResourceRef] = set()
        # The address of the document that was read last, by apiVersion.
        self._read: dict[str, str] = {}
        # Why they could not be read the last time, if they could not.
        self._unread = ""

    @property
    def outdated(self) -> Mapping[GroupKind, tuple[str, ...]]:
        """See DefinitionSource."""
        return self._outdated

    def is_record_dropped(self, ref: ResourceRef) -> bool:
        """See DefinitionSource."""
        return ref in self._dropped

    async def changes(self) -> AsyncIterator[frozenset[GroupKind]]:
        """See DefinitionSource."""
        while True:
            await self._clock.sleep(_OUTDATED_SECONDS if self._outdated else _CURRENT_SECONDS)
            changed = await self.refresh()
            if changed:
                yield changed

    async def refresh(self) -> frozenset[GroupKind]:
        """The kinds whose definition has become outdated, or current, since they were last read.

        A cluster that does not answer, or has no such documents, changes nothing: then only a write can show it.
        """
        before = dict(self._outdated)
        try:
            response = await self._client.read(_ROOT, _ACCEPT)
            found = decode_response(_documents, response.body, f"GET {_ROOT}", MAX_LIST_VALUES).paths
            for api_version in sorted({*(kind.api_version for kind in self._kinds), *self._unhandled}):
                await self._refresh_version(api_version, found.get(f"apis/{api_version}"))
        except RemoteError as error:
            if str(error) != self._unread:
                _log.warning("definitions not read", extra={"why": str(error)})
            self._unread = str(error)
        changed = {name for name in {*before, *self._outdated} if before.get(name) != self._outdated.get(name)}
        return frozenset(changed)

    def require_kept(self, kind: ServedKind, ref: ResourceRef, written: JsonObject, found: JsonObject) -> None:
        """StoreError when a status came back without the record that was written; the next step reports it."""
        if ENGINE_STATE not in written or ENGINE_STATE in found:
            return
        self._dropped.add(ref)
        if kind.name in self._outdated:
            return
        # The document may be of before: it is read again.
        self._read.pop(kind.api_version, None)
        self._set(kind, (ENGINE_STATE,))
        raise StoreError(outdated_definition(kind.name, (ENGINE_STATE,)))

    async def _refresh_version(self, api_version: str, document: _Document | None) -> None:
        kinds = [kind for kind in self._kinds if kind.api_version == api_version]
        if document is None:
            # It is not served, or not yet.
            self._read.pop(api_version, None)
            return
        # The server is not trusted to name no other path.
        if document.address == self._read.get(api_version) or not document.address.startswith(f"{_ROOT}/"):
            return
        response = await self._client.read(document.address, _ACCEPT)
        what = f"GET {document.address}"
        schemas = decode_response(_open_api, response.body, what, MAX_LIST_VALUES).components.schemas.values()
        self._read[api_version] = document.address
        for kind in kinds:
            self._set(kind, _missing_fields(kind, list(schemas)))
        self._report_unhandled(api_version, {it.kind for one in schemas for it in one.names})

    def _report_unhandled(self, api_version: str, served: set[str]) -> None:
        """Logs each kind once that has come to be served."""
        late = self._unhandled.get(api_version, set()) & served
        for kind in sorted(late):
            why = "its definition was installed after this process started: restart the process to handle it"
            _log.warning("kind not handled", extra={"kind": kind, "why": why})
        if late:
            self._unhandled[api_version] -= late

    def _set(self, kind: ServedKind, missing: tuple[str, ...]) -> None:
        if missing and self._outdated.get(kind.name) != missing:
            _log.warning(
                "definition outdated", extra={"kind": kind.kind, "why": outdated_definition(kind.name, missing)}
            )
            self._outdated[kind.name] = missing
        elif not missing and self._outdated.pop(kind.name, None) is not None:
            self._dropped = {ref for ref in self._dropped if ref.group_kind != kind.name}
            _log.info("definition updated", extra={"kind": kind.kind})


def _missing_fields(kind: ServedKind, schemas: Sequence[_Schema]) -> tuple[str, ...]:
    """The status fields of a kind that its schema lacks; none where there is no schema of it, which says nothing."""
    name = (kind.group, kind.version, kind.kind)
    found = next((one for one in schemas for it in one.names if (it.group, it.version, it.kind) == name), None)
    if found is None or found.is_open:
        return ()
    status = found.properties.get("status", _Node())
    if status.is_open:
        return ()
    return tuple(field for field in kind.status_fields if field not in status.properties)
