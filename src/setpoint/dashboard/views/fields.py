"""The fields of a resource for the page: spec, live and desired side by side, and the rule of each in words."""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from setpoint.core.schema.policy import Rule
from setpoint.core.values.json_types import Json, Missing
from setpoint.dashboard.api.resource_models import Digests, FieldModel, FieldRule, Fields
from setpoint.library.inspection.fields import FieldListing, FieldState

_RULES: Final[Mapping[Rule, tuple[FieldRule, str]]] = {
    Rule.SPEC: ("spec", "the spec says so"),
    Rule.DEFAULT: ("default", "the spec leaves it out: the documented default of the kind"),
    Rule.LISTED: ("kept", "the spec leaves it out, and default-to-gcp-fields lists it: the live value stands"),
    Rule.IGNORED: ("ignored", "the spec leaves it out, and ignore-unspecified-fields keeps the live value"),
    Rule.UNMANAGED: ("unmanaged", "the annotation unmanaged lists it: the live value stands"),
    Rule.PROTECTED: ("protected", "a protection is given up only by an explicit value: the live value stands"),
    Rule.FIXED: ("immutable", "it is fixed when the object is created: the live value stands"),
    Rule.CHOSEN: ("serviceChosen", "the spec leaves it out, and the service chooses it: the live value stands"),
    Rule.SERVER_DEFAULT: ("serviceChosen", "its removal was sent, and the service keeps a value of its own"),
    Rule.PRUNED: ("pruned", "the spec leaves it out, and the kind has no default: it is unset"),
    Rule.RELEASED: ("pruned", "the spec says null: it is unset, protected or not"),
    Rule.GENERATED: ("generated", "set as generated"),
    Rule.MANAGED: ("generated", "managed by its owner: reverted to what is generated"),
    Rule.RETIRED: ("generated", "no longer generated: removed"),
    Rule.EDITED: ("edited", "edited by another writer, and kept"),
    Rule.CONFLICTING: ("edited", "edited by another writer, and generated anew since"),
}


def fields_of(listing: FieldListing) -> Fields:
    """The fields for the page."""
    has_digests = listing.intent is not None and listing.live is not None
    return Fields(
        observed_at=listing.at,
        is_fresh=not listing.trouble,
        trouble=listing.trouble,
        digests=Digests(intent=listing.intent or "", live=listing.live or "") if has_digests else None,
        fields=tuple(map(_field, listing)),
        live_object=listing.live_object,
    )


def _field(one: FieldState) -> FieldModel:
    rule, reason = _RULES[one.rule]
    return FieldModel(
        path=one.path,
        spec=_side(one.spec),
        live=_side(one.live),
        desired=_side(one.desired),
        rule=rule,
        reason=reason,
        differs=one.differs,
        is_secret=one.is_secret,
    )


def _side(value: Json | Missing) -> Json | UnsetType:
    return UNSET if isinstance(value, Missing) else value
