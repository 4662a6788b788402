"""Whether a result is what a plan has promised, by the rules that Terraform checks it by.

Terraform calls a deviation a bug of the provider. It is none where another writer, or admission, has changed the
object: then an error says so, and the state has the object as it is.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.terraform.cty.types import DYNAMIC, CtyType, ListType, MapType, ObjectType, SetType, TupleType
from setpoint.terraform.cty.values import (
    AttributePath,
    CtyValue,
    Dynamic,
    UnknownValue,
    format_path,
    same_value,
    type_at,
)
from setpoint.terraform.framework.diagnostics import Diagnostic, error

# How many paths a message names.
_MOST_PATHS: Final = 5


def deviations(
    planned: CtyValue, actual: CtyValue, type_: CtyType, path: AttributePath = ()
) -> Iterator[AttributePath]:
    """The path of each part of `actual` that is not as planned. What is unknown in the plan may become anything."""
    match planned, actual:
        case UnknownValue(refinement), _:
            if refinement.null is False and actual is None:
                yield path
        case None, _ if type_ is DYNAMIC:
            # A null without a type may become anything, too.
            pass
        case Dynamic(), Dynamic() if conforms(actual.type, planned.type):
            yield from deviations(planned.value, actual.value, planned.type, path)
        case (tuple(), tuple()) | (Mapping(), Mapping()):
            yield from _deviations_below(planned, actual, type_, path)
        case _:
            if not same_value(planned, actual, type_):
                yield path


def _deviations_below(
    planned: CtyValue, actual: CtyValue, type_: CtyType, path: AttributePath
) -> Iterator[AttributePath]:
    match planned, actual:
        case Mapping(), Mapping():
            for key in sorted(planned.keys() ^ actual.keys()):
                yield (*path, key)
            for key in sorted(planned.keys() & actual.keys()):
                yield from deviations(planned[key], actual[key], type_at(type_, key), (*path, key))
        case tuple(), tuple() if isinstance(type_, SetType):
            if not _are_same_sets(planned, actual, type_.element):
                yield path
        case tuple(), tuple() if len(planned) == len(actual):
            for index, (one, other) in enumerate(zip(planned, actual, strict=True)):
                yield from deviations(one, other, type_at(type_, index), (*path, index))
        case _:
            yield path


def _are_same_sets(planned: tuple[CtyValue, ...], actual: tuple[CtyValue, ...], element: CtyType) -> bool:
    """Whether each element has a counterpart. Elements that were unknown may turn out to be the same."""

    def are_matching(one: CtyValue, other: CtyValue) -> bool:
        return next(deviations(one, other, element), None) is None

    return (
        len(actual) <= len(planned)
        and all(any(are_matching(one, other) for other in actual) for one in planned)
        and all(any(are_matching(one, other) for one in planned) for other in actual)
    )


def conforms(type_: CtyType, wanted: CtyType) -> bool:
    """Whether values of `type_` are of the type `wanted`, which may be dynamic in parts."""
    match type_, wanted:
        case _, _ if wanted is DYNAMIC:
            return True
        case (ListType(one), ListType(other)) | (SetType(one), SetType(other)) | (MapType(one), MapType(other)):
            return conforms(one, other)
        case ObjectType(ones), ObjectType(others):
            return ones.keys() == others.keys() and all(conforms(ones[name], others[name]) for name in ones)
        case TupleType(elements), TupleType(wanted_elements):
            pairs = zip(elements, wanted_elements, strict=False)
            return len(elements) == len(wanted_elements) and all(conforms(one, other) for one, other in pairs)
        case _:
            return type_ == wanted


def deviation_error(paths: list[AttributePath]) -> Diagnostic:
    """The diagnostic of an applied change whose result is not as planned. It has no values: they may be secret."""
    shown = ", ".join(format_path(one) for one in paths[:_MOST_PATHS])
    more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
    return error(
        "The result is not as planned",
        f"The change was applied, and the result differs from the plan in {shown}{more}. Admission, or another writer, "
        "has changed it on the way. Nothing is lost: the state has the object as it is now. Plan again: the new plan "
        "shows what is left to do.",
    )
