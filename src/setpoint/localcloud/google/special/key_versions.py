"""Versions of Cloud KMS keys: kept with their key, destroyed and restored."""

from collections.abc import Callable
from typing import Final

from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.clock import timestamp
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.localcloud.google.outputs import ObjectAddress
from setpoint.localcloud.google.reads import CatalogueServices, address_of, body_of, find
from setpoint.localcloud.routing import Route, ServiceCall
from setpoint.localcloud.schema import JsonBody

_Handler = Callable[[CatalogueServices, ServiceCall], JsonBody | None]


def _key(services: CatalogueServices, call: ServiceCall) -> tuple[ObjectAddress, CatalogueObject, list[JsonBody]]:
    """A key and its versions; it has one from the start, unless its creation said otherwise."""
    parts = [call.part(name) for name in ("project", "location", "ring", "key")]
    address = address_of("cloudkms", "projects/{}/locations/{}/keyRings/{}/cryptoKeys/{}".format(*parts))
    found = find(services, address)
    without_first = found.hidden.get("asked", {}).get("skipInitialVersionCreation") == "true"
    first = [] if without_first else [_new_version(address, found, 1, call)]
    return address, found, found.hidden.get("versions", first)


def _new_version(address: ObjectAddress, key: CatalogueObject, number: int, call: ServiceCall) -> JsonBody:
    template = key.body.get("versionTemplate", {})
    return {
        "name": f"{address.name}/cryptoKeyVersions/{number}",
        "state": "ENABLED",
        "algorithm": template.get("algorithm", "GOOGLE_SYMMETRIC_ENCRYPTION"),
        "protectionLevel": template.get("protectionLevel", "SOFTWARE"),
        "createTime": key.body.get("createTime", timestamp(call.now)),
    }


def list_key_versions(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/cryptoKeyVersions`."""
    versions = _key(services, call)[2]
    return {"cryptoKeyVersions": versions, "totalSize": len(versions)} if versions else {}


def create_key_version(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/cryptoKeyVersions`."""
    address, found, versions = _key(services, call)
    made = {**_new_version(address, found, len(versions) + 1, call), "createTime": timestamp(call.now)}
    found.hidden = {**found.hidden, "versions": [*versions, made]}
    return made


def get_key_version(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/cryptoKeyVersions/{version}`."""
    address, _, versions = _key(services, call)
    name = f"{address.name}/cryptoKeyVersions/{call.part('version')}"
    for one in versions:
        if one["name"] == name:
            return one
    raise CloudApiError(404, "notFound", f"CryptoKeyVersion {name} not found.", "NOT_FOUND")


def _key_version_setter(state: str, *, of: str) -> _Handler:
    def set_state(services: CatalogueServices, call: ServiceCall) -> JsonBody:
        body_of(call, "name")
        before = get_key_version(services, call)
        if before["state"] not in of.split():
            message = f"{before['name']} is not {of}, current state is: {before['state']}."
            raise CloudApiError(400, "failedPrecondition", message, "FAILED_PRECONDITION")
        after = {**before, "state": state}
        _, found, versions = _key(services, call)
        found.hidden = {**found.hidden, "versions": [after if one == before else one for one in versions]}
        return after

    return set_state


_VERSIONS: Final = "/projects/{project}/locations/{location}/keyRings/{ring}/cryptoKeys/{key}/cryptoKeyVersions"
_PARAMETERS: Final = frozenset({"pageSize", "pageToken", "filter", "orderBy", "view"})

KEY_ROUTES: Final[tuple[Route[CatalogueServices], ...]] = (
    Route("GET", _VERSIONS, list_key_versions, _PARAMETERS),
    Route("POST", _VERSIONS, create_key_version),
    Route("GET", f"{_VERSIONS}/{{version}}", get_key_version),
    Route("POST", f"{_VERSIONS}/{{version}}:destroy", _key_version_setter("DESTROY_SCHEDULED", of="ENABLED DISABLED")),
    Route("POST", f"{_VERSIONS}/{{version}}:restore", _key_version_setter("DISABLED", of="DESTROY_SCHEDULED")),
)
