"""Every collection of the catalogue, on one contract: create, get, list, change, stale etag, delete, gone."""

from typing import Any, Final

import pytest

from setpoint.localcloud.cloud import Cloud
from setpoint.localcloud.google.collections import ApiCollection
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.google.operations import CatalogueObject
from tests.localcloud.catalogue_bodies import all_collections, creation, minimal, object_name, url, value_of
from tests.localcloud.requests import OPERATION_SECONDS, gone, held_cloud, ok

COLLECTIONS: Final = all_collections()
# With tests of their own: what is below buckets, which the hand-written part has, and what only one service has.
_APART: Final = frozenset(
    {"DNSRecordSet", "SecretManagerSecretVersion", "Service", "ServiceNetworkingConnection", "SpannerDatabase"}
)
CREATED: Final = [
    one for one in COLLECTIONS if "create" in one.methods and one.api != "storage" and one.kinds[0] not in _APART
]


def _changeable(collection: ApiCollection) -> str | None:
    """A member that a change may set, plain where there is one."""
    plain = (MemberType.TEXT, MemberType.BOOL, MemberType.INTEGER, MemberType.MAP, MemberType.ENUM, MemberType.OBJECT)
    found = [
        name
        for type_ in plain
        for name, member in collection.shape.members.items()
        if member.type is type_ and _may_change(member) and name != "name" and _is_sent(collection, name)
    ]
    return next(iter(found), None)


def _is_sent(collection: ApiCollection, member: str) -> bool:
    method = collection.methods.get("patch") or collection.methods["update"]
    return not method.sends_as or member in method.sends_as


def _may_change(member: ApiMember) -> bool:
    fixed = member.immutable or member.output_only or member.input_only or member.is_reference
    return not fixed and not any(not _may_change(one) for one in member.members.values())


# Those of which a member can change, with that member.
CHANGED: Final = [
    (one, member)
    for one in CREATED
    if "patch" in one.methods or "update" in one.methods
    for member in [_changeable(one)]
    if member is not None
]


def _id(collection: ApiCollection) -> str:
    return collection.kinds[0]


class _Session:
    """A cloud with the containers of one object, and the object's name once it is created."""

    def __init__(self, collection: ApiCollection) -> None:
        self.collection = collection
        self.cloud: Cloud = held_cloud()
        self.wanted = object_name(collection)
        parts = self.wanted.split("/")
        self.containers = {f"{collection.api}/{'/'.join(parts[:end])}" for end in range(1, len(parts))}
        self.cloud.google.state.objects.update({key: CatalogueObject({}) for key in self.containers})

    def create(self) -> str:
        answer = ok(self.cloud.call(*creation(self.collection, self.wanted)))
        self.finish(answer, "create")
        made = set(self.cloud.google.state.objects) - self.containers
        # Without what the service makes in it: the first node pool of a cluster.
        (key,) = (one for one in made if one.rpartition("/")[0].rpartition("/")[0] not in made)
        return key.partition("/")[2]

    def finish(self, answer: dict[str, Any], verb: str) -> None:
        """Waits until the operation in a response is done, where the row says that there is one."""
        style = self.collection.row.operations.get(verb)
        if style is None:
            return
        assert not _is_done(answer), "an operation takes its time"
        self.cloud.advance(OPERATION_SECONDS)
        (operation,) = [one for one in self.cloud.google.state.operations.values() if one.verb == verb]
        assert _is_done(ok(self.cloud.call("GET", url(self.collection, operation.name))))

    def send(self, method: str, name: str, body: dict[str, Any] | None = None, query: str = "") -> Any:
        return self.cloud.call(method, url(self.collection, name) + query, body)


def _is_done(operation: dict[str, Any]) -> bool:
    return operation.get("done") is True or str(operation.get("status")).upper() == "DONE"


@pytest.mark.parametrize("collection", CREATED, ids=_id)
def test_what_is_created_is_there_until_it_is_deleted(collection: ApiCollection) -> None:
    session = _Session(collection)
    name = session.create()
    parent = name.rpartition("/")[0]

    again = session.cloud.call(*creation(collection, session.wanted))
    if collection.row.id.where != "service":
        assert again.status in (409, 400)
    if "get" in collection.methods:
        shown, own = ok(session.send("GET", name)), name.rpartition("/")[2]
        # A project has a name of its own beside its id.
        assert shown.get("projectId" if collection.kinds == ("Project",) else "name", own) in (name, own)
    if "list" in collection.methods and "parent" not in collection.methods["list"].query:
        assert collection.list_key in ok(session.send("GET", parent))
    if "delete" in collection.methods and collection.methods["delete"].path.endswith("}"):
        session.finish(gone(session.send("DELETE", name)), "delete")
        if collection.row.absent:
            # It is kept for a time, and says so.
            shown = ok(session.send("GET", name))
            assert session.send("DELETE", name).status == 400
            assert any(shown[member] in states for member, states in collection.row.absent.items())
        else:
            assert session.send("DELETE", name).status == 404
            assert session.send("GET", name).status == 404


@pytest.mark.parametrize("collection", CREATED, ids=_id)
def test_unknown_members_and_parameters_are_refused(collection: ApiCollection) -> None:
    session = _Session(collection)
    method, target, body = creation(collection, session.wanted)
    wrap = collection.methods["create"].wrap
    unknown = {"noSuchMember": 1}
    sent = {**body, wrap: {**body[wrap], **unknown}} if wrap else {**body, **unknown}

    refusal = session.cloud.call(method, target, sent)
    parameter = session.cloud.call(method, f"{target}{'&' if '?' in target else '?'}noSuchParameter=1", body)

    assert (refusal.status, parameter.status) == (400, 400)
    assert refusal.body is not None
    assert 'Unknown name "noSuchMember"' in refusal.body["error"]["message"]


@pytest.mark.parametrize(("collection", "member"), CHANGED, ids=[_id(one) for one, _ in CHANGED])
def test_a_change_is_there_afterwards_and_a_stale_one_is_refused(collection: ApiCollection, member: str) -> None:
    session = _Session(collection)
    name = session.create()
    value = value_of(collection.shape.members[member])
    verb, target, query, body = _change(collection, name, {member: value})

    session.finish(ok(session.cloud.call(verb, url(collection, target) + query, body)), "update")

    assert session.cloud.google.state.objects[f"{collection.api}/{name}"].body[member] == value
    live = session.cloud.google.state.objects[f"{collection.api}/{name}"].body
    if "etag" in live or "fingerprint" in live:
        stale = {"etag": "c3RhbGU="} if "etag" in live else {"fingerprint": "c3RhbGU="}
        _, _, _, outdated = _change(collection, name, {member: value, **stale}, mask=member)
        assert session.cloud.call(verb, url(collection, target) + query, outdated).status in (409, 412)


def _change(
    collection: ApiCollection, name: str, members: dict[str, Any], mask: str = ""
) -> tuple[str, str, str, dict[str, Any]]:
    method = collection.methods.get("patch") or collection.methods["update"]
    mask = mask or ",".join(members)
    if method.sends_as:
        request = {method.sends_as[one]: value for one, value in members.items()}
        return method.verb, name, "", {method.wrap: request} if method.wrap else request
    # A PATCH that replaces the object needs the whole of it, too.
    if method.verb == "PUT" or collection.row.update_style in ("put", "patch-whole"):
        members = {**minimal(collection.shape), **members}
    if method.mask:
        return method.verb, name, "", {method.wrap: members, method.mask: mask}
    query = next((f"?{one}={mask}" for one in ("updateMask", "fieldMask") if one in method.query), "")
    if not method.path.endswith("}"):
        parent, _, own = name.rpartition("/")
        return method.verb, parent, query, {"name": own, **members}
    return method.verb, name, query, members
