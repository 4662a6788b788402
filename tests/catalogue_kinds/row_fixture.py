"""One object of a row in the local cloud, and how it is disturbed."""

import base64
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from setpoint.catalogue.rows import KindFacts
from setpoint.clients.google.client import GoogleAuth, GoogleClient, GoogleSettings
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import AnyKind, Location, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.generic.creating.creations import creation
from setpoint.kinds.gcp.generic.kind import GoogleKind
from setpoint.kinds.gcp.generic.live_bodies import is_absent
from setpoint.localcloud.faults import AddFields
from setpoint.localcloud.google.collections import ApiPath, collection_of, parse_path
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.localcloud.routing import ServiceResponse
from setpoint.testing import (
    CallFault,
    Part,
    Spec,
)
from setpoint.testing.faults import EVERY_VERB, FOR_EVER
from tests.catalogue_kinds.in_process import URL, InProcessClient, RecordingCloud
from tests.catalogue_kinds.varied_fields import NO_FIELD
from tests.kinds.lifecycle_google import PROJECT, GoogleFixture, injected_fault


class RowFixture(GoogleFixture):
    """An object of a row."""

    row: ClassVar[KindFacts]
    service: ClassVar[str]
    # The relative name of the object.
    location: ClassVar[str]
    secret: ClassVar[str] = ""
    is_secret_in_base64: ClassVar[bool] = False
    is_number_as_text: ClassVar[bool] = False
    can_update: ClassVar[bool] = False
    many_steps = 100
    cloud: RecordingCloud  # type: ignore[assignment]

    async def set_up(self) -> None:
        self.cloud = self.new_cloud()
        self._make_containers()

    def new_cloud(self) -> RecordingCloud:
        """The local cloud of a new world."""
        return RecordingCloud()

    def _make_containers(self) -> None:
        """The objects of the same API that the object is in."""
        parts = self._named_key.split("/")[1:]
        if self.service == "storage":
            self.cloud.call("POST", f"/storage/v1/b?project={PROJECT}", {"name": parts[1]})
            self.cloud.journal.clear()
        for length in range(2, len(parts) - 1):
            if collection_of(self.service, ApiPath("", "", tuple(parts[:length]))) is not None:
                self.cloud.google.state.objects[f"{self.service}/{'/'.join(parts[:length])}"] = CatalogueObject({})

    # --- The client and the kind --------------------------------------------------------------------------------------

    def open_client(self) -> GoogleClient:
        return GoogleClient(InProcessClient(self.cloud), GoogleSettings(URL, URL, GoogleAuth.ANONYMOUS, base=URL))

    def new_kind(self, client: GoogleClient) -> AnyKind:
        return GoogleKind.of(self.row, client)

    def spec(self, value: Json) -> Spec:
        return dict(self.minimal) if self.field is NO_FIELD else super().spec(value)

    def lacks(self, part: Part) -> str | None:
        if part is Part.LIST:
            listed = self.row.methods.get("list")
            return None if listed is not None and listed.items else "the service has no list of whole objects"
        return super().lacks(part)

    # --- The service --------------------------------------------------------------------------------------------------

    @property
    def _named_key(self) -> str:
        """The key of `location` in the state of the local cloud."""
        parsed = parse_path(f"{self.row.prefix}{self.location}")
        assert parsed is not None
        return f"{self.service}/{parsed.name}"

    @property
    def _key(self) -> str:
        """The key of the object in the state of the local cloud."""
        return self._named_key

    def live(self) -> dict[str, Any] | None:
        found = self.cloud.google.state.objects.get(self._key)
        return None if found is None or is_absent(self.row, found.body) else found.body

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

    @classmethod
    def is_deletable(cls) -> bool:
        """Whether a deletion of the resource deletes the object."""
        return "delete" in cls.row.methods

    def objects(self) -> list[str]:
        parent, length = self._named_key.rpartition("/")[0], self._named_key.count("/")
        objects = self.cloud.google.state.objects
        found = [one for one in objects if one.startswith(f"{parent}/") and one.count("/") == length]
        return [one.rpartition("/")[2] for one in found if not is_absent(self.row, objects[one].body)]

    def delete_outside(self) -> None:
        del self.cloud.google.state.objects[self._key]

    def create_outside(self, value: Json) -> None:
        answer = self.send_creation(value)
        assert answer.status == HTTPStatus.OK, answer
        self.finish()
        self.cloud.journal.clear()

    def send_creation(self, value: Json) -> ServiceResponse:
        """Creates the object as another writer would."""
        resource = Resource(self.manifest(self.spec(value)))
        assert isinstance(self.kind, GoogleKind)
        declared = self.kind.declare(resource, ResolvedReferences())
        request = creation(self.row, Location(self.location), declared, resource.spec)
        query = "&".join(f"{name}={one}" for name, one in request.call.query.items())
        suffix = f":{request.call.method}" if request.call.method else ""
        target = f"/{self.path.split('/')[1]}/{self.row.prefix}{'/'.join(request.call.parts)}{suffix}?{query}"
        assert isinstance(request.body, dict)
        return self.cloud.call(request.verb, target, request.body)

    def add_field(self) -> None:
        self.cloud.inject(AddFields({"addedTomorrow": {"x": 1}}))

    def holds_secret(self, text: str) -> bool:
        sent = [get_at(one, Path.parse(self.secret)) for one in map(self._unwrapped, self.cloud.written)]
        given = base64.b64encode(text.encode()).decode() if self.is_secret_in_base64 else text
        return [one for one in sent if isinstance(one, str)][-1:] == [given]

    def _unwrapped(self, body: Any) -> Any:
        wrap = self.row.methods["create"].wrap
        return body[wrap] if wrap and wrap in body else body

    # --- Calls --------------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[str]:
        return [self._verb(entry.method, unquote(entry.path)) for entry in self.cloud.journal.entries]

    def _verb(self, method: str, path: str) -> str:
        for verb in ("get", "create", "delete", "update"):
            if re.fullmatch(self._method(verb), method) and re.search(self._pattern(verb), path):
                return verb
        raise AssertionError(f"{method} {path} is no request of {self.row.kind}")

    def _method(self, verb: str) -> str:
        """The HTTP methods of the requests of a verb."""
        method = self.row.methods.get(verb)
        return method.verb if verb in ("create", "delete") and method is not None else _METHODS[verb]

    def _pattern(self, verb: str) -> str:
        """What the path of a request of the verb matches."""
        custom = self.row.methods[verb].path.partition(":")[2] if verb in self.row.methods else ""
        match verb:
            case "get":
                return ""
            case "delete":
                return f"{escaped(f':{custom}')}$" if custom else ""
            case "create":
                created = self.path if self.row.id.where == "url" else self._collection
                others = "".join(f"|:{one}" for one in self.row.create_methods.values())
                return f"{escaped(f'{created}:{custom}' if custom else created)}(?:{others})$"
            case _:
                return self._update_pattern()

    def _update_pattern(self) -> str:
        # Older methods of Compute leave `global` out, and some updates have the id in the query.
        shorter = self.path.replace("/global/", "/", 1) if self.row.api == "compute" else self.path
        collection = f"{escaped(self._collection)}$" if self._is_updated_by_query else escaped(self.path)
        return f"{escaped(self.path)}|{escaped(shorter)}|{collection}"

    @property
    def _collection(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def _is_updated_by_query(self) -> bool:
        method = self.row.methods.get("patch") or self.row.methods.get("update")
        return method is not None and method.path == self.row.methods["create"].path

    def fail_next_calls(self, fault: CallFault, verbs: Sequence[str] = EVERY_VERB, times: int = FOR_EVER) -> None:
        if tuple(verbs) == EVERY_VERB:
            self.cloud.inject(injected_fault(fault, ".*", times))
            return
        (verb,) = verbs
        self.cloud.inject(injected_fault(fault, self._method(verb), times, self._pattern(verb)))


def escaped(path: str) -> str:
    return re.escape(path).replace("@", "(?:@|%40)")


_METHODS: Final = {"get": "GET", "create": "POST|PUT", "delete": "DELETE", "update": "PATCH|PUT|POST"}
