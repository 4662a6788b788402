"""The live key: its calls and answers. Its private part is in the answer to its creation alone."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from setpoint.clients.google.calls import GoogleApi, GoogleCall
from setpoint.engine.kind import Location, Present
from setpoint.kinds.gcp.service_account_key.search import certificate_digest

_API: Final = GoogleApi("iam.googleapis.com", "/v1")
UPLOADED: Final = "USER_PROVIDED"


class LiveKey(Struct, frozen=True):
    """The live key, as far as it is compared."""

    keyAlgorithm: str = ""
    # Of a key that was uploaded: the digest of its certificate.
    certificate: str = ""


class KeyBody(Struct, frozen=True):
    """A key in an answer. Its private part is in the answer to its creation alone, and is never shown."""

    name: str
    keyAlgorithm: str = ""
    keyOrigin: str = ""
    publicKeyData: str = ""
    validAfterTime: str = ""
    validBeforeTime: str = ""
    disabled: bool = False
    privateKeyData: str = ""

    def __repr__(self) -> str:
        return f"KeyBody({self.name!r}, …)"

    @property
    def id(self) -> str:
        """The id that the service made."""
        return self.name.rpartition("/")[2]


class KeyList(Struct, frozen=True):
    """The keys of an account."""

    keys: list[KeyBody] = []


KEY_DECODER: Final = msgspec.json.Decoder(KeyBody)
LIST_DECODER: Final = msgspec.json.Decoder(KeyList)


def key_call(location: str, query: Mapping[str, str] | None = None, *, method: str = "") -> GoogleCall:
    """A call on a key, or on the keys of an account."""
    return GoogleCall(_API, tuple(location.split("/")), query or {}, method=method)


def present_key(body: KeyBody, location: Location, certificate: str = "") -> Present[LiveKey]:
    """The key, without its private part."""
    if body.keyOrigin == UPLOADED and not certificate:
        certificate = certificate_digest(body.publicKeyData)
    live = LiveKey(body.keyAlgorithm, certificate)
    shown: dict[str, Any] = {
        "name": str(location),
        "publicKey": body.publicKeyData,
        "validAfter": body.validAfterTime,
        "validBefore": body.validBeforeTime,
        "disabled": body.disabled,
    }
    outputs = {name: value for name, value in shown.items() if value}
    return Present(live, outputs=outputs, whole=outputs, location=location)
