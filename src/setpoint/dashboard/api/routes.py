"""The routes of the API v1: the server and the OpenAPI document are made from this list."""

from typing import Any, Final, Literal, NamedTuple

from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.dashboard.api import models, resource_models

API: Final = "/api/v1"
# The id of a resource in a path: KIND.GROUP/NAMESPACE/NAME, each of the three parts percent-encoded.
_RESOURCE: Final = "/resources/{id}"
# As the server matches it.
ID_PATTERN: Final = r"{id:[^/]+/[^/]*/[^/]+}"
EVENT_STREAM: Final = "text/event-stream"


class QueryParameter(NamedTuple):
    """A parameter of a query: a text, or a number."""

    name: str
    description: str
    type: Literal["string", "integer"] = "string"


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One route: the name of its handler, what it answers with, and what it takes."""

    method: Literal["GET", "POST"]
    path: str
    handler: str
    summary: str
    # The type of the answer; None for the stream, and Any for a document that is passed on.
    answer: Any
    status: int = 200
    query: tuple[QueryParameter, ...] = ()
    body: Any = None
    needs_session: bool = True

    @property
    def pattern(self) -> str:
        """The path as the server matches it."""
        return f"{API}{self.path.replace('{id}', ID_PATTERN)}"


ROUTES: Final = (
    ApiRoute(
        "POST",
        "/login",
        "login",
        "Opens a session: sets a cookie in exchange for a token.",
        models.SignedIn,
        body=models.LoginRequest,
        needs_session=False,
    ),
    ApiRoute("POST", "/logout", "logout", "Ends the session.", models.SignedOut, needs_session=False),
    ApiRoute("GET", "/sign-in", "sign_in", "How users sign in.", models.LoginOptions, needs_session=False),
    ApiRoute("GET", "/session", "session", "What is shown, to which user, and what may be done.", models.SessionInfo),
    ApiRoute(
        "GET",
        "/resources",
        "resources",
        "The rows of resources, by kind, namespace and name.",
        models.ResourcePage,
        query=(
            QueryParameter("cursor", "The `next` of the page before."),
            QueryParameter("limit", "At most so many rows, 1000 otherwise.", "integer"),
        ),
    ),
    ApiRoute(
        "GET",
        "/search",
        "search",
        "The resources in which every word occurs: in the id, in labels, or in `path=value` of a field.",
        models.SearchAnswer,
        query=(QueryParameter("q", "Words."),),
    ),
    ApiRoute("GET", "/summary", "summary", "Counts, what needs attention, and the processes.", models.Summary),
    ApiRoute(
        "GET",
        "/process",
        "process",
        "What the process that answers does. In a cluster, for users who may list the leases of the processes.",
        models.ProcessAnswer,
    ),
    ApiRoute(
        "GET",
        "/next-steps",
        "next_steps",
        "When the next step of resources is due, as far as this process knows it; those of a list are in its rows.",
        models.NextStepTimes,
    ),
    ApiRoute(
        "GET",
        "/stream",
        "stream",
        "Server-sent events: `resources` (ResourceChanges), `nextSteps` (NextStepTimes), `summary` (Summary), "
        "`plan` (PlanProgress or null), `trouble` (StoreTrouble), and `reset`: load everything anew. The id of an "
        "event is a revision; Last-Event-ID resumes after it.",
        None,
        query=(QueryParameter("since", "The revision that the reader has, where it cannot send Last-Event-ID."),),
    ),
    ApiRoute(
        "GET",
        "/graph",
        "graph",
        "What depends on what, and what flows along each edge.",
        models.Graph,
        query=(
            QueryParameter("namespace", "Resources of this namespace, and what they need."),
            QueryParameter("focus", "The id of a resource: only its surroundings."),
            QueryParameter("depth", "How many edges away from it, 2 otherwise.", "integer"),
        ),
    ),
    ApiRoute("GET", _RESOURCE, "resource", "Everything on record about a resource.", resource_models.ResourceDetails),
    ApiRoute(
        "GET",
        f"{_RESOURCE}/fields",
        "fields",
        "Spec, live and desired state, field by field, with the rule of each. Reads the live object; writes nothing.",
        resource_models.Fields,
    ),
    ApiRoute(
        "GET",
        f"{_RESOURCE}/timeline",
        "timeline",
        "Steps, writes with their requests, drift, refusals and events, the newest first.",
        resource_models.Timeline,
        query=(
            QueryParameter("before", "The `next` of the page before."),
            QueryParameter("limit", "At most so many entries of the history, 100 otherwise.", "integer"),
        ),
    ),
    ApiRoute(
        "POST",
        f"{_RESOURCE}/actions/{{action}}",
        "act",
        "Has a resource reconciled now, paused, or resumed. Off unless the process allows it.",
        resource_models.ActionAnswer,
        202,
    ),
    ApiRoute("GET", "/plan", "plan", "The last plan of all resources.", resource_models.FleetPlan),
    ApiRoute(
        "POST",
        "/plan",
        "make_plan",
        "Starts a plan of all resources; nothing is written.",
        resource_models.FleetPlan,
        202,
    ),
    ApiRoute(
        "POST",
        "/plan/cancel",
        "cancel_plan",
        "Ends the plan that is being made. In a cluster, the one that the same user has asked for.",
        resource_models.FleetPlan,
    ),
    ApiRoute("GET", "/upgrade", "upgrade", "The report of `setpoint verify-upgrade -o json`.", Any),
    ApiRoute("GET", "/openapi.json", "openapi", "This document.", Any, needs_session=False),
)
