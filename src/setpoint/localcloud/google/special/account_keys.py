"""Keys of service accounts, kept with their account. A private key is in the answer to its creation alone."""

import base64
import binascii
import hashlib
import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from setpoint.localcloud.api_errors import CloudApiError
from setpoint.localcloud.google import api_words
from setpoint.localcloud.google.operations import CatalogueObject
from setpoint.localcloud.google.outputs import ObjectAddress
from setpoint.localcloud.google.reads import CatalogueServices, address_of, body_of, find
from setpoint.localcloud.google.validation import invalid_argument
from setpoint.localcloud.routing import Route, ServiceCall
from setpoint.localcloud.schema import JsonBody

_Handler = Callable[[CatalogueServices, ServiceCall], JsonBody | None]

_ALGORITHMS: Final = ("KEY_ALG_UNSPECIFIED", "KEY_ALG_RSA_1024", "KEY_ALG_RSA_2048")
_PRIVATE_TYPES: Final = ("TYPE_UNSPECIFIED", "TYPE_PKCS12_FILE", "TYPE_GOOGLE_CREDENTIALS_FILE")
_PUBLIC_TYPES: Final = ("TYPE_NONE", "TYPE_X509_PEM_FILE", "TYPE_RAW_PUBLIC_KEY")
_MOST_KEYS: Final = 10
_LAST_DAY: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_UPLOADED_FOR: Final = timedelta(days=3650)


def _account(services: CatalogueServices, call: ServiceCall) -> tuple[ObjectAddress, CatalogueObject]:
    """The account; `-` in the place of its project is any project."""
    project, email = call.part("project"), call.part("account")
    if project == "-":
        end = f"/serviceAccounts/{email}"
        known = (key for key in services.state.objects if key.startswith("iam/") and key.endswith(end))
        project = next(known, "iam/projects/-").split("/")[2]
    address = address_of("iam", f"projects/{project}/serviceAccounts/{email}")
    return address, find(services, address)


def _choice(body: JsonBody, name: str, allowed: tuple[str, ...]) -> str:
    given = str(body.get(name) or allowed[-1])
    if given not in allowed:
        raise invalid_argument(f"Invalid value at '{name}': {given}.")
    return allowed[-1] if given == allowed[0] else given


def create_key(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/keys`."""
    body = body_of(call, "keyAlgorithm", "privateKeyType", "includePublicKeyData")
    algorithm, form = _choice(body, "keyAlgorithm", _ALGORITHMS), _choice(body, "privateKeyType", _PRIVATE_TYPES)
    address, account = _account(services, call)
    key_id, public = secrets.token_hex(20), _armoured("CERTIFICATE")
    key = {
        "name": f"{address.name}/keys/{key_id}",
        "keyAlgorithm": algorithm,
        "keyOrigin": "GOOGLE_PROVIDED",
        "keyType": "USER_MANAGED",
        "publicKeyData": _encoded(public),
        "validAfterTime": _time(call.now),
        "validBeforeTime": _time(_LAST_DAY),
    }
    _add(account, key_id, key)
    issued = _credentials(address, account, key_id) if form.endswith("CREDENTIALS_FILE") else secrets.token_bytes(64)
    return {**_shown(key), "privateKeyType": form, "privateKeyData": base64.b64encode(issued).decode()}


def upload_key(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`POST …/keys:upload`."""
    text = str(body_of(call, "publicKeyData").get("publicKeyData") or "")
    try:
        certificate = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise invalid_argument("Invalid value at 'public_key_data' (TYPE_BYTES), Base64 decoding failed.") from None
    if not certificate.strip().startswith(b"-----BEGIN CERTIFICATE-----"):
        raise invalid_argument("The certificate is not in X.509 PEM format.")
    address, account = _account(services, call)
    key_id = hashlib.sha1(certificate.strip(), usedforsecurity=False).hexdigest()
    if key_id in account.hidden.get("keys", {}):
        raise CloudApiError(409, "alreadyExists", f"Key {key_id} already exists.", "ALREADY_EXISTS")
    key = {
        "name": f"{address.name}/keys/{key_id}",
        "keyAlgorithm": "KEY_ALG_RSA_2048",
        "keyOrigin": "USER_PROVIDED",
        "keyType": "USER_MANAGED",
        "publicKeyData": _encoded(certificate),
        "validAfterTime": _time(call.now),
        "validBeforeTime": _time(call.now + _UPLOADED_FOR),
    }
    _add(account, key_id, key)
    return _shown(key)


def _add(account: CatalogueObject, key_id: str, key: JsonBody) -> None:
    keys = account.hidden.get("keys", {})
    if len(keys) >= _MOST_KEYS:
        raise CloudApiError(400, "failedPrecondition", "Precondition check failed.", "FAILED_PRECONDITION")
    account.hidden = {**account.hidden, "keys": {**keys, key_id: key}}


def list_keys(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/keys`: every key without its public part."""
    keys = _account(services, call)[1].hidden.get("keys", {})
    asked = call.query.get("keyTypes", "USER_MANAGED")
    if asked not in ("USER_MANAGED", "SYSTEM_MANAGED"):
        raise invalid_argument(f"Invalid value at 'key_types': {asked}.")
    found = [_shown(one) for one in keys.values() if one["keyType"] == asked]
    return {"keys": found} if found else {}


def _key(services: CatalogueServices, call: ServiceCall) -> tuple[CatalogueObject, str, JsonBody]:
    _, account = _account(services, call)
    key_id = call.part("key")
    found = account.hidden.get("keys", {}).get(key_id)
    if found is None:
        message = f"Service account key {key_id} does not exist."
        raise api_words.in_form_of("iam", CloudApiError(404, "notFound", message, "NOT_FOUND"))
    return account, key_id, found


def get_key(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`GET …/keys/{key}`: with its public part, in the form that is asked for."""
    form = call.query.get("publicKeyType", "TYPE_NONE")
    if form not in _PUBLIC_TYPES:
        raise invalid_argument(f"Invalid value at 'public_key_type': {form}.")
    found = _key(services, call)[2]
    if form == "TYPE_NONE":
        return _shown(found)
    if form == "TYPE_RAW_PUBLIC_KEY":
        text = base64.b64decode(found["publicKeyData"]).replace(b"CERTIFICATE", b"PUBLIC KEY")
        return {**_shown(found), "publicKeyData": _encoded(text)}
    return dict(found)


def delete_key(services: CatalogueServices, call: ServiceCall) -> JsonBody:
    """`DELETE …/keys/{key}`."""
    account, key_id, _ = _key(services, call)
    left = {name: one for name, one in account.hidden["keys"].items() if name != key_id}
    account.hidden = {**account.hidden, "keys": left}
    return {}


def _switcher(*, disabled: bool) -> _Handler:
    def switch(services: CatalogueServices, call: ServiceCall) -> JsonBody:
        body_of(call, "serviceAccountKeyDisableReason", "extendedStatusMessage")
        account, key_id, found = _key(services, call)
        left = {name: value for name, value in found.items() if name != "disabled"}
        changed = {**left, "disabled": True} if disabled else left
        account.hidden = {**account.hidden, "keys": {**account.hidden["keys"], key_id: changed}}
        return {}

    return switch


def _shown(key: JsonBody) -> JsonBody:
    return {name: value for name, value in key.items() if name != "publicKeyData"}


def _credentials(address: ObjectAddress, account: CatalogueObject, key_id: str) -> bytes:
    """A file as the client libraries read it."""
    found = {
        "type": "service_account",
        "project_id": address.project,
        "private_key_id": key_id,
        "private_key": _armoured("PRIVATE KEY").decode(),
        "client_email": account.body.get("email", address.id),
        "client_id": account.body.get("uniqueId", ""),
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return json.dumps(found, indent=2).encode()


def _armoured(what: str) -> bytes:
    text = base64.encodebytes(secrets.token_bytes(300)).decode()
    return f"-----BEGIN {what}-----\n{text}-----END {what}-----\n".encode()


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


_KEYS: Final = "/projects/{project}/serviceAccounts/{account}/keys"

ACCOUNT_KEY_ROUTES: Final[tuple[Route[CatalogueServices], ...]] = (
    Route("POST", _KEYS, create_key),
    Route("POST", f"{_KEYS}:upload", upload_key),
    Route("GET", _KEYS, list_keys, frozenset({"keyTypes"})),
    Route("POST", f"{_KEYS}/{{key}}:enable", _switcher(disabled=False)),
    Route("POST", f"{_KEYS}/{{key}}:disable", _switcher(disabled=True)),
    Route("GET", f"{_KEYS}/{{key}}", get_key, frozenset({"publicKeyType"})),
    Route("DELETE", f"{_KEYS}/{{key}}", delete_key),
)
