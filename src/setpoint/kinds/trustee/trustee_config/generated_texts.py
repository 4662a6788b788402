"""Recognises the texts that an operator generates, this one or trustee-operator before it: they are not edits.

Settings are recognised by their meaning, policies by their text without comments and layout. Of the texts of
trustee-operator only digests are kept.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from setpoint.core.values.canonical import digest, same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at, remove_at
from setpoint.kinds.trustee.trustee_config.kbs_toml import TLS_KEYS, TlsSettings, kbs_toml
from setpoint.kinds.trustee.trustee_config.policies import RESOURCE_POLICIES, ResourceAccess
from setpoint.kinds.trustee.trustee_config.spec import INTERMEDIATE, ProfileType

# Section, key, the insecure value, and what to do. Servers before 0.21 know some of them by other names.
_INSECURE: Final = (
    ("http_server", "insecure_http", True, "clients are served without TLS: write false"),
    ("attestation_token", "insecure_header_jwk", True, "a token may name the key that signed it: write false"),
    ("attestation_token", "insecure_key", True, "a token may name the key that signed it: write false"),
    ("admin", "authorization_mode", "InsecureAllowAll", 'every client is an administrator: write "DenyAll"'),
    ("admin", "type", "InsecureAllowAll", 'every client is an administrator: write "DenyAll"'),
    ("admin", "insecure_api", True, "every client is an administrator: write false"),
)


def profile_of(text: Json) -> ProfileType | None:
    """The profile whose generated `kbs-config.toml` means the same as `text`, TLS aside; None for an edited file."""
    settings = _parsed(text)
    return None if settings is None else _known_settings().get(_settings_digest(settings))


def access_of(text: Json) -> ResourceAccess | None:
    """Which of the generated resource policies `text` is; None for an edited one."""
    return _known_policies().get(_policy_digest(text)) if isinstance(text, str) else None


def contradictions(text: str) -> Iterator[str]:
    """What in a `kbs-config.toml` contradicts the restricted profile, and what to write instead."""
    settings = _parsed(text) or {}
    for section, key, insecure, advice in _INSECURE:
        part = settings.get(section)
        if isinstance(part, Mapping) and part.get(key) == insecure:
            yield f"{section}.{key} contradicts the profile {ProfileType.RESTRICTED}: {advice}"


# --- Settings --------------------------------------------------------------------------------------------------------

_LOCAL_JSON: Final = Path(("storage_backend", "backends", "local_json"))
_VERIFIERS: Final = Path(("attestation_service", "verifier_config"))
# Some versions of trustee-operator write them, others leave them to the server.
_OPTIONAL: Final[tuple[tuple[Path, Json], ...]] = (
    (_VERIFIERS / "snp_verifier", {"vcek_sources": [{"type": "OfflineStore"}, {"type": "KDS"}]}),
    (
        _VERIFIERS / "dcap_verifier",
        {"collateral_service": "https://api.trustedservices.intel.com/sgx/certification/v4/"},
    ),
    (
        _VERIFIERS / "nvidia_verifier",
        {"type": "Remote", "verifier_url": "https://nras.attestation.nvidia.com/v4/attest"},
    ),
    (_VERIFIERS, {}),
    (Path(("http_server", "worker_count")), 4),
)
# trustee-operator's up to 0.19.
_FORMER_SETTINGS: Final = {
    "327f38422d94d01fea212aaa81333b5f51009bf578b4c5aae0c8e625d7c818c8": ProfileType.PERMISSIVE,
    "8b58cf69a9b3059e395870cf0808cfdfd5737aa6a4d8879863b3f318360bad63": ProfileType.RESTRICTED,
    "328b6641cb0458616b1c25b7fb81f6301103d9397263abb0a30cecdded71d469": ProfileType.RESTRICTED,
}


@cache
def _known_settings() -> Mapping[str, ProfileType]:
    made = {profile: _parsed(kbs_toml(profile, TlsSettings(INTERMEDIATE))) for profile in ProfileType}
    ours = {_settings_digest(settings): profile for profile, settings in made.items() if settings is not None}
    return {**_FORMER_SETTINGS, **ours}


def _settings_digest(settings: Mapping[str, Any]) -> str:
    """The digest of what the settings mean, without those of TLS and those that every profile has."""
    server = settings.get("http_server")
    meaning: Json = dict(settings)
    if isinstance(server, Mapping):
        meaning = {**settings, "http_server": {key: one for key, one in server.items() if key not in TLS_KEYS}}
    for path, value in _OPTIONAL:
        found = get_at(meaning, path)
        if not isinstance(found, Missing) and same(found, value):
            meaning = remove_at(meaning, path)
    # The key of this directory was renamed.
    directory = get_at(meaning, _LOCAL_JSON)
    named = list(directory.values()) if isinstance(directory, Mapping) else None
    return digest([remove_at(meaning, _LOCAL_JSON), named])


def _parsed(text: Json) -> Mapping[str, Any] | None:
    """The settings; None for a text that is not TOML, or has dates, which no generated one has."""
    if not isinstance(text, str):
        return None
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return settings if _is_json(settings) else None


def _is_json(value: object) -> bool:
    match value:
        case Mapping():
            return all(map(_is_json, value.values()))
        case list():
            return all(map(_is_json, value))
        case _:
            return isinstance(value, str | int | float | bool)


# --- Policies --------------------------------------------------------------------------------------------------------

_FORMER_POLICIES: Final = {
    "63a9ae4bc2e79b81f54d9586d34ce66868cd00a784c8e6792671ded8322aea26": ResourceAccess.ALL,
    "17d57362b4542a66341100113f252e11d0bd1523d072b38f269f9ca7f460db83": ResourceAccess.ATTESTED,
    "e9689e9b9102f96651f7bd2975b7b5caaca02ce0bba3683568c4955bb0b87fc0": ResourceAccess.ATTESTED,
    "a930381439756c8c24e843d557480b25c21c80c08177ec9613fbf431c5f04829": ResourceAccess.SECURE_EXECUTION,
}


@cache
def _known_policies() -> Mapping[str, ResourceAccess]:
    return {**_FORMER_POLICIES, **{_policy_digest(text): access for access, text in RESOURCE_POLICIES.items()}}


def _policy_digest(text: str) -> str:
    """The digest of the text without comments, blank lines and the width of white space."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return digest([line for line in lines if line and not line.startswith("#")])
