"""The routes of special methods; and those of secret versions, services of a project, databases by statement."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from setpoint.localcloud import api_errors
from setpoint.localcloud.google import api_words, operations
from setpoint.localcloud.google.collections import ApiPath
from setpoint.localcloud.google.objects import carry_out, refuse_while_pending
from setpoint.localcloud.google.operations import CatalogueObject, ObjectChange
from setpoint.localcloud.google.outputs import ObjectAddress, created, numeric_id, touched
from setpoint.localcloud.google.reads import CatalogueServices, address_of, body_of, check_parent, find
from setpoint.localcloud.google.special.account_keys import ACCOUNT_KEY_ROUTES
from setpoint.localcloud.google.special.aggregated_lists import AGGREGATED_ROUTES
from setpoint.localcloud.google.special.connections import CONNECTION_ROUTES, PEERING_ROUTES
from setpoint.localcloud.google.special.dns_records import DNS_ROUTES
from setpoint.localcloud.google.special.key_versions import KEY_ROUTES
from setpoint.localcloud.google.validation import FRONT_END_PARAMETERS, camel, invalid_argument
from setpoint.localcloud.routing import Route, ServiceCall, project_number
from setpoint.localcloud.schema import JsonBody

ServiceRoute = Route[CatalogueServices]
Handler = Callable[[CatalogueServices, ServiceCall], JsonBody | None]


def answer_special(services: CatalogueServices, call: ServiceCall, api: str | None, path: ApiPath) -> JsonBody | None:
    """The response of a method that only one service has; None when it is no such method."""
    here = replace(call, path=f"/{path.raw}")
    for name in (api,) if api else tuple(SPECIAL_ROUTES):
        for route in SPECIAL_ROUTES.get(name or "", ()):
            parts = route.parts_of(here)
            answer = None if parts is None else _answered(services, route, replace(here, parts=parts))
            if answer is not None:
                return answer
    return None


def _answered(services: CatalogueServices, route: ServiceRoute, call: ServiceCall) -> JsonBody | None:
    for name in call.query:
        if camel(name) not in route.parameters and name not in FRONT_END_PARAMETERS:
            raise api_errors.unknown_parameter(name)
    return route.answer(services, call)


# --- Secret Manager ---------------------------------------------------------------------------------------------------


def _secret(call: ServiceCall) -> ObjectAddress:
    return address_of("secretmanager", f"projects/{call.part('project')}/secrets/{call.part('secret')}")


def add_version(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/secrets/{secret}:addVersion`."""
    secret, payload = _secret(call), body_of(call, "payload", "parent").get("payload")
    holder = find(services, secret)
    if not isinstance(payload, dict) or not isinstance(payload.get("data"), str):
        raise invalid_argument("Required field 'payload.data' not specified.")
    number = int(holder.hidden.get("versions", 0)) + 1
    holder.hidden = {**holder.hidden, "versions": number}
    version = address_of("secretmanager", f"{secret.name}/versions/{number}")
    services.state.count += 1
    body = {**created(version, {}, call.now, services.state.count), "state": "ENABLED"}
    services.state.objects[version.key] = CatalogueObject(body, services.state.count, hidden=payload)
    return body


def _version(services: CatalogueServices, call: ServiceCall) -> tuple[ObjectAddress, CatalogueObject]:
    secret, number = _secret(call), call.part("version")
    if number == "latest":
        number = str(find(services, secret).hidden.get("versions", 0))
    address = address_of("secretmanager", f"{secret.name}/versions/{number}")
    return address, find(services, address)


def get_version(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/versions/{version}`; `latest` is the newest one."""
    return _version(services, call)[1].body


def access_version(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/versions/{version}:access`: the payload of an enabled version."""
    address, found = _version(services, call)
    if found.body.get("state") != "ENABLED":
        message = f"Secret Version [{address.name}] is in {found.body.get('state')} state."
        raise api_errors.CloudApiError(400, "failedPrecondition", message, "FAILED_PRECONDITION")
    return {"name": address.name, "payload": found.hidden}


def _state_setter(state: str) -> Handler:
    def set_state(services: CatalogueServices, call: ServiceCall) -> JsonBody:
        address, found = _version(services, call)
        if body_of(call, "etag", "name").get("etag") not in (None, "", found.body.get("etag")):
            raise api_words.stale(address.collection, "etag")
        if found.body.get("state") == "DESTROYED":
            raise invalid_argument(f"Secret Version [{address.name}] is destroyed.")
        services.state.count += 1
        found.serial = services.state.count
        found.body = touched(address, {**found.body, "state": state}, call.now, found.serial)
        found.hidden = {} if state == "DESTROYED" else found.hidden
        return found.body

    return set_state


# --- Service Usage ----------------------------------------------------------------------------------------------------


def _service(services: CatalogueServices, call: ServiceCall) -> tuple[ObjectAddress, CatalogueObject]:
    """A service of a project: each one exists, and is disabled until it is enabled."""
    parent, name = f"projects/{call.part('project')}", call.part("service")
    if "." not in name:
        raise invalid_argument(f"Service '{name}' is not a name of a service.")
    address = address_of("serviceusage", f"{parent}/services/{name}")
    body = {"name": address.name, "parent": parent, "config": {"name": name}, "state": "DISABLED"}
    return address, services.state.objects.setdefault(address.key, CatalogueObject(body))


def get_service(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/services/{service}`."""
    return _service(services, call)[1].body


def _switcher(state: str, *members: str) -> Handler:
    def switch(services: CatalogueServices, call: ServiceCall) -> JsonBody:
        body_of(call, *members)
        address, found = _service(services, call)
        refuse_while_pending(found, address)
        after = {**found.body, "state": state}
        verb = "enable" if state == "ENABLED" else "disable"
        change = ObjectChange(verb, after, {"service": after}, f"{verb.capitalize()}ServiceResponse")
        return carry_out(services, address, change, now=call.now, style="longrunning")

    return switch


def generate_identity(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/services/{service}:generateServiceIdentity`: the service's own account in a project."""
    address, found = _service(services, call)
    name, number = address.id.partition(".")[0], project_number(call.part("project"))
    identity = {
        "email": f"service-{number}@gcp-sa-{name}.iam.gserviceaccount.com",
        "uniqueId": numeric_id(address.key, "identity"),
    }
    if found.hidden.get("identity") and not found.pending:
        return {"name": "operations/finished.DONE_OPERATION", "done": True, "response": identity}
    found.hidden = {**found.hidden, "identity": identity}
    change = ObjectChange("generateServiceIdentity", found.body, identity, "ServiceIdentity")
    return carry_out(services, address, change, now=call.now, style="longrunning")


# --- IAM and Spanner --------------------------------------------------------------------------------------------------


def _account_switcher(*, disabled: bool) -> Handler:
    def switch(services: CatalogueServices, call: ServiceCall) -> JsonBody:
        body_of(call)
        name = f"projects/{call.part('project')}/serviceAccounts/{call.part('account')}"
        address = address_of("iam", name)
        found = find(services, address)
        services.state.count += 1
        found.serial = services.state.count
        found.body = touched(address, {**found.body, "disabled": disabled}, call.now, found.serial)
        return {}

    return switch


def undelete_role(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/roles/{role}:undelete`."""
    body_of(call, "etag")
    place = next(f"{name}s/{call.part(name)}" for name in ("project", "organization") if name in (call.parts or {}))
    address = address_of("iam", f"{place}/roles/{call.part('role')}")
    found = find(services, address)
    if not found.body.get("deleted"):
        raise invalid_argument(f"The role named {address.name} is not deleted.")
    left = {name: value for name, value in found.body.items() if name != "deleted"}
    services.state.count += 1
    found.serial = services.state.count
    found.body = touched(address, left, call.now, found.serial)
    return found.body


_STATEMENT: Final = re.compile(r"\s*CREATE\s+DATABASE\s+[`\"]?([\w-]+)[`\"]?\s*", re.IGNORECASE)


_RETENTION: Final = re.compile(r"version_retention_period\s*(?:=|TO)\s*['\"]([^'\"]+)['\"]", re.IGNORECASE)


def create_database(services: CatalogueServices, call: ServiceCall) -> JsonBody | None:
    """`POST …/instances/{instance}/databases` with a statement, from which the id is read."""
    if not isinstance(call.body, dict) or "createStatement" not in call.body:
        return None
    body = body_of(call, "createStatement", "extraStatements", "databaseDialect", "encryptionConfig", "parent")
    found = _STATEMENT.fullmatch(str(body["createStatement"]))
    if found is None:
        raise invalid_argument(f"Error parsing Spanner DDL statement: {body['createStatement']}")
    name = f"projects/{call.part('project')}/instances/{call.part('instance')}/databases/{found[1]}"
    address = address_of("spanner", name)
    check_parent(services, address)
    if address.key in services.state.objects:
        raise api_words.already_exists(address)
    services.state.count += 1
    statements = body.get("extraStatements", [])
    dialect = {"databaseDialect": body.get("databaseDialect", "GOOGLE_STANDARD_SQL")}
    default = {"state": "READY", "versionRetentionPeriod": "1h"}
    full = {**created(address, dialect, call.now, services.state.count), **default}
    if statements and dialect["databaseDialect"] == "POSTGRESQL":
        raise invalid_argument("DDL statements other than CREATE DATABASE are not allowed for PostgreSQL databases.")
    full = services.faults.rewritten({**full, **_retention(statements)}, address.collection.kinds)
    hidden = {"statements": statements}
    services.state.objects[address.key] = CatalogueObject(full, services.state.count, hidden=hidden)
    change = ObjectChange("create", full, full, "Database")
    return carry_out(services, address, change, now=call.now, style="longrunning")


def _retention(statements: Sequence[str]) -> dict[str, str]:
    """How long versions are kept, where a statement sets it."""
    periods = [found[1] for one in statements if (found := _RETENTION.search(str(one)))]
    return {"versionRetentionPeriod": periods[-1]} if periods else {}


def get_statements(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/databases/{database}/ddl`."""
    return {"statements": find(services, _database(call)).hidden.get("statements", [])}


def add_statements(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`PATCH …/databases/{database}/ddl`: adds statements."""
    sent = body_of(call, "statements", "operationId", "protoDescriptors").get("statements", [])
    address = _database(call)
    found = find(services, address)
    refuse_while_pending(found, address)
    hidden = {**found.hidden, "statements": [*found.hidden.get("statements", []), *sent]}
    after = services.faults.rewritten({**found.body, **_retention(sent)}, address.collection.kinds)
    change = ObjectChange("updateDdl", after, hidden=hidden)
    return carry_out(services, address, change, now=call.now, style="longrunning")


def drop_database(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`DELETE …/databases/{database}`."""
    address = _database(call)
    refuse_while_pending(find(services, address), address)
    operations.remove(services.state, address.key)
    return {}


def _database(call: ServiceCall) -> ObjectAddress:
    name = f"projects/{call.part('project')}/instances/{call.part('instance')}/databases/{call.part('database')}"
    return address_of("spanner", name)


# --- Projects ---------------------------------------------------------------------------------------------------------


def put_billing(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`PUT …/projects/{project}/billingInfo`."""
    account = str(body_of(call, "billingAccountName", "name", "projectId").get("billingAccountName", ""))
    if _BILLING_ACCOUNT.fullmatch(account) is None:
        raise invalid_argument(f"Invalid billing account name: {account}")
    found = find(services, address_of("cloudresourcemanager", f"projects/{call.part('project')}"))
    found.hidden = {**found.hidden, "billingAccountName": account}
    return get_billing(services, call)


_BILLING_ACCOUNT: Final = re.compile(r"(?:billingAccounts/[\w-]+)?")


def get_billing(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/projects/{project}/billingInfo`."""
    project = call.part("project")
    account = find(services, address_of("cloudresourcemanager", f"projects/{project}")).hidden.get("billingAccountName")
    name = f"projects/{project}/billingInfo"
    return {
        "name": name,
        "projectId": project,
        "billingAccountName": account or "",
        "billingEnabled": bool(account),
    }


def get_project(services: CatalogueServices, call: ServiceCall) -> JsonBody | None:
    """`GET …/projects/{project}`: one that was created, or one that holds objects of any service."""
    project = call.part("project")
    holds = any(f"/projects/{project}/" in key for key in services.state.objects)
    if f"cloudresourcemanager/projects/{project}" in services.state.objects or not holds:
        return None
    number = project_number(project)
    return {"projectId": project, "projectNumber": number, "name": project, "lifecycleState": "ACTIVE"}


def delete_project(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`DELETE …/projects/{project}`: kept for a time, in which its id is taken."""
    address = address_of("cloudresourcemanager", f"projects/{call.part('project')}")
    found = find(services, address)
    refuse_while_pending(found, address)
    if found.body.get("lifecycleState") != "ACTIVE":
        raise invalid_argument(f"{address.name} was deleted already.")
    services.state.count += 1
    found.serial = services.state.count
    found.body = touched(address, {**found.body, "lifecycleState": "DELETE_REQUESTED"}, call.now, found.serial)
    return {}


_ROLE_PLACES: Final = ("/projects/{project}", "/organizations/{organization}")
_SECRET: Final = "/projects/{project}/secrets/{secret}"
_SERVICE: Final = "/projects/{project}/services/{service}"
_ACCOUNT: Final = "/projects/{project}/serviceAccounts/{account}"
_DATABASE: Final = "/projects/{project}/instances/{instance}/databases/{database}"
_DISABLE: Final = ("disableDependentServices", "checkIfServiceHasUsage")

SPECIAL_ROUTES: Final[Mapping[str, tuple[ServiceRoute, ...]]] = {
    "secretmanager": (
        Route("POST", f"{_SECRET}:addVersion", add_version),
        Route("GET", f"{_SECRET}/versions/{{version}}:access", access_version),
        Route("POST", f"{_SECRET}/versions/{{version}}:enable", _state_setter("ENABLED")),
        Route("POST", f"{_SECRET}/versions/{{version}}:disable", _state_setter("DISABLED")),
        Route("POST", f"{_SECRET}/versions/{{version}}:destroy", _state_setter("DESTROYED")),
        Route("GET", f"{_SECRET}/versions/{{version}}", get_version),
    ),
    "serviceusage": (
        Route("POST", f"{_SERVICE}:enable", _switcher("ENABLED")),
        Route("POST", f"{_SERVICE}:disable", _switcher("DISABLED", *_DISABLE)),
        Route("POST", f"{_SERVICE}:generateServiceIdentity", generate_identity),
        Route("GET", _SERVICE, get_service),
    ),
    "iam": (
        Route("POST", f"{_ACCOUNT}:enable", _account_switcher(disabled=False)),
        Route("POST", f"{_ACCOUNT}:disable", _account_switcher(disabled=True)),
        *ACCOUNT_KEY_ROUTES,
        *(Route("POST", f"{place}/roles/{{role}}:undelete", undelete_role) for place in _ROLE_PLACES),
    ),
    "spanner": (
        Route("POST", "/projects/{project}/instances/{instance}/databases", create_database),
        Route("GET", f"{_DATABASE}/ddl", get_statements),
        Route("PATCH", f"{_DATABASE}/ddl", add_statements),
        Route("DELETE", _DATABASE, drop_database),
    ),
    "cloudkms": KEY_ROUTES,
    "cloudbilling": (
        Route("GET", "/projects/{project}/billingInfo", get_billing),
        Route("PUT", "/projects/{project}/billingInfo", put_billing),
    ),
    "cloudresourcemanager": (
        Route("GET", "/projects/{project}", get_project),
        Route("DELETE", "/projects/{project}", delete_project),
    ),
    "compute": (*PEERING_ROUTES, *AGGREGATED_ROUTES),
    "servicenetworking": CONNECTION_ROUTES,
    "dns": DNS_ROUTES,
}
