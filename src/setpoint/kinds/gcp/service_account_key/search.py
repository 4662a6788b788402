"""Searches: what stands in the place of the id of a key that the service has not made yet.

`ACCOUNT/keys/~UID` is a creation that has not begun. `ACCOUNT/keys/~UID~TIME~KNOWN~` is one that began then: the key is
none of those known from before, and is not much younger. `ACCOUNT/keys/~UID~DIGEST~` is a key that was uploaded, by the
digest of its certificate.
"""

import base64
import binascii
import re
from datetime import datetime, timedelta
from typing import Final

from setpoint.core.values.canonical import sha256_hex
from setpoint.core.values.deferred_dataclass import dataclass, replace
from setpoint.engine.kind import Location
from setpoint.errors import UserError

_MARK: Final = "~"
# A request takes less than that to arrive, or never does; and so much may two clocks differ.
_LATEST: Final = timedelta(minutes=10)
_ARMOUR: Final = re.compile(rb"-----[A-Z ]+-----|\s")
_LOCATION: Final = re.compile(r"(?P<collection>projects/[^/]+/serviceAccounts/[^/]+/keys)/(?P<rest>[^/]+)")


@dataclass(frozen=True, slots=True)
class KeySearch:
    """A search for the key of a resource."""

    collection: str
    uid: str
    # Of a key that is uploaded: the digest of its certificate.
    certificate: str = ""
    # When the creation began, and the ids of the keys that were there; none before.
    begun: str = ""
    known: frozenset[str] = frozenset()

    @staticmethod
    def parse(location: Location) -> "KeySearch | None":
        """The search that a location names; None for the location of a key. UserError for any other text."""
        found = _LOCATION.fullmatch(location)
        if found is None:
            raise UserError(
                f"the location on record, {location!r}, is none that this kind has: correct status.setpoint.location, "
                "or remove it to leave the key as it is"
            )
        mark, _, text = found["rest"].partition(_MARK)
        if mark or not text:
            return None
        uid, *more = text.split(_MARK)
        match more:
            case [certificate, ""]:
                return KeySearch(found["collection"], uid, certificate)
            case [begun, known, ""]:
                return KeySearch(found["collection"], uid, "", begun, frozenset(filter(None, known.split(","))))
            case _:
                return KeySearch(found["collection"], uid)

    @property
    def location(self) -> Location:
        """The location that names this search."""
        parts = [self.uid]
        if self.certificate:
            parts += [self.certificate, ""]
        elif self.begun:
            parts += [self.begun, ",".join(sorted(self.known)), ""]
        return Location(f"{self.collection}/{_MARK}{_MARK.join(parts)}")

    def beginning(self, now: str, known: frozenset[str]) -> "KeySearch":
        """The search for what a creation makes that begins now."""
        return replace(self, begun=now, known=known)

    def may_be(self, own_id: str, valid_after: str) -> bool:
        """Whether a key may be the one that the creation made; not one of before, nor one that is much younger."""
        if own_id in self.known:
            return False
        try:
            return datetime.fromisoformat(valid_after) <= datetime.fromisoformat(self.begun) + _LATEST
        except (ValueError, TypeError):
            return True

    def found(self, own_id: str) -> Location:
        """The location of the key with this id."""
        return Location(f"{self.collection}/{own_id}")


def certificate_digest(encoded: str) -> str:
    """The digest of a certificate in base64: the same whatever its line ends are."""
    try:
        text = base64.b64decode(encoded.encode(), altchars=b"-_" if set(encoded) & {"-", "_"} else None)
    except (binascii.Error, UnicodeEncodeError):
        return sha256_hex(encoded.encode(errors="replace"))[:32]
    return sha256_hex(_ARMOUR.sub(b"", text))[:32]
