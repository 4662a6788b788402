"""Laws of users: an insert reads back as declared, one call is sufficient, and the password is in no text."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.google.client import GoogleClient, GoogleSettings
from setpoint.clients.http import HttpClient
from setpoint.clients.url_path import has_dot_segment
from setpoint.core.decide import Decision
from setpoint.core.overlay import overlay
from setpoint.core.plan import DEFAULT_PLAN_OPTIONS, Plan, PlanOptions, plan_effective
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import JsonObject
from setpoint.core.values.paths import Path
from setpoint.engine.intent import intent_of
from setpoint.engine.kind import Intent, ResolvedReferences
from setpoint.engine.resource import Resource
from setpoint.kinds.gcp.sql_user import SqlUser, SqlUserKind, SqlUserSpec
from setpoint.kinds.gcp.sql_user.live import find_user, parse_user_location, read_user
from setpoint.kinds.gcp.sql_user.requests import insert_body, update_body, user_query
from tests.kinds.effective_states import effective_over
from tests.kinds.effective_states import plan_over as kind_plan_over
from tests.kinds.test_sql_user import EXTERNAL, user

pytestmark = pytest.mark.laws

# Never called: everything here is pure.
KIND = SqlUserKind(GoogleClient(HttpClient(), GoogleSettings()))
SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
FLAG, DURATION = "spec.passwordPolicy.enablePasswordVerification", "spec.passwordPolicy.passwordExpirationDuration"
RESENT = PlanOptions(resend=(Path(("spec", "password")),))
POLICIES: tuple[dict[str, str], ...] = (
    {},
    {"cnrm.cloud.google.com/ignore-unspecified-fields": "true"},
    {"cnrm.cloud.google.com/default-to-gcp-fields": f"{FLAG},{DURATION}"},
    {"cnrm.cloud.google.com/default-to-gcp-fields": "spec.passwordPolicy"},
    {"cnrm.cloud.google.com/unmanaged": FLAG},
    {"cnrm.cloud.google.com/unmanaged": "spec.passwordPolicy,spec.password"},
)

# Neither control characters nor dot segments: both are refused.
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda text: not has_dot_segment(text)
)
hosts = st.none() | st.sampled_from(["%", ""]) | texts
members = {
    "allowedFailedAttempts": st.integers(0, 3),
    "enableFailedAttemptsCheck": st.booleans(),
    "enablePasswordVerification": st.booleans(),
    "passwordExpirationDuration": st.sampled_from(["0s", "60s", "060.0s", "86400.5s"]),
}
lives = st.fixed_dictionaries({}, optional={**members, "status": st.just({"locked": True})})
policies = st.fixed_dictionaries({}, optional={name: values | st.none() for name, values in members.items()})
# No other text contains this by chance.
passwords = st.builds(lambda text: f"hunter2 {text}", st.text(max_size=9))
specs = st.builds(
    lambda declared, more: {**EXTERNAL, **declared, **more},
    st.fixed_dictionaries({}, optional={"passwordPolicy": policies | st.none(), "host": hosts}),
    st.sampled_from([{}, {"type": "BUILT_IN"}, {"type": None}])
    | st.fixed_dictionaries({"password": st.just(SECRET) | st.builds(lambda text: {"value": text}, passwords)}),
)
manifests = st.builds(lambda spec, policy: user(spec, annotations=policy), specs, st.sampled_from(POLICIES))


def intent_for(manifest: dict[str, Any], password: str = "") -> Intent:
    """The intent; a Secret that it names holds `password`."""
    named = manifest["spec"].get("password") == SECRET
    resolved = (
        ResolvedReferences(secrets={"spec.password": password}, versions={"spec.password": "1"})
        if named
        else ResolvedReferences()
    )
    return intent_of(Resource(manifest), KIND, resolved)


def sent(body: Any) -> Any:
    """A body after encoding and decoding."""
    return msgspec.json.decode(msgspec.json.encode(body))


def inserted(intent: Intent) -> dict[str, Any]:
    """The user that a service stores for an insert."""
    body = sent(insert_body(intent, effective_over(KIND, intent).tree))
    return {"host": "%", "passwordPolicy": {}, **body, "kind": "sql#user"}


def updated(live: dict[str, Any], intent: Intent, plan: Plan) -> dict[str, Any]:
    """The user after the writes of a plan: a PUT replaces each of its members as a whole."""
    for write in plan.writes:
        live = {**live, **sent(update_body(effective_over(KIND, intent, KIND.view(read(live))).tree, write))}
    return live


def read(live: dict[str, Any]) -> SqlUser:
    return read_user(msgspec.json.encode(live), parse_user_location(intent_for(user(EXTERNAL)).location))[0]


def plan_over(intent: Intent, live: SqlUser, sending: PlanOptions = DEFAULT_PLAN_OPTIONS) -> Plan:
    view = KIND.view(live)
    found = effective_over(KIND, intent, view)
    return plan_effective(Decision.FIRST_LOOK, found.declared, view, wanted=found.tree, options=sending)


@given(manifests, passwords)
def test_what_is_inserted_reads_back_as_declared(manifest: dict[str, Any], password: str) -> None:
    intent = intent_for(manifest, password)

    assert plan_over(intent, read(inserted(intent))).writes == ()


@given(manifests, lives, passwords)
def test_one_call_turns_any_user_into_any_other(
    manifest: dict[str, Any], policy: dict[str, Any], password: str
) -> None:
    intent, live = intent_for(manifest, password), {"name": "some-user", "host": "%", "passwordPolicy": policy}
    plan = plan_over(intent, read(live))

    assert len(plan.writes) <= 1
    assert plan_over(intent, read(updated(live, intent, plan))).writes == ()


@given(manifests, lives, passwords)
def test_a_rotation_keeps_the_policy(manifest: dict[str, Any], policy: dict[str, Any], word: str) -> None:
    intent, live = intent_for(manifest, word), {"name": "some-user", "host": "%", "passwordPolicy": policy}
    settled = updated(live, intent, plan_over(intent, read(live)))

    rotated = updated(settled, intent, plan_over(intent, read(settled), RESENT))

    assert plan_over(intent, read(rotated)).writes == ()
    assert canonical(view_of(rotated)) == canonical(view_of(settled))


def view_of(live: dict[str, Any]) -> JsonObject:
    """The policy with every default filled in."""
    intent = intent_for(user(EXTERNAL, annotations=POLICIES[1]))
    return effective_over(KIND, intent, KIND.view(read(with_defaults(live)))).tree


def with_defaults(live: dict[str, Any]) -> dict[str, Any]:
    unset = {"allowedFailedAttempts": 0, "enableFailedAttemptsCheck": False, "enablePasswordVerification": False}
    return {**live, "passwordPolicy": {**unset, "passwordExpirationDuration": "0s", **live["passwordPolicy"]}}


@given(specs, lives, passwords)
def test_unspecified_fields_are_kept_under_the_ignore_policy(
    spec: dict[str, Any], policy: dict[str, Any], password: str
) -> None:
    intent = intent_for(user(spec, annotations=POLICIES[1]), password)
    live = {"name": "some-user", "host": "%", "passwordPolicy": policy}

    after = updated(live, intent, plan_over(intent, read(live), RESENT))

    declared = spec.get("passwordPolicy", {})
    undeclared = [name for name in policy if declared is not None and name not in declared and name != "status"]
    before, now = (canonical(view_of(one)["spec"]) for one in (live, after))
    decode = msgspec.json.decode
    assert [decode(now)["passwordPolicy"][name] for name in undeclared] == [
        decode(before)["passwordPolicy"][name] for name in undeclared
    ]


@given(manifests, lives, passwords)
def test_a_password_is_in_no_text(manifest: dict[str, Any], policy: dict[str, Any], password: str) -> None:
    declared = manifest["spec"].get("password", {})
    word = declared.get("value", password)
    intent = intent_for(manifest, password)
    plans = [
        kind_plan_over(KIND, intent),
        plan_over(intent, read({"name": "some-user", "passwordPolicy": policy}), RESENT),
    ]
    spec = msgspec.convert(manifest["spec"], SqlUserSpec)
    wanted = msgspec.convert({**EXTERNAL, **spec_of(effective_over(KIND, intent).tree)}, SqlUserSpec)

    shown = [*map(str, plans), *(str(plan.to_data()) for plan in plans), repr(spec), repr(wanted)]
    shown += [intent.location, str(intent.resolved.versions)]
    assert [text for text in shown if word in text] == []


def spec_of(tree: JsonObject) -> dict[str, Any]:
    found = tree["spec"]
    assert isinstance(found, dict)
    return found


@given(manifests, lives, passwords)
def test_the_effective_state_is_the_overlay_of_the_trees(
    manifest: dict[str, Any], policy: dict[str, Any], word: str
) -> None:
    intent = intent_for(manifest, word)
    view = KIND.view(read({"name": "some-user", "passwordPolicy": policy}))

    assert canonical(effective_over(KIND, intent, view).tree) == canonical(overlay(intent.declared, view))


@given(manifests, lives, passwords)
def test_the_arguments_are_not_mutated(manifest: dict[str, Any], policy: dict[str, Any], word: str) -> None:
    intent, live = intent_for(manifest, word), read({"name": "some-user", "passwordPolicy": policy})
    before = canonical(manifest), canonical(live), canonical(intent.declared.tree)

    for write in plan_over(intent, live, RESENT).writes:
        update_body(effective_over(KIND, intent, KIND.view(live)).tree, write)
    insert_body(intent, effective_over(KIND, intent).tree)

    assert (canonical(manifest), canonical(live), canonical(intent.declared.tree)) == before


# --- Names -----------------------------------------------------------------------------------------------------------


@given(texts, hosts)
def test_any_name_and_host_survive_the_location_and_the_query(name: str, host: str | None) -> None:
    resource = Resource(user({**EXTERNAL, "resourceID": name, "host": host}))
    place = parse_user_location(KIND.locate(resource, ResolvedReferences()))
    call = place.users(asyncio.run(user_query(place, resource, SqlUser(name, "%"), KIND.google)))

    query = parse_qs(urlsplit(call.path).query)
    assert (place.name, place.host) == (name, "" if host in (None, "", "%") else host)
    assert (query["name"], query["host"]) == ([name], [host or "%"])
    assert urlsplit(call.path).path.endswith("/instances/main/users")


@given(texts, hosts, st.lists(st.tuples(texts, hosts), max_size=5))
def test_the_user_is_found_among_other_users(name: str, host: str | None, more: list[tuple[str, str | None]]) -> None:
    place = parse_user_location(
        KIND.locate(Resource(user({**EXTERNAL, "resourceID": name, "host": host})), ResolvedReferences())
    )
    listed = [{"name": one, "host": its or "%"} for one, its in (*more, (name, host), *more)]
    other_users = [one for one in listed if (one["name"], one["host"]) != (name, host or "%")]

    def found(items: list[dict[str, str]]) -> Any:
        body = find_user(msgspec.json.encode({"kind": "sql#usersList", "items": items}), place)
        return None if body is None else msgspec.json.decode(body)

    assert found(listed) == {"name": name, "host": host or "%"}
    assert found(other_users) is None


@given(lives, st.dictionaries(st.sampled_from(["etag", "project", "novelty"]), st.text()))
def test_unmodelled_fields_do_not_change_the_digest(policy: dict[str, Any], noise: dict[str, str]) -> None:
    live = {"name": "some-user", "passwordPolicy": policy}

    assert canonical(read({**live, **noise})) == canonical(read(live))
