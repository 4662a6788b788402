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

# Names of members whose texts nobody may see, whatever is around them: as a text, or as the value of a choice.
SECRET_FIELDS: Final = frozenset(
    {"password", "rootPassword", "privateKey", "clientKey", "clientSecret", "clientKeyData", "token", "kubeconfig"}
)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MASK_LENGTH: Final = 24


@dataclass(frozen=True, slots=True)
class Masker:
    """One recording's stand-ins."""

    key: bytes = field(default_factory=lambda: token_bytes(32), repr=False)

    def over(self, value: Json) -> Json:
        """`value` with stand-ins for all that nobody may see."""
        if isinstance(value, Mapping):
            if is_secret(value):
                return self._mask_secret(value)
            return {name: self._mask_member(name, member) for name, member in value.items()}
        return [self.over(one) for one in value] if isinstance(value, list | tuple) else value

    def mask_text(self, text: str) -> str:
        """A stand-in for a text; what is told in its place elsewhere needs none."""
        return text if text == REDACTED else self._trace(text.encode())

    def _mask_member(self, name: str, member: Json) -> Json:
        if name == "manifest" and isinstance(member, str):
            return self._mask_manifest(member)
        if name not in SECRET_FIELDS:
            return self.over(member)
        if isinstance(member, str):
            return self.mask_text(member) if member else member
        value = member.get("value") if isinstance(member, Mapping) else None
        if isinstance(member, Mapping) and isinstance(value, str) and value:
            return {**member, "value": self.mask_text(value)}
        return self.over(member)

    def _mask_manifest(self, text: str) -> Json:
        """A manifest that was written as a text, as the map that it means, where anything in it has to be hidden."""
        said = _parsed_yaml(text)
        hidden = self.over(said)
        return text if hidden == said else hidden

    def _mask_secret(self, secret: Mapping[str, Json]) -> Json:
        return {
            **{name: self.over(member) for name, member in secret.items()},
            **{name: _mask_members(secret.get(name), self.mask_text) for name in ("stringData",) if name in secret},
            **{name: _mask_members(secret.get(name), self._mask_encoded) for name in ("data",) if name in secret},
            **({"metadata": _without_last_applied(secret["metadata"])} if "metadata" in secret else {}),
        }

    def _mask_encoded(self, text: str) -> str:
        """A stand-in for base64, which reads like that of the text itself."""
        try:
            value = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return self.mask_text(text)
        return base64.b64encode(self._trace(value).encode()).decode()

    def _trace(self, value: bytes) -> str:
        return f"hidden-{hmac.new(self.key, value, sha256).hexdigest()[:_MASK_LENGTH]}"


def _parsed_yaml(text: str) -> Json:
    try:
        documents = read_documents(text, "")
    except SetpointError:
        return None
    return documents[0].value if len(documents) == 1 else None


def _mask_members(members: Json, over: Callable[[str], str]) -> Json:
    if not isinstance(members, Mapping):
        return members
    return {name: over(value) if isinstance(value, str) else value for name, value in members.items()}


def _without_last_applied(metadata: Json) -> Json:
    """Without kubectl's copy of the whole: its values are in the clear."""
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return metadata
    return {**metadata, "annotations": {name: text for name, text in annotations.items() if name != _LAST_APPLIED}}
