"""Masking of secret values in a recording: the same value gets the same mask everywhere in one recording.

Equal masks keep every comparison in a plan as it was. The key of the masks is discarded after the recording.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from hashlib import sha256
from secrets import token_bytes
from typing import Final

from setpoint.core.redaction import LAST_APPLIED, REDACTED, is_secret, is_secret_list, redact_record
from setpoint.core.schema.shape import AtomicList, Field, KeyedList, ObjectShape, field_below, item_field
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.core.values.json_types import Json, JsonObject
from setpoint.core.values.yaml_documents import read_documents, write_document
from setpoint.engine.state import ENGINE_STATE
from setpoint.errors import SetpointError

# Members with secret values in any object: the text itself, or the `value` of an object such as `{value: …}`.
SECRET_FIELDS: Final = frozenset(
    {"password", "rootPassword", "privateKey", "clientKey", "clientSecret", "clientKeyData", "token", "kubeconfig"}
    | {"privateKeyData", "privateKeyPem", "pemPrivateKey", "authToken", "serviceKey", "oauth2ClientSecret"}
    | {"secretData", "sharedSecret", "rawKey", "rsaEncryptedKey", "diskEncryptionKeyRaw"}
)
# The member of a write-only field that says where the value is kept, and its only member.
_REFERENCE: Final = ("valueFrom", "secretKeyRef")
_MASK_LENGTH: Final = 24
_PRIVATE_PEM: Final = "PRIVATE KEY-----"
_KEY_ID: Final = re.compile(rb'^\s*{[^{}]*"private_key_id"\s*:\s*"([0-9a-f]{40})"')
# A text that is not YAML may hold a secret value if it has one of these words.
_SUSPECT: Final = re.compile(rf"secret|{'|'.join(SECRET_FIELDS)}", re.IGNORECASE)
# In a line of YAML: indentation and key, which messages name, then the value.
_KEY: Final = re.compile(r"(\s*(?:- +)*[^\s:'\"]+ *: |\s*(?:- +)*)(.*)", re.DOTALL)
_WORD: Final = re.compile(r"(?<![&*!\w])\w+")


@dataclass(frozen=True, slots=True)
class Masker:
    """Masks the secret values of one recording."""

    key: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    def mask(self, value: Json) -> Json:
        """`value` with every secret value masked."""
        if isinstance(value, Mapping):
            if is_secret(value):
                return self._mask_secret(value)
            items = value.get("items")
            if is_secret_list(value) and isinstance(items, list | tuple):
                return {**self._mask_members(value), "items": [self._mask_item(one) for one in items]}
            return self._mask_members(value)
        return [self.mask(one) for one in value] if isinstance(value, list | tuple) else value

    def mask_resource(self, document: JsonObject, shape: ObjectShape) -> Json:
        """A resource of this type with every secret value masked: also in write-only fields of other names."""
        return self.mask(self._mask_write_only(document, Field(shape)))

    def _mask_write_only(self, value: Json, field: Field) -> Json:
        if isinstance(value, Mapping):
            return {name: self._mask_typed_member(name, one, field) for name, one in value.items()}
        if isinstance(value, list | tuple) and isinstance(field.shape, KeyedList | AtomicList):
            return [self._mask_write_only(one, item_field(field)) for one in value]
        return value

    def _mask_typed_member(self, name: str, member: Json, parent: Field) -> Json:
        field = field_below(parent, name)
        # Those that are known by name are masked in responses, too: they get one mask.
        if field is None or name in SECRET_FIELDS:
            return member
        return self._mask_value(member) if field.write_only else self._mask_write_only(member, field)

    def _mask_value(self, value: Json) -> Json:
        """The value of a write-only field. Where a Secret has it, the reference to that is no secret."""
        if not isinstance(value, Mapping):
            return _each(value, self.mask_text)
        return {name: one if _is_reference(name, one) else self._mask_value(one) for name, one in value.items()}

    def mask_text(self, text: str) -> str:
        """The mask of a text; a redacted text stays as it is."""
        return text if text == REDACTED else self._mask_of(text.encode())

    def _mask_members(self, members: Mapping[str, Json]) -> dict[str, Json]:
        """The members masked, without kubectl's copy of the whole object."""
        return {name: self._mask_member(name, one) for name, one in members.items() if name != LAST_APPLIED}

    def _mask_item(self, item: Json) -> Json:
        """An item of a list of Secrets, which has no kind of its own."""
        return self._mask_secret(item) if isinstance(item, Mapping) else self.mask(item)

    def _mask_member(self, name: str, member: Json) -> Json:
        if name == ENGINE_STATE and isinstance(member, Mapping) and "step" in member:
            # What was written before is history: nothing is planned by it.
            return {**self._mask_members(member), "step": redact_record(member["step"], whole=True)}
        if name == "manifest" and isinstance(member, str):
            return self._mask_manifest(member)
        if name not in SECRET_FIELDS:
            return self.mask(member)
        if isinstance(member, str):
            return self.mask_text(member) if member else member
        value = member.get("value") if isinstance(member, Mapping) else None
        if isinstance(member, Mapping) and isinstance(value, str) and value:
            return {**member, "value": self.mask_text(value)}
        return self.mask(member)

    def _mask_manifest(self, text: str) -> Json:
        """A manifest in YAML text: unchanged if it holds no secret value, else masked; parsed, if it is one document.

        In a text that is not YAML every value is covered, in the same places, so that it is invalid in the same way.
        """
        try:
            parsed = [document.value for document in read_documents(text, "")]
        except SetpointError:
            return "".join(map(_covered, text.splitlines(keepends=True))) if _SUSPECT.search(text) else text
        masked = [self.mask(one) for one in parsed]
        if masked == parsed:
            return text
        return masked[0] if len(masked) == 1 else "---\n".join(map(write_document, masked))

    def _mask_secret(self, secret: Mapping[str, Json]) -> Json:
        return {
            **self._mask_members(secret),
            **{name: _each(secret.get(name), self.mask_text) for name in ("stringData",) if name in secret},
            **{name: _each(secret.get(name), self._mask_encoded) for name in ("data",) if name in secret},
        }

    def _mask_encoded(self, text: str) -> str:
        """The mask of a base64 text: decoded, it is the mask of the decoded text."""
        try:
            value = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return self.mask_text(text)
        return base64.b64encode(self._mask_of(value).encode()).decode()

    def _mask_of(self, value: bytes) -> str:
        # Owners tell private keys from public ones.
        mark = _PRIVATE_PEM if _PRIVATE_PEM.encode() in value else ""
        masked = f"hidden-{hmac.new(self.key, value, sha256).hexdigest()[:_MASK_LENGTH]}{mark}"
        # Which key a file of credentials is of is no secret: the name of the key has the same id.
        named = _KEY_ID.search(value)
        return masked if named is None else f'{{"private_key_id": "{named[1].decode()}", "private_key": "{masked}"}}'


def _covered(line: str) -> str:
    """A line of YAML with the words of its value replaced; keys, anchors and tags stay."""
    found = _KEY.fullmatch(line)
    return line if found is None else found[1] + _WORD.sub(lambda word: "x" * len(word[0]), found[2])


def _each(value: Json, mask: Callable[[str], str]) -> Json:
    """Every text and number in `value`, masked: what should be a map of texts may be anything."""
    if isinstance(value, Mapping):
        return {name: _each(member, mask) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_each(one, mask) for one in value]
    if isinstance(value, str):
        return mask(value)
    # A number stays one: it is refused in the same way.
    return value if isinstance(value, bool) or value is None else 0


def _is_reference(name: str, member: Json) -> bool:
    return name == _REFERENCE[0] and isinstance(member, Mapping) and member.keys() <= {_REFERENCE[1]}
