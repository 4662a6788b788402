"""Dispatches RPCs to their handlers, and turns every exception into diagnostics."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from setpoint.errors import Retry, retry_for
from setpoint.terraform.framework.call import ActiveCalls
from setpoint.terraform.framework.diagnostics import (
    Diagnostic,
    DiagnosticsError,
    Interrupted,
    diagnostics_for,
    traceback_frames,
)
from setpoint.terraform.framework.provider import FunctionFailed, Provider
from setpoint.terraform.rpc import handlers
from setpoint.terraform.rpc.context import RpcContext, write_diagnostics
from setpoint.terraform.rpc.protobuf import MessageClasses, ProtoMessage

_Handler: TypeAlias = Callable[[RpcContext], Awaitable[None]]

METHODS: Final[Mapping[str, _Handler]] = {
    "GetMetadata": handlers.get_metadata,
    "GetProviderSchema": handlers.get_provider_schema,
    "GetFunctions": handlers.get_functions,
    "GetResourceIdentitySchemas": handlers.get_resource_identity_schemas,
    "ValidateProviderConfig": handlers.validate_provider_config,
    "ConfigureProvider": handlers.configure_provider,
    "ValidateDataResourceConfig": handlers.validate_data_resource_config,
    "ReadDataSource": handlers.read_data_source,
    "CallFunction": handlers.call_function,
    "ValidateResourceConfig": handlers.validate_resource_config,
    "UpgradeResourceState": handlers.upgrade_resource_state,
    "ReadResource": handlers.read_resource,
    "PlanResourceChange": handlers.plan_resource_change,
    "ApplyResourceChange": handlers.apply_resource_change,
    "ImportResourceState": handlers.import_resource_state,
    "MoveResourceState": handlers.move_resource_state,
    "ValidateEphemeralResourceConfig": handlers.validate_ephemeral_resource_config,
    "OpenEphemeralResource": handlers.open_ephemeral_resource,
    "RenewEphemeralResource": handlers.renew_ephemeral_resource,
    "CloseEphemeralResource": handlers.close_ephemeral_resource,
}
STOP: Final = "StopProvider"

log = logging.getLogger(__name__)


class ProviderService:
    """The RPCs of one provider."""

    def __init__(self, provider: Provider, messages: MessageClasses, calls: ActiveCalls) -> None:
        self._provider = provider
        self._messages = messages
        self._calls = calls

    def request_type(self, method: str) -> type[ProtoMessage]:
        """The message class of the request of `method`."""
        return self._messages[f"{method}.Request"]

    async def handle(self, method: str, request: ProtoMessage) -> ProtoMessage:
        """The response to a call of `method`. Raises nothing but the cancellation of the call."""
        response = self._messages[f"{method}.Response"]()
        if method == STOP:
            self._calls.stop()
            return response
        with self._calls.begin() as call:
            context = RpcContext(self._provider, request, response, call)
            try:
                await call.run_with_grace(METHODS[method](context))
            except Exception as fault:  # noqa: BLE001 - a bug in one call must not end the process
                _log_bug(method, fault)
                _write_error(context, fault)
            else:
                _write_diagnostics(context, call.diagnostics)
        return response


def _log_bug(method: str, fault: Exception) -> None:
    is_expected = isinstance(fault, DiagnosticsError | Interrupted | FunctionFailed)
    if not is_expected and retry_for(fault) is Retry.BUG:
        # The traceback without the message, which may hold a secret.
        log.error("bug", extra={"method": method, "class": type(fault).__name__, "frames": traceback_frames(fault)})


def _write_error(context: RpcContext, fault: Exception) -> None:
    shown = diagnostics_for(fault, context.provider.vocabulary)
    if hasattr(context.response, "diagnostics"):
        _write_diagnostics(context, [*context.call.diagnostics, *shown])
        return
    # A function has one error and no warnings.
    if isinstance(fault, FunctionFailed):
        context.response.error.text = str(fault)
        if fault.argument is not None:
            context.response.error.function_argument = fault.argument
    else:
        context.response.error.text = "; ".join(f"{one.summary}: {one.detail}" for one in shown)


def _write_diagnostics(context: RpcContext, diagnostics: list[Diagnostic]) -> None:
    if diagnostics and hasattr(context.response, "diagnostics"):
        write_diagnostics(context.response.diagnostics, context.redacted(diagnostics), context.type)
