"""The server of the dashboard: the page, the API v1, sign-in and the stream, behind the checks of every request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import ClientConnectionResetError, web
from aiohttp.typedefs import Handler

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.request_checks import SECURITY_HEADERS, RequestChecks, RequestRefused
from setpoint.dashboard.access.sessions import SESSION_SECONDS, Sessions, SignIn, SignInRefused
from setpoint.dashboard.access.viewer import Viewer
from setpoint.dashboard.api.models import (
    ActionName,
    ApiError,
    ErrorAnswer,
    LoginOptions,
    LoginRequest,
    SignedIn,
    SignedOut,
)
from setpoint.dashboard.api.openapi import openapi_document
from setpoint.dashboard.api.routes import ROUTES
from setpoint.dashboard.backend import Backend
from setpoint.dashboard.handlers import ApiHandler, ResourceHandlers, answer
from setpoint.dashboard.static_files import StaticFile, read_static_files, static_response
from setpoint.dashboard.stream import EventStream
from setpoint.errors import RemoteRefused, SetpointError, UserError
from setpoint.runtime.limited_server import LimitedServer, ListenAddress, ServerLimits

_log: Final = logging.getLogger(__name__)
LIMITS: Final = ServerLimits(connections=512, idle_seconds=75.0, page_seconds=30.0, header_bytes=8190)
_MAX_BODY: Final = 64 * 1024
_BEARER: Final = "Bearer "


@dataclass(frozen=True, slots=True)
class DashboardOptions:
    """How the dashboard is served: which hosts it answers to, and which actions it offers."""

    # None for any: users authenticate themselves.
    hosts: Sequence[str] | None = ()
    actions: tuple[ActionName, ...] = ()
    limits: ServerLimits = LIMITS
    has_plan: bool = True
    # Whether the cookie is only sent over TLS: where a proxy in front ends it.
    is_secure: bool = False


class Dashboard:
    """The routes of the dashboard and the checks in front of them."""

    def __init__(self, backend: Backend, sign_in: SignIn, options: DashboardOptions) -> None:
        self._backend = backend
        self._sign_in = sign_in
        self._options = options
        self._checks = RequestChecks(options.hosts)
        self._sessions = Sessions(backend.engine.clock)
        self._files: Mapping[str, StaticFile] = read_static_files()
        self.server = LimitedServer(self._routes(), options.limits, [self._guarded])
        self._cookie = "setpoint-session"

    async def start(self, address: ListenAddress) -> None:
        """Listens; `server.address` is the URL then."""
        await self.server.start(*address)
        # Cookies do not tell the ports of a host apart.
        self._cookie = f"setpoint-session-{self.server.address.rpartition(':')[2]}"

    def _routes(self) -> Sequence[web.RouteDef]:
        handlers = self.handlers()
        # The longest first: an id has any characters in it.
        routes = sorted(ROUTES, key=lambda route: -len(route.path))
        return [
            *(web.route(one.method, one.pattern, handlers[one.handler]) for one in routes),
            web.get("/{path:.*}", self._static),
        ]

    def handlers(self) -> Mapping[str, Handler]:
        """The handler of each route of the API, by its name."""
        own = ResourceHandlers(self._backend, self._options.actions, self._options.has_plan)
        for_viewers: Mapping[str, ApiHandler] = {
            "session": own.session,
            "resources": own.resources,
            "search": own.search,
            "summary": own.summary,
            "process": own.process,
            "next_steps": own.next_steps,
            "stream": self._stream,
            "graph": own.graph,
            "resource": own.resource,
            "fields": own.fields,
            "timeline": own.timeline,
            "act": own.act,
            "plan": own.plan,
            "make_plan": own.make_plan,
            "cancel_plan": own.cancel_plan,
            "upgrade": own.upgrade,
        }
        return {
            **{name: self._for_viewer(handler) for name, handler in for_viewers.items()},
            "login": self._login,
            "logout": self._logout,
            "sign_in": self._sign_in_options,
            "openapi": self._openapi,
        }

    # --- Every request ------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Checks the request, and answers errors as the API does; every answer has the security headers."""
        try:
            self._checks.check(request)
            response = await handler(request)
        except RequestRefused as refused:
            response = _error(refused.status, refused.code, refused.message, refused.hint)
        except web.HTTPException as error:
            response = _error(error.status, "http", error.reason)
        except SetpointError as error:
            response = _error(_status_of(error), type(error).__name__, str(error))
        except ClientConnectionResetError:
            # The reader left before the answer. The server closes the connection.
            raise
        except Exception:  # noqa: BLE001 - a bug must not end the process
            _log.exception("request of the dashboard broke", extra={"path": request.path})
            # Without its text, which may hold secret values.
            response = _error(500, "bug", "a bug of ours: the log of the process has its traceback")
        if not response.prepared:
            response.headers.update(SECURITY_HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _for_viewer(self, handler: ApiHandler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            viewer = await self._viewer(request)
            if viewer is None:
                raise _signed_out(self._sign_in)
            return await handler(request, viewer)

        return handle

    async def _viewer(self, request: web.Request) -> Viewer | None:
        """The user of a request: by the cookie of a session, or by a bearer token, where those are taken."""
        authorization = request.headers.get("Authorization", "")
        if self._sign_in.way == "bearer" and authorization.startswith(_BEARER):
            try:
                return await self._sign_in.viewer_for(authorization.removeprefix(_BEARER).strip())
            except SignInRefused:
                return None
        viewer = self._sessions.viewer_of(request.cookies.get(self._cookie, ""))
        return viewer if viewer is None or await viewer.is_current() else None

    # --- Signing in ---------------------------------------------------------------------------------------------------

    async def _login(self, request: web.Request) -> web.StreamResponse:
        """POST /login"""
        asked = await _decode_body(request, LoginRequest)
        viewer = await self._sign_in.viewer_for(asked.token)
        response = answer(SignedIn(user=viewer.user))
        response.set_cookie(
            self._cookie,
            self._sessions.open(viewer),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="Strict",
            secure=self._options.is_secure,
            path="/",
        )
        return response

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        """POST /logout"""
        self._sessions.close(request.cookies.get(self._cookie, ""))
        response = answer(SignedOut())
        response.del_cookie(self._cookie, path="/", httponly=True, samesite="Strict", secure=self._options.is_secure)
        return response

    async def _sign_in_options(self, request: web.Request) -> web.StreamResponse:
        """GET /sign-in"""
        viewer = await self._viewer(request)
        return answer(LoginOptions(sign_in=self._sign_in.way, is_signed_in=viewer is not None))

    async def _openapi(self, _request: web.Request) -> web.StreamResponse:
        """GET /openapi.json"""
        return answer(openapi_document())

    # --- The page and its stream --------------------------------------------------------------------------------------

    async def _static(self, request: web.Request) -> web.StreamResponse:
        file = self._files.get(request.path)
        if file is None:
            raise RequestRefused(404, "notFound", "there is no such file")
        return static_response(file, request)

    async def _stream(self, request: web.Request, viewer: Viewer) -> web.StreamResponse:
        """GET /stream"""
        hub = self._backend.hub
        await self._backend.fleet.loaded()
        if hub.open >= hub.limits.streams:
            raise RequestRefused(503, "tooManyStreams", "too many pages are open", "close some of them")
        response = web.StreamResponse(headers={**SECURITY_HEADERS, "Cache-Control": "no-store"})
        response.content_type = "text/event-stream"
        await response.prepare(request)

        async def write(piece: bytes) -> None:
            async with asyncio.timeout(hub.limits.write_seconds):
                await response.write(piece)

        resumed = request.headers.get("Last-Event-ID") or request.query.get("since")
        await EventStream(hub, lambda: self._viewer(request), resumed).run(write)
        if request.transport is not None:
            # What was not taken is of no use to a reader that is gone.
            request.transport.abort()
        return response


@asynccontextmanager
async def serving(dashboard: Dashboard, address: ListenAddress) -> AsyncIterator[str]:
    """Serves the dashboard while this is open; its address as a URL."""
    await dashboard.start(address)
    try:
        yield dashboard.server.address
    finally:
        await dashboard.server.close()


def _status_of(error: SetpointError) -> int:
    match error:
        case UserError():
            return 422
        case RemoteRefused():
            return 403
        case _:
            return 503


def _error(status: int, code: str, message: str, hint: str = "") -> web.Response:
    return answer(ErrorAnswer(error=ApiError(code=code, message=message, hint=hint or msgspec.UNSET)), status)


def _signed_out(sign_in: SignIn) -> RequestRefused:
    hint = "open the URL that the process printed last" if sign_in.way == "url" else "sign in with a bearer token"
    return RequestRefused(401, "signedOut", "you are not signed in, or your session has ended", hint)


async def _decode_body(request: web.Request, form: type[LoginRequest]) -> LoginRequest:
    body = await request.content.read(_MAX_BODY + 1)
    while len(body) <= _MAX_BODY and (more := await request.content.read(_MAX_BODY + 1 - len(body))):
        body += more
    if len(body) > _MAX_BODY:
        raise RequestRefused(413, "tooLarge", f"the body is larger than {_MAX_BODY} bytes")
    try:
        return msgspec.json.decode(body, type=form)
    except msgspec.MsgspecError as error:
        raise RequestRefused(400, "badBody", f"the body cannot be read: {error}") from error
