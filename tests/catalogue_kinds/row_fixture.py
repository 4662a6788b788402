"""One object of a row in the local cloud, and how it is disturbed."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import AnyKind, Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.kind import GoogleKind, is_absent
from setpoint.kinds.gcp.generic.requests import creation
from setpoint.localcloud.faults import AddFields
from setpoint.localcloud.google.collections import ApiPath, collection_of, parse_path
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.testing import (
    CallFault,
    Part,
)
from setpoint.testing.faults import EVERY_VERB, FOR_EVER
from tests.catalogue_kinds.in_process import URL, InProcessClient, RecordingCloud
from tests.kinds.lifecycle_google import GoogleFixture, injected_fault


class RowFixture(GoogleFixture):
    """An object of a row."""

    row: ClassVar[KindFacts]
    service: ClassVar[str]
    # The relative name of the object.
    location: ClassVar[str]
    secret: ClassVar[str] = ""
    is_number_as_text: ClassVar[bool] = False
    can_update: ClassVar[bool] = False
    many_steps = 100
    cloud: RecordingCloud  # type: ignore[assignment]

    async def set_up(self) -> None:
        self.cloud = RecordingCloud()
        self._make_containers()

    def _make_containers(self) -> None:
        """The objects of the same API that the object is in."""
        parts = self._key.split("/")[1:]
        for length in range(2, len(parts) - 1):
            if collection_of(self.service, ApiPath("", "", tuple(parts[:length]))) is not None:
                self.cloud.google.state.objects[f"{self.service}/{'/'.join(parts[:length])}"] = CatalogueObject({})

    # --- The client and the kind --------------------------------------------------------------------------------------

    def open_client(self) -> GoogleClient:
        return GoogleClient(InProcessClient(self.cloud), GoogleSettings(URL, URL, GoogleAuth.ANONYMOUS, base=URL))

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return GoogleKind.of(self.row, client)

    def lacks(self, part: Part) -> str | None:
        if part is Part.LIST:
            listed = self.row.methods.get("list")
            return None if listed is not None and listed.items else "the service has no list of whole objects"
        return super().lacks(part)

    # --- The service --------------------------------------------------------------------------------------------------

    @property
    def _key(self) -> str:
        parsed = parse_path(f"{self.row.prefix}{self.location}")
        assert parsed is not None
        return f"{self.service}/{parsed.name}"

    def live(self) -> dict[str, Any] | None:
        found = self.cloud.google.state.objects.get(self._key)
        return None if found is None else found.body

    def read(self, member: str) -> Json | Missing:
        found = super().read(member)
        # A number that the API has as text.
        is_number = member == self.field.member and self.is_number_as_text and isinstance(found, str)
        return int(found) if is_number and isinstance(found, str) else found

    def drift(self, member: str, value: Json) -> None:
        is_text = member == self.field.member and self.is_number_as_text
        super().drift(member, str(value) if is_text else value)

    def rewrite(self, member: str, value: Json) -> None:
        is_text = member == self.field.member and self.is_number_as_text
        super().rewrite(member, str(value) if is_text else value)

    def objects(self) -> list[str]:
        parent, length = self._key.rpartition("/")[0], self._key.count("/")
        found = self.cloud.google.state.objects
        ours = [one for one in found if one.startswith(f"{parent}/") and one.count("/") == length]
        return [one.rpartition("/")[2] for one in ours if not is_absent(self.row, found[one].body)]

    def delete_outside(self) -> None:
        del self.cloud.google.state.objects[self._key]

    def create_outside(self, value: Json) -> None:
        resource = Resource(self.manifest(self.spec(value)))
        assert isinstance(self.kind, GoogleKind)
        declared = self.kind.declare(resource, ResolvedReferences())
        request = creation(self.row, Location(self.location), declared, resource.spec)
        query = "&".join(f"{name}={one}" for name, one in request.call.query.items())
        suffix = f":{request.call.method}" if request.call.method else ""
        target = f"/{self.path.split('/')[1]}/{self.row.prefix}{'/'.join(request.call.parts)}{suffix}?{query}"
        assert isinstance(request.body, dict)
        answer = self.cloud.call(request.verb, target, request.body)
        assert answer.status == 200, answer
        self.finish()
        self.cloud.journal.clear()

    def add_field(self) -> None:
        self.cloud.inject(AddFields({"addedTomorrow": {"x": 1}}))

    def holds_secret(self, text: str) -> bool:
        sent = [get_at(one, Path.parse(self.secret)) for one in map(self._unwrapped, self.cloud.written)]
        return [one for one in sent if isinstance(one, str)][-1:] == [text]

    def _unwrapped(self, body: Any) -> Any:
        wrap = self.row.methods["create"].wrap
        return body[wrap] if wrap and wrap in body else body

    # --- Calls --------------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[str]:
        return [self._verb(entry.method, unquote(entry.path)) for entry in self.cloud.journal.entries]

    def _verb(self, method: str, path: str) -> str:
        for verb in EVERY_VERB:
            if re.fullmatch(_METHODS[verb], method) and re.search(self._pattern(verb), path):
                return verb
        raise AssertionError(f"{method} {path} is no request of {self.row.kind}")

    def _pattern(self, verb: str) -> str:
        """What the path of a request of the verb matches."""
        if verb in ("get", "delete"):
            return ""
        created = self.path if self.row.id.where == "url" else self.path.rpartition("/")[0]
        custom = self.row.methods["create"].path.partition(":")[2]
        if verb == "create":
            return _escaped(f"{created}:{custom}" if custom else created) + "$"
        return _escaped(self.path)

    def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        if tuple(verbs) == EVERY_VERB:
            self.cloud.inject(injected_fault(fault, ".*", times))
            return
        (verb,) = verbs
        method = self.row.methods["create"].verb if verb == "create" else _METHODS[verb]
        self.cloud.inject(injected_fault(fault, method, times, self._pattern(verb)))


def _escaped(path: str) -> str:
    return re.escape(path).replace("@", "(?:@|%40)")


_METHODS: Final = {"get": "GET", "delete": "DELETE", "create": "POST|PUT", "update": "PATCH|PUT|POST"}
