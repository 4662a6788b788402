"""Requests with an identity, which is renewed once where a server refuses it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from setpoint.clients.http import HttpResponse
from setpoint.clients.http_transport import ResponseStream

IdentityT = TypeVar("IdentityT")
ResponseT = TypeVar("ResponseT", bound="HttpResponse | ResponseStream")


async def send_authenticated(
    identity: Callable[[IdentityT | None], Awaitable[IdentityT]], send: Callable[[IdentityT], Awaitable[ResponseT]]
) -> ResponseT:
    """The response to a request with our identity; after a 401, to the request repeated once with a renewed one.

    `identity` is given the one that was refused, if any. When it returns the same object again, the 401 stands; a token
    that was fetched again is tried, even if it has not changed.
    """
    first = await identity(None)
    response = await send(first)
    if response.status != 401:
        return response
    renewed = await identity(first)
    return response if renewed is first else await send(renewed)
