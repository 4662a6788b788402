"""The handlers of the API v1: each answers with a value of the API, for one viewer."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from aiohttp import web

from setpoint import __version__
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.access.request_checks import RequestRefused
from setpoint.dashboard.access.viewer import Scope, Viewer
from setpoint.dashboard.api.encoding import encode
from setpoint.dashboard.api.models import ActionName, NextStepTimes, ProcessAnswer, SessionInfo
from setpoint.dashboard.api.resource_models import ActionAnswer
from setpoint.dashboard.backend import Backend
from setpoint.dashboard.peers import ALONE
from setpoint.dashboard.views.details import details_of, relations_of
from setpoint.dashboard.views.fields import fields_of
from setpoint.dashboard.views.fleet import EncodedRow, joined_rows
from setpoint.dashboard.views.graph import GraphBuilder, GraphQuery
from setpoint.dashboard.views.rows import id_of, ref_of
from setpoint.dashboard.views.search import MAX_QUERY
from setpoint.dashboard.views.timeline import DEFAULT_ENTRIES, MAX_ENTRIES, is_cursor, merged_timeline
from setpoint.dashboard.views.visibility import visibility_of, visible_row, visible_rows
from setpoint.engine.resource import ResourceRef

DEFAULT_PAGE: Final = 1_000
MAX_PAGE: Final = 5_000
_MAX_DEPTH: Final = 10
_MAX_DIGITS: Final = 15
MAX_NUMBER: Final = 10**_MAX_DIGITS - 1
_JSON: Final = "application/json"

# Answers a request of a viewer.
ApiHandler: TypeAlias = Callable[[web.Request, Viewer], Awaitable[web.StreamResponse]]


def answer(value: object, status: int = 200) -> web.Response:
    """A value of the API as JSON."""
    return web.Response(status=status, body=encode(value), content_type=_JSON)


@dataclass(frozen=True, slots=True)
class ResourceHandlers:
    """What is on record: rows, details, summary and graph."""

    backend: Backend
    actions: tuple[ActionName, ...] = ()
    # Whether plans of all resources may be asked for.
    has_plan: bool = True

    async def session(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """GET /session"""
        backend = self.backend
        return answer(
            SessionInfo(
                version=__version__,
                source=backend.source,
                user=viewer.user,
                is_live=backend.is_live,
                recorded_at=None if backend.is_live else backend.engine.clock.now(),
                actions=self.actions,
                has_plan=self.has_plan,
                has_upgrade_report=backend.upgrade_report is not None,
            )
        )

    async def resources(self, request: web.Request, viewer: Viewer) -> web.Response:
        """GET /resources"""
        rows = await self.backend.fleet.loaded()
        limit = number_in(request, "limit", DEFAULT_PAGE, 1, MAX_PAGE)
        start = number_in(request, "cursor", 0, 0, MAX_NUMBER)
        # Before rights are asked for: what changes meanwhile is on the stream from here on.
        steps = self.backend.hub.steps
        steps.refresh()
        revision = rows.revision_of(rows.number, steps.number)
        refs = await visible_rows(viewer, rows)
        shown = {ref: row for ref in refs[start : start + limit] if (row := rows.get(ref)) is not None}
        following = f'"{start + limit}"' if start + limit < len(refs) else "null"
        head = f'{{"revision":"{revision}","total":{len(refs)},"next":{following},"resources":'
        return web.Response(body=head.encode() + joined_rows(shown, steps.get) + b"}", content_type=_JSON)

    async def next_steps(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """GET /next-steps"""
        rows, steps = await self.backend.fleet.loaded(), self.backend.hub.steps
        steps.refresh()
        visible = await visibility_of(viewer, rows.scopes)
        times = {id_of(ref): time for ref, time in steps.since(0).items() if visible.sees(ref)}
        return answer(NextStepTimes(revision=rows.revision_of(rows.number, steps.number), times=times))

    async def summary(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """GET /summary"""
        rows = await self.backend.fleet.loaded()
        visible = await visibility_of(viewer, rows.scopes)
        return answer(await self.backend.hub.summaries.of(viewer, visible.sees))

    async def process(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """GET /process"""
        source = self.backend.hub.summaries.process
        if not await viewer.sees_processes():
            raise RequestRefused(
                403, "processesHidden", "you may not see the processes", "list leases there to see them"
            )
        return answer(ProcessAnswer(identity=source.identity, state=source.state()))

    async def graph(self, request: web.Request, viewer: Viewer) -> web.Response:
        """GET /graph"""
        rows = await self.backend.fleet.loaded()
        focus = request.query.get("focus")
        query = GraphQuery(
            request.query.get("namespace") or None,
            None if not focus else parsed_ref(focus),
            number_in(request, "depth", 2, 0, _MAX_DEPTH),
        )
        return answer(await GraphBuilder(self.backend.engine, rows, viewer).build(query))

    async def resource(self, request: web.Request, viewer: Viewer) -> web.Response:
        """GET /resources/{id}"""
        ref, row = await self.visible_resource(request, viewer)
        backend = self.backend
        described, explained = await backend.described(ref)
        relations = relations_of(ref, backend.fleet.rows)
        visible = await visibility_of(viewer, set(map(Scope.of, relations.refs)))
        token = None if ALONE in request.query else viewer.token
        next_at = await backend.next_step_of(ref, token)
        shown = backend.row_of(ref, row, next_at)
        return answer(details_of(described, explained, relations.seen_by(visible.sees), shown, next_at=shown.next_step))

    async def fields(self, request: web.Request, viewer: Viewer) -> web.Response:
        """GET /resources/{id}/fields"""
        ref, _ = await self.visible_resource(request, viewer)
        return answer(fields_of(await self.backend.fields(ref)))

    async def timeline(self, request: web.Request, viewer: Viewer) -> web.Response:
        """GET /resources/{id}/timeline"""
        ref, _ = await self.visible_resource(request, viewer)
        most = number_in(request, "limit", DEFAULT_ENTRIES, 1, MAX_ENTRIES)
        is_alone, before = ALONE in request.query, request.query.get("before", "")
        if self.backend.histories.is_merged:
            if before and not is_cursor(before):
                raise RequestRefused(400, "badCursor", "before is the `next` of an earlier answer")
            token = None if is_alone else viewer.token
            entries = await self.backend.histories.entries(ref, token, with_events=not is_alone)
            return answer(merged_timeline(entries, before, most=most, now=self.backend.engine.clock.now()))
        number = number_in(request, "before", 0, 0, MAX_NUMBER) or None
        return answer(await self.backend.histories.page(ref, number, most))

    async def search(self, request: web.Request, viewer: Viewer) -> web.Response:
        """GET /search"""
        await self.backend.fleet.loaded()
        query = request.query.get("q", "")
        if len(query) > MAX_QUERY:
            raise RequestRefused(400, "tooLong", f"q has at most {MAX_QUERY} characters")
        return answer(await self.backend.search.find(query, viewer))

    async def plan(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """GET /plan"""
        return answer(await self.backend.plans.shown_to(viewer))

    async def make_plan(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """POST /plan"""
        if not self.has_plan:
            raise RequestRefused(403, "plansOff", "plans are off", "start the process without --no-plan")
        rows = await self.backend.fleet.loaded()
        if not viewer.is_unrestricted and not await visible_rows(viewer, rows):
            raise RequestRefused(403, "nothingToPlan", "there is no resource that you may see")
        self.backend.plans.start(viewer)
        return answer(await self.backend.plans.shown_to(viewer), 202)

    async def cancel_plan(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """POST /plan/cancel"""
        if not self.backend.plans.cancel(viewer):
            raise RequestRefused(403, "notYours", "another user has asked for this plan: it goes on")
        return answer(await self.backend.plans.shown_to(viewer))

    async def upgrade(self, _request: web.Request, viewer: Viewer) -> web.Response:
        """GET /upgrade"""
        report = self.backend.upgrade_report
        # It names resources of every namespace.
        if report is None or not viewer.is_unrestricted:
            raise RequestRefused(404, "noReport", "there is no report", "hand one over by --upgrade-report")
        return web.Response(body=report, content_type=_JSON)

    async def act(self, request: web.Request, viewer: Viewer) -> web.Response:
        """POST /resources/{id}/actions/{action}"""
        action = next((one for one in self.actions if one == request.match_info["action"]), None)
        if action is None:
            raise RequestRefused(403, "actionsOff", "this action is off", "start with --allow-actions")
        ref, row = await self.visible_resource(request, viewer)
        await viewer.act(ref, action)
        return answer(ActionAnswer(row=self.backend.row_of(ref, row)), 202)

    async def visible_resource(self, request: web.Request, viewer: Viewer) -> tuple[ResourceRef, EncodedRow]:
        """The resource that a request names; RequestRefused for one that is not declared, or may not be seen."""
        ref = ref_in(request)
        row = await visible_row(viewer, ref, await self.backend.fleet.loaded())
        if row is None:
            raise not_found()
        return ref, row


def not_found() -> RequestRefused:
    """The same for what does not exist and for what may not be seen: nothing is told about either."""
    return RequestRefused(404, "notFound", "there is no such resource, or you may not see it")


def ref_in(request: web.Request) -> ResourceRef:
    """The resource that the path of a request names; RequestRefused when it names none."""
    return parsed_ref(request.match_info["id"])


def parsed_ref(text: str) -> ResourceRef:
    """The resource with that id; RequestRefused for a text that is no id."""
    ref = ref_of(text)
    if ref is None:
        raise RequestRefused(400, "badId", "write the id as KIND.GROUP/NAMESPACE/NAME")
    return ref


def number_in(request: web.Request, name: str, default: int, least: int, most: int) -> int:
    """A number in the query of a request; RequestRefused when it is none, or out of range."""
    text = request.query.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS) or not least <= int(text) <= most:
        raise RequestRefused(400, "badNumber", f"{name} is a number from {least} to {most}")
    return int(text)
