"""A question of Terraform's on its way to an answer."""

from collections.abc import Mapping
from typing import Final

from setpoint.terraform.calls import Call
from setpoint.terraform.cty_types import DYNAMIC, ObjectOf, Type
from setpoint.terraform.cty_values import Unknown, Value, Values
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.messages import read_value, write_value
from setpoint.terraform.provider import Offer, Provider, Sort
from setpoint.terraform.schema import Schema, schema_type
from setpoint.terraform.wire import Wire


class Exchange:
    """A request, the answer that it gets, and the type of the values in both."""

    def __init__(self, provider: Provider, request: Wire, answer: Wire, call: Call) -> None:
        self.provider: Final = provider
        self.request: Final = request
        self.answer: Final = answer
        self.call: Final = call
        self.type: Type = DYNAMIC

    def about(self, offers: Mapping[str, Offer[Sort]]) -> Sort:
        """The resource or data source that the request names; from here on values are of its type."""
        name = self.request.type_name
        if name not in offers:
            raise Refused(error(f"This provider has no {name}"))
        self.about_schema(offers[name].schema)
        return offers[name].loaded

    def about_schema(self, schema: Schema) -> None:
        """From here on values are of the type of `schema`."""
        self.type = schema_type(schema)

    def values(self, field: str) -> Values:
        """The attributes in a field of the request; what is null as a whole has all of them null."""
        return self.values_or_null(field) or self._each(None)

    def values_or_null(self, field: str) -> Values | None:
        """The same; None when it is null as a whole."""
        value = read_value(getattr(self.request, field), self.type)
        if isinstance(value, Unknown):
            return self._each(value)
        return value if isinstance(value, Mapping) else None

    def _each(self, value: Value) -> Values:
        return dict.fromkeys(self.type.attributes, value) if isinstance(self.type, ObjectOf) else {}

    def put(self, field: str, value: Value) -> None:
        """Puts attributes, or null, into a field of the answer."""
        write_value(getattr(self.answer, field), value, self.type)
