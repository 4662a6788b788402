"""What Terraform asks of the resources that it manages."""

from setpoint.terraform.attribute_path import shown
from setpoint.terraform.calls import Stored
from setpoint.terraform.cty_values import Values, known_part, unknown_paths
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.exchange import Exchange
from setpoint.terraform.messages import write_path, write_value
from setpoint.terraform.planning import proposal, replacing_paths, stored_form, write_only_paths
from setpoint.terraform.provider import CreateRequest, ManagedResource, PlanRequest, UpdateRequest
from setpoint.terraform.schema import Schema
from setpoint.terraform.value_reading import tree_in


async def validate(exchange: Exchange) -> None:
    """ValidateResourceConfig."""
    resource, config = exchange.about(exchange.provider.resources), exchange.values("config")
    if not exchange.request.client_capabilities.write_only_attributes_allowed:
        _refuse_write_only(resource.schema, config)
    await resource.validate(config, exchange.call)


def _refuse_write_only(schema: Schema, config: Values) -> None:
    # A client that does not know them would take them for values to be stored.
    paths = write_only_paths(schema, config)
    if paths:
        detail = "They take Terraform 1.11 or newer. An older one would not keep the value out of its state."
        raise Refused(*(error("Write-only attributes are not supported here", detail, path) for path in paths))


async def upgrade(exchange: Exchange) -> None:
    """UpgradeResourceState: a state of this version goes back as it came."""
    resource = exchange.about(exchange.provider.resources)
    raw, version = exchange.request.raw_state.json, exchange.request.version
    if version == resource.schema.version:
        exchange.answer.upgraded_state.json = raw
        return
    exchange.put("upgraded_state", await resource.upgrade(tree_in(raw), version, exchange.call))


async def read(exchange: Exchange) -> None:
    """ReadResource: null when the object is gone."""
    resource = exchange.about(exchange.provider.resources)
    stored = Stored(exchange.values("current_state"), exchange.request.private)
    found = await resource.read(stored, exchange.call)
    if found is None:
        exchange.put("new_state", None)
        return
    _refuse_unknowns(found.state)
    exchange.put("new_state", stored_form(resource.schema, found.state))
    exchange.answer.private = found.private


async def plan(exchange: Exchange) -> None:
    """PlanResourceChange: of a creation, an update or a deletion."""
    resource, request = exchange.about(exchange.provider.resources), exchange.request
    prior, proposed = exchange.values_or_null("prior_state"), exchange.values_or_null("proposed_new_state")
    if proposed is None:
        exchange.put("planned_state", None)
        stored = Stored(prior or {}, request.prior_private)
        exchange.answer.planned_private = await resource.plan_deletion(stored, exchange.call)
        return
    config = exchange.values("config")
    proposed = proposal(resource.schema, config, prior, proposed)
    planned = await resource.plan(PlanRequest(config, prior, proposed, request.prior_private), exchange.call)
    state = stored_form(resource.schema, planned.state)
    exchange.put("planned_state", state)
    exchange.answer.planned_private = planned.private
    if prior is not None:
        for path in dict.fromkeys((*replacing_paths(resource.schema, prior, state), *planned.replaced_by)):
            write_path(exchange.answer.requires_replace.add(), path, exchange.type)


async def apply(exchange: Exchange) -> None:
    """ApplyResourceChange: whatever fails, what is there is kept in the state."""
    # Before anything can fail: what was there is there.
    exchange.answer.new_state.CopyFrom(exchange.request.prior_state)
    exchange.answer.private = exchange.request.planned_private
    resource = exchange.about(exchange.provider.resources)
    prior, planned = exchange.values_or_null("prior_state"), exchange.values_or_null("planned_state")

    def keep(stored: Stored | None) -> None:
        state = None if stored is None else known_part(stored_form(resource.schema, stored.state))
        exchange.put("new_state", state)
        exchange.answer.private = b"" if stored is None else stored.private

    exchange.call.when_kept(keep)
    stored = await _changed(exchange, resource, prior, planned)
    keep(stored)
    if stored is not None:
        _refuse_unknowns(stored.state)


async def _changed(
    exchange: Exchange, resource: ManagedResource, prior: Values | None, planned: Values | None
) -> Stored | None:
    private, call = exchange.request.planned_private, exchange.call
    if planned is None:
        await resource.delete(Stored(prior or {}, private), call)
        return None
    config = exchange.values("config")
    if prior is None:
        return await resource.create(CreateRequest(config, planned, private), call)
    return await resource.update(UpdateRequest(config, prior, planned, private), call)


def _refuse_unknowns(state: Values) -> None:
    # Terraform would say so, too, but not whose mistake it is.
    unknown = [shown(path) for path in unknown_paths(state)]
    if unknown:
        raise Refused(error("The provider left values unknown", f"By now these should be known: {', '.join(unknown)}."))


async def adopt(exchange: Exchange) -> None:
    """ImportResourceState."""
    resource = exchange.about(exchange.provider.resources)
    found = await resource.adopt(exchange.request.id, exchange.call)
    added = exchange.answer.imported_resources.add(type_name=exchange.request.type_name, private=found.private)
    write_value(added.state, stored_form(resource.schema, found.state), exchange.type)


async def move(exchange: Exchange) -> None:
    """MoveResourceState: refused."""
    request = exchange.request
    raise Refused(
        error(
            f"{request.source_type_name} cannot become {request.target_type_name}",
            "This provider does not take over the state of other resources. Import the object instead.",
        )
    )
