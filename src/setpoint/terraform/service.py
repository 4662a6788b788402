"""Every question of Terraform's gets an answer: what a provider gives, or diagnostics of what went wrong."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from setpoint.errors import Retry, retry_for
from setpoint.terraform import provider_calls, resource_calls
from setpoint.terraform.calls import Calls
from setpoint.terraform.diagnostics import Diagnostic, Interrupted, Refused, diagnosed, frames_of
from setpoint.terraform.exchange import Exchange
from setpoint.terraform.messages import write_diagnostics
from setpoint.terraform.provider import FunctionFailed, Provider
from setpoint.terraform.wire import Messages, Wire

_Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]

METHODS: Final[Mapping[str, _Handler]] = {
    "GetMetadata": provider_calls.metadata,
    "GetProviderSchema": provider_calls.schemas,
    "GetFunctions": provider_calls.functions,
    "GetResourceIdentitySchemas": provider_calls.identities,
    "ValidateProviderConfig": provider_calls.validate,
    "ConfigureProvider": provider_calls.configure,
    "ValidateDataResourceConfig": provider_calls.validate_data_source,
    "ReadDataSource": provider_calls.read_data_source,
    "CallFunction": provider_calls.call_function,
    "ValidateResourceConfig": resource_calls.validate,
    "UpgradeResourceState": resource_calls.upgrade,
    "ReadResource": resource_calls.read,
    "PlanResourceChange": resource_calls.plan,
    "ApplyResourceChange": resource_calls.apply,
    "ImportResourceState": resource_calls.adopt,
    "MoveResourceState": resource_calls.move,
}
STOP: Final = "StopProvider"

log = logging.getLogger(__name__)


class Service:
    """A provider, as Terraform talks to it."""

    def __init__(self, provider: Provider, messages: Messages, calls: Calls) -> None:
        self._provider = provider
        self._messages = messages
        self._calls = calls

    def request_type(self, method: str) -> type[Wire]:
        """What comes with a call of `method`."""
        return self._messages[f"{method}.Request"]

    async def answer(self, method: str, request: Wire) -> Wire:
        """The answer to a call of `method`; never an exception, but for a cancelled call."""
        response = self._messages[f"{method}.Response"]()
        if method == STOP:
            self._calls.stop()
            return response
        with self._calls.one() as call:
            exchange = Exchange(self._provider, request, response, call)
            try:
                await call.bounded(METHODS[method](exchange))
            except Exception as fault:  # noqa: BLE001 - ours to mend, and no reason to drop what else is going on
                _log_bug(method, fault)
                _put_fault(exchange, fault)
            else:
                _put_diagnostics(exchange, call.told)
        return response


def _log_bug(method: str, fault: Exception) -> None:
    is_expected = isinstance(fault, Refused | Interrupted | FunctionFailed)
    if not is_expected and retry_for(fault) is Retry.BUG:
        # Where it happened, and not its message: that may hold anything.
        log.error("bug", extra={"method": method, "class": type(fault).__name__, "frames": frames_of(fault)})


def _put_fault(exchange: Exchange, fault: Exception) -> None:
    if hasattr(exchange.answer, "diagnostics"):
        _put_diagnostics(exchange, [*exchange.call.told, *diagnosed(fault)])
        return
    # A function has one error and no warnings.
    if isinstance(fault, FunctionFailed):
        exchange.answer.error.text = str(fault)
        if fault.argument is not None:
            exchange.answer.error.function_argument = fault.argument
    else:
        exchange.answer.error.text = "; ".join(f"{one.summary}: {one.detail}" for one in diagnosed(fault))


def _put_diagnostics(exchange: Exchange, diagnostics: list[Diagnostic]) -> None:
    if diagnostics and hasattr(exchange.answer, "diagnostics"):
        write_diagnostics(exchange.answer.diagnostics, diagnostics, exchange.type)
