"""References and secrets of a spec: what it depends on, and the text that is sent for each."""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from setpoint.catalogue.parts import BESIDE
from setpoint.catalogue.rows import FieldFacts, ReferenceFacts
from setpoint.core.values.paths import Path, get_at
from setpoint.engine.kind import Dependency, Reference, SecretKeyReference
from setpoint.engine.resource import SECRET, Resource, ResourceRef
from setpoint.errors import OutputMissing
from setpoint.kind.typed_spec import field_invalid
from setpoint.kinds.gcp.generic.equivalence import relative_name
from setpoint.kinds.gcp.generic.members import member_path
from setpoint.kinds.gcp.generic.placement import (
    PlacedResource,
    full_name,
    id_of,
    name_in,
    own_id,
    recorded_location,
)
from setpoint.kinds.gcp.generic.shared_members import with_texts
from setpoint.kinds.gcp.generic.spec_types import choices_of, group_of, is_choice

_COMPUTE: Final = "https://www.googleapis.com/compute/v1/"
_COMPUTE_GROUP: Final = "compute.cnrm.cloud.google.com"
_PROJECT: Final = re.compile(r"projects/([^/]+)/")
_ACCOUNT: Final = re.compile(r"(?:serviceAccount:|projects/[^/]+/serviceAccounts/)([^@/]+@[^@/]+)")
_SHORT_IMAGE: Final = re.compile(r"((?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9])/([a-z0-9-]+)")
_DATED: Final = re.compile(r"-v?[0-9]{8}[a-z0-9-]*$")


# --- What a spec depends on -------------------------------------------------------------------------------------------


def dependencies_in(fields: Mapping[str, FieldFacts], resource: Resource) -> tuple[Dependency, ...]:
    """The references and Secrets in the spec. ManifestInvalid for one that is incomplete."""
    return tuple(_in_object(resource.spec, fields, Path(("spec",)), resource))


def _in_object(
    value: Mapping[str, Any], fields: Mapping[str, FieldFacts], at: Path, resource: Resource
) -> Iterator[Dependency]:
    for name, one in value.items():
        facts = fields.get(name)
        if facts is None or one is None:
            continue
        if facts.type == "list" and isinstance(one, list):
            for position, item in enumerate(one):
                yield from _in_value(item, facts, at / name / position, resource)
        else:
            yield from _in_value(one, facts, at / name, resource)


def _in_value(value: Any, facts: FieldFacts, at: Path, resource: Resource) -> Iterator[Dependency]:  # noqa: ANN401
    if not isinstance(value, Mapping):
        return
    if facts.secret:
        yield from _secret(value, at, resource)
    elif facts.one_of_refs:
        yield from _in_object(value, choices_of(facts), at, resource)
    elif facts.ref is not None:
        yield from _reference(value, facts.ref, at, resource)
    elif facts.fields:
        yield from _in_object(value, facts.fields, at, resource)


def _secret(value: Mapping[str, Any], at: Path, resource: Resource) -> Iterator[Dependency]:
    source = get_at(value, Path(("valueFrom", "secretKeyRef")))
    if isinstance(source, Mapping) == isinstance(value.get("value"), str):
        raise field_invalid(resource, str(at), " needs value or valueFrom, and not both: write one of them")
    if isinstance(source, Mapping):
        ref = ResourceRef(*SECRET, resource.ref.namespace, str(source.get("name")))
        yield SecretKeyReference(str(at), ref, str(source.get("key")))


def _reference(value: Mapping[str, Any], ref: ReferenceFacts, at: Path, resource: Resource) -> Iterator[Dependency]:
    name, external = value.get("name"), value.get("external")
    if bool(name) == bool(external):
        raise field_invalid(resource, str(at), " needs name or external, and not both: write one of them")
    if name:
        kind = str(value.get("kind") or (ref.kinds[0] if ref.kinds else ""))
        namespace = str(value.get("namespace") or resource.ref.namespace)
        yield Reference(str(at), ResourceRef(group_of(kind), kind, namespace, str(name)))


# --- What is sent -----------------------------------------------------------------------------------------------------


def resolved_fields(
    value: Mapping[str, Any], fields: Mapping[str, FieldFacts], at: Path, placed: PlacedResource
) -> dict[str, Any]:
    """The members of the object in a spec, with the text of each reference and the value of each Secret."""
    found: dict[str, Any] = {}
    for name, one in value.items():
        facts = fields.get(name)
        if facts is None or not (member_path(name, facts) or facts.to == BESIDE):
            continue
        if facts.type == "list" and isinstance(one, list):
            found[name] = _resolved_list(one, facts, at / name, placed)
        else:
            found[name] = _resolved(one, facts, at / name, placed)
            if facts.encoded_by and value.get(facts.encoded_by) is True:
                _require_base64(found[name], at / name, placed)
    return with_texts(found, fields)


def _require_base64(secret: Mapping[str, Any], at: Path, placed: PlacedResource) -> None:
    try:
        b64decode(str(secret.get("value")), validate=True)
    except ValueError as error:
        problem = " is not in base64, and the spec says that it is: encode it, or say that it is not"
        raise field_invalid(placed.resource, str(at), problem) from error


def with_parameters(
    spec: Mapping[str, Any], fields: Mapping[str, FieldFacts], placed: PlacedResource
) -> dict[str, Any]:
    """The spec with the text of each reference that is a parameter of a query."""
    found = dict(spec)
    for name, facts in fields.items():
        if facts.query and facts.ref is not None and isinstance(spec.get(name), Mapping):
            found[name] = _text(spec[name], facts.ref, Path(("spec", name)), placed)
    return found


def _resolved_list(value: list[Any], facts: FieldFacts, at: Path, placed: PlacedResource) -> list[Any]:
    found = [_resolved(one, facts, at / place, placed) for place, one in enumerate(value)]
    own = placed.zone() if facts.with_zone and found else ""
    return [own, *found] if own and own not in found else found


def _resolved(value: Any, facts: FieldFacts, at: Path, placed: PlacedResource) -> Any:  # noqa: ANN401 - JSON
    if facts.prefix and isinstance(value, str) and value and "/" not in value:
        return placed.filled(facts.prefix) + value
    if not isinstance(value, Mapping):
        return value
    if facts.secret:
        return {"value": placed.resolved.secrets.get(str(at), value.get("value"))}
    if is_choice(facts):
        return {
            name: _resolved(one, its, at / name, placed)
            for name, one in value.items()
            if (its := choices_of(facts).get(name)) is not None
        }
    if facts.ref is not None:
        return {"external": _text(value, facts.ref, at, placed)}
    return resolved_fields(value, facts.fields, at, placed) if facts.fields else value


def _text(value: Mapping[str, Any], ref: ReferenceFacts, at: Path, placed: PlacedResource) -> str:
    target = placed.resolved.resources.get(str(at))
    if target is not None:
        return ref.prefix + _text_of(target, ref)
    kinds = [str(value["kind"])] if value.get("kind") else ref.kinds
    external = _external_text(str(value.get("external") or "").removeprefix(ref.prefix), ref, kinds, placed)
    return external if not ref.prefix or "//" in external else ref.prefix + external


def _external_text(text: str, ref: ReferenceFacts, kinds: Sequence[str], placed: PlacedResource) -> str:
    """An external reference in the form that the field has; one that no rule knows, as the author wrote it."""
    kind = kinds[0] if kinds else ""
    if kind == "Project":
        own = relative_name(text).removeprefix("projects/")
        return text if "/" in own else own if ref.form == "id" else f"projects/{own}"
    if ref.form == "email":
        return _account(text)
    name = next((found for one in kinds if (found := name_in(one, text))), "")
    match ref.form:
        case "name" if name and text.startswith(_COMPUTE):
            # What Compute Engine itself returns: it is taken, and read back, as the author wrote it.
            return text
        case "name" | "link":
            full = name or full_name(kind, _image_name(text) if kind == "ComputeImage" else text, placed)
            is_compute = full.startswith("projects/") and group_of(kind) == _COMPUTE_GROUP
            return f"{_COMPUTE}{full}" if ref.form == "link" and is_compute else full
        case "id":
            return own_id(kind, name, placed) if name else text
        case "dotted":
            return _dotted(name) if name else text
        case "version":
            return (name or text).rpartition("/")[2]
        case _:
            return _bare(text, placed) if ref.form == "bare" else text


def _bare(text: str, placed: PlacedResource) -> str:
    """The id alone. A tenant's reference to another project is left whole: whether it is shared is seen by that."""
    name = relative_name(text)
    found = _PROJECT.match(name)
    is_foreign = found is not None and placed.projects.tenant is not None and found[1] != placed.project().project
    return text if is_foreign else name.rpartition("/")[2]


def _account(text: str) -> str:
    """The e-mail of a service account that is given by its name, or as a member of a policy."""
    found = _ACCOUNT.fullmatch(relative_name(text))
    return found[1] if found else text


def _dotted(name: str) -> str:
    return ".".join(name.split("/")[1::2])


def _image_name(text: str) -> str:
    """The name of an image that is given as `PROJECT/FAMILY` or `PROJECT/IMAGE`: an image has a date at its end."""
    found = _SHORT_IMAGE.fullmatch(text)
    if found is None:
        return text
    family = "" if _DATED.search(found[2]) else "family/"
    return f"projects/{found[1]}/global/images/{family}{found[2]}"


def _text_of(target: Resource, ref: ReferenceFacts) -> str:
    """What is sent for a resource, in the form that the field has."""
    match ref.form:
        case "id" | "bare":
            return id_of(target)
        case "name":
            return recorded_location(target)
        case "link":
            location = recorded_location(target)
            return f"{_COMPUTE}{location}" if target.ref.group == _COMPUTE_GROUP else location
        case "dotted":
            return _dotted(recorded_location(target))
        case _:
            return _reported(target, ref.form)


def _reported(target: Resource, name: str) -> str:
    """A value that the status of the target has: an address, an e-mail, a version."""
    for path in (Path(("status", name)), Path(("status", "observedState", name))):
        found = get_at(target.document, path)
        if isinstance(found, str | int) and found != "":
            return str(found)
    raise OutputMissing(f"reference {target.ref} is not ready: it has no status.{name}", target.ref, f"status.{name}")
