"""Masking of secret values in a recording: the same value gets the same mask everywhere in one recording.

Equal masks keep every comparison in a plan as it was. The key of the masks is discarded after the recording.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_bytes
from typing import Final

from setpoint.core.redaction import REDACTED, is_secret
from setpoint.core.values.json_types import Json
from setpoint.core.values.yaml_documents import read_documents
from setpoint.errors import SetpointError

# Members with secret values in any object: the text itself, or the `value` of an object such as `{value: …}`.
SECRET_FIELDS: Final = frozenset(
    {"password", "rootPassword", "privateKey", "clientKey", "clientSecret", "clientKeyData", "token", "kubeconfig"}
)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MASK_LENGTH: Final = 24


@dataclass(frozen=True, slots=True)
class Masker:
    """Masks the secret values of one recording."""

    key: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    def mask(self, value: Json) -> Json:
        """`value` with every secret value masked."""
        if isinstance(value, Mapping):
            if is_secret(value):
                return self._mask_secret(value)
            return {name: self._mask_member(name, member) for name, member in value.items()}
        return [self.mask(one) for one in value] if isinstance(value, list | tuple) else value

    def mask_text(self, text: str) -> str:
        """The mask of a text; a redacted text stays as it is."""
        return text if text == REDACTED else self._mask_of(text.encode())

    def _mask_member(self, name: str, member: Json) -> Json:
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
        """A manifest in YAML text: unchanged if it holds no secret value, else parsed and masked."""
        parsed = _parsed_yaml(text)
        masked = self.mask(parsed)
        return text if masked == parsed else masked

    def _mask_secret(self, secret: Mapping[str, Json]) -> Json:
        return {
            **{name: self.mask(member) for name, member in secret.items()},
            **{name: _mask_members(secret.get(name), self.mask_text) for name in ("stringData",) if name in secret},
            **{name: _mask_members(secret.get(name), self._mask_encoded) for name in ("data",) if name in secret},
            **({"metadata": _without_last_applied(secret["metadata"])} if "metadata" in secret else {}),
        }

    def _mask_encoded(self, text: str) -> str:
        """The mask of a base64 text: decoded, it is the mask of the decoded text."""
        try:
            value = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return self.mask_text(text)
        return base64.b64encode(self._mask_of(value).encode()).decode()

    def _mask_of(self, value: bytes) -> str:
        return f"hidden-{hmac.new(self.key, value, sha256).hexdigest()[:_MASK_LENGTH]}"


def _parsed_yaml(text: str) -> Json:
    try:
        documents = read_documents(text, "")
    except SetpointError:
        return None
    return documents[0].value if len(documents) == 1 else None


def _mask_members(members: Json, mask: Callable[[str], str]) -> Json:
    if not isinstance(members, Mapping):
        return members
    return {name: mask(value) if isinstance(value, str) else value for name, value in members.items()}


def _without_last_applied(metadata: Json) -> Json:
    """Metadata without the annotation in which kubectl copies the whole object, secret values included."""
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return metadata
    return {**metadata, "annotations": {name: text for name, text in annotations.items() if name != _LAST_APPLIED}}
