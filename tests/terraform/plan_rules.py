"""The rules by which Terraform judges the answers of a provider, written from those of its core.

`plan_problems` are those of a plan: what the configuration sets is planned as it is set, or stays as it was. And
`result_problems` are those of a second plan, or of a result: what the plan before has known is still the same.
"""

from collections.abc import Iterator, Mapping

from setpoint.terraform.cty.types import CtyType, ListType, MapType, ObjectType, PrimitiveType, SetType, TupleType
from setpoint.terraform.cty.values import AttributeValues, CtyValue, Dynamic, UnknownValue
from setpoint.terraform.framework.schema import Attribute, NestedAttributes, Presence, TerraformSchema


def plan_problems(
    schema: TerraformSchema, prior: AttributeValues | None, config: AttributeValues, planned: AttributeValues
) -> list[str]:
    """What makes it an invalid plan."""
    return [
        problem
        for name, one in schema.attributes.items()
        for problem in _planned(one, (prior or {}).get(name), config.get(name), planned.get(name), name)
    ]


def _planned(attribute: Attribute, prior: CtyValue, config: CtyValue, planned: CtyValue, where: str) -> Iterator[str]:
    if _raw(planned) == _raw(config):
        return
    if _raw(planned) == _raw(prior) and prior is not None and config is not None:
        return
    if attribute.presence is Presence.COMPUTED or (config is None and attribute.presence.is_computed):
        return
    if config is None:
        yield f"{where}: a planned value for an attribute that is not computed"
    elif isinstance(attribute.type, NestedAttributes) and isinstance(config, Mapping) and isinstance(planned, Mapping):
        for name, one in attribute.type.attributes.items():
            before = prior.get(name) if isinstance(prior, Mapping) else None
            yield from _planned(one, before, config.get(name), planned.get(name), f"{where}.{name}")
    else:
        yield f"{where}: neither as configured nor as before"


def _raw(value: CtyValue) -> object:
    """A value that compares as Terraform compares: any unknown is the same, and true is not 1."""
    match value:
        case UnknownValue():
            return "(unknown)"
        case Dynamic(type_, inner):
            return ("dynamic", repr(type_), _raw(inner))
        case Mapping():
            return ("map", sorted((key, _raw(one)) for key, one in value.items()).__repr__())
        case tuple():
            return ("list", [_raw(one) for one in value].__repr__())
        case _:
            return (type(value).__name__, value)


def result_problems(type_: ObjectType, planned: AttributeValues, actual: AttributeValues) -> list[str]:
    """What makes it an inconsistent second plan, or result."""
    return [
        problem
        for name, one in type_.attributes.items()
        for problem in _result(planned.get(name), actual.get(name), one, name)
    ]


def _result(planned: CtyValue, actual: CtyValue, type_: CtyType, where: str) -> Iterator[str]:
    if type_ is PrimitiveType.DYNAMIC:
        if not isinstance(planned, Dynamic):
            # Its type is not known: anything goes.
            return
        if not isinstance(actual, Dynamic):
            yield f"{where}: {'was known, but now unknown' if actual is not None else 'was a value, but now null'}"
        elif not _conforms(actual.type, planned.type):
            yield f"{where}: wrong final value type"
        else:
            yield from _result(planned.value, actual.value, planned.type, where)
    elif isinstance(planned, UnknownValue):
        return
    elif (planned is None) != (actual is None):
        yield f"{where}: was {'null' if planned is None else 'a value'}, but now {'null' if actual is None else 'not'}"
    elif isinstance(actual, UnknownValue):
        yield f"{where}: was known, but now unknown"
    else:
        yield from _below(planned, actual, type_, where)


def _below(planned: CtyValue, actual: CtyValue, type_: CtyType, where: str) -> Iterator[str]:
    match planned, actual:
        case Mapping(), Mapping():
            yield from (f"{where}: element {key} has vanished" for key in planned if key not in actual)
            yield from (f"{where}: new element {key} has appeared" for key in actual if key not in planned)
            for key in planned.keys() & actual.keys():
                yield from _result(planned[key], actual[key], _part(type_, key), f"{where}[{key}]")
        case tuple(), tuple():
            if len(planned) != len(actual):
                yield f"{where}: length changed"
            for index, (one, other) in enumerate(zip(planned, actual, strict=False)):
                yield from _result(one, other, _part(type_, index), f"{where}[{index}]")
        case _:
            if _raw(planned) != _raw(actual):
                yield f"{where}: was another value"


def _part(type_: CtyType, step: str | int) -> CtyType:
    match type_:
        case ListType(element) | SetType(element) | MapType(element):
            return element
        case TupleType(elements):
            return elements[int(step)]
        case ObjectType(attributes):
            return attributes[str(step)]
        case _:
            raise AssertionError(f"{type_} has no parts")


def _conforms(given: CtyType, wanted: CtyType) -> bool:
    if wanted is PrimitiveType.DYNAMIC or given == wanted:
        return True
    match given, wanted:
        case ObjectType(one), ObjectType(other):
            return one.keys() == other.keys() and all(_conforms(one[name], other[name]) for name in one)
        case TupleType(one_elements), TupleType(other_elements):
            pairs = zip(one_elements, other_elements, strict=False)
            return len(one_elements) == len(other_elements) and all(_conforms(one, other) for one, other in pairs)
        case _:
            return False
