"""Bodies against the members that an object may hold: types, required and immutable members, masks, defaults."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from msgspec import UNSET

from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json
from setpoint.localcloud import api_errors
from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.google.enum_numbers import number_name
from setpoint.localcloud.google.members import ApiMember, MemberType
from setpoint.localcloud.routing import STANDARD_PARAMETERS
from setpoint.localcloud.schema import JsonBody, NullMeaning

MaskPath: TypeAlias = tuple[str, ...]

# Google's front end accepts these with every method.
FRONT_END_PARAMETERS: Final = STANDARD_PARAMETERS | {"$alt", "$.xgafv", "access_token", "callback", "upload_protocol"}
_DURATION: Final = re.compile(r"-?\d{1,12}(\.\d{1,9})?s")
_WHOLE: Final = re.compile(r"-?\d{1,19}")
_SNAKE: Final = re.compile(r"_([a-z0-9])")
_REDACTED: Final = "[redacted]"


def camel(name: str) -> str:
    """A name as JSON has it; the protocol's form, with underscores, is accepted everywhere."""
    return _SNAKE.sub(lambda found: found[1].upper(), name)


def invalid_argument(message: str) -> CloudApiError:
    """For a request that the service understands and refuses."""
    return CloudApiError(400, "invalid", message, "INVALID_ARGUMENT")


# --- Types ------------------------------------------------------------------------------------------------------------


def validated(shape: ApiMember, body: object, nulls: NullMeaning = NullMeaning.ABSENT, at: str = "") -> JsonBody:
    """`body` as the service understands it, without output-only members; refuses unknown members and wrong types."""
    if not isinstance(body, dict):
        raise api_errors.wrong_value(at, "object", body) if at else api_errors.bad_json("The body is not an object.")
    valid: JsonBody = {}
    for sent, value in body.items():
        name, member = _known(shape, sent, at)
        if member.output_only or (value is None and nulls is NullMeaning.ABSENT):
            continue
        here = f"{at}.{name}" if at else name
        valid[name] = None if value is None else _value(member, value, nulls, here)
    return valid


def _known(shape: ApiMember, sent: str, at: str) -> tuple[str, ApiMember]:
    if not shape.members:
        return sent, ApiMember(MemberType.ANY)
    name = sent if sent in shape.members else camel(sent)
    member = shape.members.get(name)
    if member is None:
        raise api_errors.unknown_name(sent, at)
    return name, member


def _value(member: ApiMember, value: object, nulls: NullMeaning, at: str) -> object:
    match member.type:
        case MemberType.OBJECT:
            return validated(member, value, nulls, at)
        case MemberType.LIST:
            return _list(member, value, at)
        case MemberType.MAP:
            return _map(member, value, nulls, at)
        case MemberType.ENUM:
            return _enum(member, value, at)
        case MemberType.ANY:
            return value
        case _:
            return _scalar(member, value, at)


def _list(member: ApiMember, value: object, at: str) -> list[object]:
    if not isinstance(value, list):
        raise api_errors.wrong_value(at, MemberType.LIST, value)
    element = member.element or ApiMember(MemberType.ANY)
    # A list is replaced as a whole, so a null inside it removes nothing.
    return [_value(element, one, NullMeaning.ABSENT, f"{at}[{n}]") for n, one in enumerate(value)]


def _map(member: ApiMember, value: object, nulls: NullMeaning, at: str) -> JsonBody:
    if not isinstance(value, dict):
        raise api_errors.wrong_value(at, MemberType.MAP, value)
    element = member.element or ApiMember(MemberType.ANY)
    present = {name: one for name, one in value.items() if one is not None or nulls is NullMeaning.REMOVE}
    return {name: None if one is None else _value(element, one, nulls, f"{at}.{name}") for name, one in present.items()}


def _enum(member: ApiMember, value: object, at: str) -> object:
    if isinstance(value, str) and value in member.values:
        return value
    name = number_name(member.values, value) if isinstance(value, int) and not isinstance(value, bool) else None
    if name is not None:
        return name
    raise api_errors.wrong_value(at, MemberType.ENUM, value)


def _scalar(member: ApiMember, value: object, at: str) -> object:
    read = _read_scalar(member.type, value)
    if read is None:
        shown = _REDACTED if member.input_only else value
        raise api_errors.wrong_value(at, member.type, shown)
    return read


def _read_scalar(type_: MemberType, value: object) -> object | None:
    match type_:
        case MemberType.BOOL:
            return value if isinstance(value, bool) else None
        case MemberType.INTEGER | MemberType.INT64:
            return _integer(type_, value)
        case MemberType.NUMBER:
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case _:
            return value if isinstance(value, str) and _is_text_of(type_, value) else None


def _integer(type_: MemberType, value: object) -> int | str | None:
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if not _WHOLE.fullmatch(text) or abs(int(text)) >= 2**63:
        return None
    return str(int(text)) if type_ is MemberType.INT64 else int(text)


def _is_text_of(type_: MemberType, text: str) -> bool:
    match type_:
        case MemberType.DURATION:
            return _DURATION.fullmatch(text) is not None
        case MemberType.TIME:
            return _is_time(text)
        case MemberType.BYTES:
            return _is_base64(text)
        case _:
            return True


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


# --- What a request must and must not say -----------------------------------------------------------------------------


def require(shape: ApiMember, body: JsonBody, at: str = "") -> None:
    """Refuses a body in which a required member is missing, at any depth of what it has."""
    for name, member in shape.members.items():
        here = f"{at}.{name}" if at else name
        value = body.get(name)
        if member.required and (value is None or value == ""):
            raise invalid_argument(f"Required field '{here}' not specified.")
        if member.type is MemberType.OBJECT and isinstance(value, dict):
            require(member, value, here)
        elif member.element is not None and member.element.members:
            _require_elements(member.element, value, here)


def _require_elements(element: ApiMember, value: object, at: str) -> None:
    if isinstance(value, list):
        for number, one in enumerate(value):
            require(element, one, f"{at}[{number}]")
    elif isinstance(value, dict):
        for name, one in value.items():
            require(element, one, f"{at}.{name}")


def refuse_immutable_changes(shape: ApiMember, before: JsonBody, after: JsonBody, at: str = "") -> None:
    """Refuses a change of a member that is fixed when the object is created."""
    for name, member in shape.members.items():
        if member.output_only or member.input_only:
            continue
        here, old, new = f"{at}.{name}" if at else name, before.get(name), after.get(name)
        # One that was never sent has a default that the row may not know: it may be sent as it is.
        if member.immutable and old is not None and not same_reference(member, old, new):
            raise invalid_argument(f"Field '{here}' is immutable: it cannot be changed after creation.")
        if member.type is MemberType.OBJECT and isinstance(old, dict) and isinstance(new, dict):
            refuse_immutable_changes(member, old, new, here)


def same_reference(member: ApiMember, old: Json, new: Json) -> bool:
    """Whether two values are equal; two forms of a reference are, when one ends with the other."""
    if not (member.is_reference and isinstance(old, str) and isinstance(new, str)):
        return same(old, new)
    short, long = sorted((old, new), key=len)
    return long == short or long.endswith(f"/{short}")


def with_defaults(shape: ApiMember, body: JsonBody) -> JsonBody:
    """`body` with the service's defaults, in it and in the objects that it has."""
    filled = dict(body)
    for name, member in shape.members.items():
        value = filled.get(name)
        if name not in filled and member.default is not UNSET and not member.output_only:
            filled[name] = str(member.default) if member.type is MemberType.INT64 else member.default
        elif member.type is MemberType.OBJECT and isinstance(value, dict):
            filled[name] = with_defaults(member, value)
        elif member.type is MemberType.LIST and member.element is not None and isinstance(value, list):
            element = member.element
            filled[name] = [with_defaults(element, one) if isinstance(one, dict) else one for one in value]
    return filled


def returned(shape: ApiMember, body: JsonBody) -> JsonBody:
    """`body` without what the service takes in and never returns."""
    shown: JsonBody = {}
    for name, value in body.items():
        member = shape.members.get(name)
        if member is not None and member.input_only:
            continue
        nested = member is not None and member.type is MemberType.OBJECT and isinstance(value, dict)
        shown[name] = returned(member, value) if nested and member is not None else value
    return shown


# --- Masks ------------------------------------------------------------------------------------------------------------


def mask_paths(shape: ApiMember, text: str) -> list[MaskPath]:
    """The members that a mask names; refuses a path that the object does not have. `*` is all of them."""
    if text.strip() == "*":
        return [(name,) for name, member in shape.members.items() if not member.output_only]
    return [_mask_path(shape, one.strip()) for one in text.split(",") if one.strip()]


def _mask_path(shape: ApiMember, text: str) -> MaskPath:
    here, path = shape, []
    for step in text.split("."):
        if here.type is MemberType.MAP or (here.type in (MemberType.OBJECT, MemberType.ANY) and not here.members):
            path.append(step)
            here = here.element or ApiMember(MemberType.ANY)
            continue
        name = camel(step.strip("`"))
        if name not in here.members:
            raise invalid_argument(f"Invalid update mask path '{text}': the resource has no such field.")
        path.append(name)
        here = here.members[name]
    return tuple(path)


def masked(live: JsonBody, body: Mapping[str, object], paths: Sequence[MaskPath]) -> JsonBody:
    """`live` with every member of the mask as `body` has it; one that the body lacks is removed."""
    merged = dict(live)
    for path in paths:
        merged = _replaced(merged, body, path)
    return merged


def _replaced(live: JsonBody, body: Mapping[str, object], path: MaskPath) -> JsonBody:
    name, rest = path[0], path[1:]
    value = body.get(name)
    if rest:
        inner, below = live.get(name), value if isinstance(value, dict) else {}
        return {**live, name: _replaced(inner if isinstance(inner, dict) else {}, below, rest)}
    if value is None:
        return {key: one for key, one in live.items() if key != name}
    return {**live, name: value}
