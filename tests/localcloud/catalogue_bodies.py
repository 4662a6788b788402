"""Bodies for objects of the catalogue, made from what each collection accepts."""

import re
from typing import Any, Final

from setpoint.catalogue.index import kinds_by_group
from setpoint.localcloud.google.collections import ApiCollection, collections_of, parse_path
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.schema import with_member

_VALUES: Final[dict[MemberType, Any]] = {
    MemberType.TEXT: "text",
    MemberType.BOOL: True,
    MemberType.INTEGER: 3,
    MemberType.INT64: "30",
    MemberType.NUMBER: 0.5,
    MemberType.BYTES: "dGV4dA==",
    MemberType.DURATION: "600s",
    MemberType.TIME: "2026-01-01T00:00:00Z",
    MemberType.ANY: "anything",
    MemberType.MAP: {},
    MemberType.LIST: [],
}


def all_collections() -> list[ApiCollection]:
    """Every collection that the local cloud serves."""
    services = sorted(set(kinds_by_group().values()) - {"sqladmin"})
    return [one for service in services for one in collections_of(service)]


def minimal(shape: ApiMember) -> dict[str, Any]:
    """An object with its required members alone."""
    return {name: value_of(one) for name, one in shape.members.items() if one.required and not one.output_only}


def value_of(member: ApiMember) -> Any:
    """A valid value."""
    if member.type is MemberType.ENUM:
        return member.values[-1]
    if member.type is MemberType.OBJECT:
        return minimal(member) if member.members else {"free": "text"}
    if member.type is MemberType.LIST and member.element is not None:
        return [value_of(member.element)]
    return _VALUES[member.type]


def object_name(collection: ApiCollection) -> str:
    """The relative name of an object of the collection."""
    pattern = collection.row.id_pattern
    id_ = "some-one" if not pattern or re.fullmatch(pattern, "some-one") else "someone"
    parts = [part if part is not None else f"p{n}" for n, part in enumerate(collection.templates[0])]
    return "/".join([*parts[:-1], id_])


def url(collection: ApiCollection, name: str) -> str:
    """The path of an object or a collection at the local cloud."""
    parsed = parse_path(next(iter(collection.methods.values())).path)
    assert parsed is not None
    prefix = f"{parsed.prefix}/{parsed.version}" if parsed.prefix else parsed.version
    return f"/{collection.host}/{prefix}/{name}"


def creation(collection: ApiCollection, name: str) -> tuple[str, str, dict[str, Any]]:
    """The verb, the target and the body that create an object."""
    method, id_ = collection.methods["create"], collection.row.id
    parent, _, own = name.rpartition("/")
    own = own.partition("@")[0]
    body, beside = minimal(collection.shape), dict[str, Any]()
    query = ""
    if id_.where == "query":
        query = f"?{id_.name}={own}"
    elif id_.where == "body" and method.wrap and id_.name not in ("name",):
        beside = {id_.name: own}
    elif id_.where == "body":
        body = with_member(body, id_.name, own)
    content = {method.wrap: body, **beside} if method.wrap else body
    suffix = ":" + method.path.rpartition(":")[2] if ":" in method.path else ""
    target = name if id_.where == "url" else parent + suffix
    return method.verb, url(collection, target) + query, content
