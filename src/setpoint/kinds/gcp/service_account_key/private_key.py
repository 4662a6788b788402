"""The Secret of a key: what goes into it, and whether what is in it is that of a key."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

import msgspec

from setpoint.engine.kind import Location
from setpoint.kinds.gcp.service_account_key.live import KeyBody
from setpoint.kinds.gcp.service_account_key.spec import PKCS12_FILE, ServiceAccountKeySpec

# The entries, by the form of the private key; and the id of a key whose file does not have it, in the form of one.
KEY_FILE: Final = "key.json"
_PKCS12_ENTRY: Final = "key.p12"
_ID_ENTRY: Final = "key-id"


def has_secret(spec: ServiceAccountKeySpec) -> bool:
    """Whether the private part of the key is generated, and told to us: not for one that exists, or was uploaded."""
    return not spec.publicKeyData and not spec.resourceID


def entry_of(spec: ServiceAccountKeySpec) -> str:
    """The entry of the Secret that has the private key."""
    return _PKCS12_ENTRY if spec.privateKeyType == PKCS12_FILE else KEY_FILE


def issued_entries(body: KeyBody, entry: str) -> dict[str, bytes]:
    """The entries for a new key; with its id, where the file does not say it."""
    try:
        value = base64.b64decode(body.privateKeyData, validate=True)
    except binascii.Error:
        value = body.privateKeyData.encode()
    if _id_in(value) == body.id:
        return {entry: value}
    return {entry: value, _ID_ENTRY: msgspec.json.encode({"private_key_id": body.id})}


def is_of(entries: Mapping[str, bytes], entry: str, location: Location) -> bool:
    """Whether the entries of a Secret are those of the key at `location`."""
    value, own = entries.get(entry, b""), location.rpartition("/")[2]
    return bool(value) and (_id_in(value) or _id_in(entries.get(_ID_ENTRY, b""))) == own


def _id_in(value: bytes) -> str:
    """The id of the key that a file of credentials is of; empty for any other text."""
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    named = found.get("private_key_id") if isinstance(found, dict) else None
    return named if isinstance(named, str) else ""
