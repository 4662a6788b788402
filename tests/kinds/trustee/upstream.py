"""trustee-operator's own rules, to compare ours with: its merge at several versions, and its spelling of ciphers."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from setpoint.core.merge.merge_report import FieldResolution, merge_report
from setpoint.core.merge.threeway import EditableFields, EntryMap, LastGenerated, WholeValue, merge, remember
from setpoint.core.values.canonical import same
from setpoint.core.values.json_types import Json, Missing
from setpoint.core.values.paths import Path, get_at
from setpoint.errors import ManifestInvalid
from setpoint.kinds.trustee.trustee_config import TlsConfig, TlsSettings, editable_fields, openssl_name, tls_settings
from setpoint.kinds.trustee.trustee_config.spec import check_tls
from tests.kinds.trustee.cases import full

ATTESTATION_POLICY: Final = Path.parse("kbsAttestationPolicyConfigMapName")
CERT_STORE: Final = Path.parse("ibmSEConfigSpec.certStorePvc")


class MergeDialect(StrEnum):
    """A set of editable fields: ours, or that of a version of trustee-operator."""

    SETPOINT = "setpoint"
    HEAD = "head"
    V0_17_TO_V0_19 = "v0.17-v0.19"
    BRIEF = "brief"
    INITIAL = "initial"


_WITHOUT_POLICY: Final = (MergeDialect.HEAD, MergeDialect.V0_17_TO_V0_19)
_EXCLUDES_OWN_CLAIM: Final = (MergeDialect.SETPOINT, MergeDialect.HEAD)
_ONLY_INITIAL: Final = ("kbsHttpsKeySecretName", "kbsHttpsCertSecretName", "tdxConfigSpec.kbsTdxConfigMapName")


def dialect_fields(parent: str, dialect: MergeDialect) -> EditableFields:
    """The editable fields of a KbsConfig in that dialect."""
    fields = dict(editable_fields(parent))
    if dialect in _WITHOUT_POLICY:
        del fields[ATTESTATION_POLICY]
    if dialect not in _EXCLUDES_OWN_CLAIM:
        fields[CERT_STORE] = WholeValue()
    if dialect is MergeDialect.INITIAL:
        fields |= {Path.parse(field): WholeValue() for field in _ONLY_INITIAL}
    return fields


@dataclass(frozen=True, slots=True)
class MergedKbsConfig:
    """A merged spec, the merge report, and what the next merge needs.

    `spec` is the live one itself when nothing is to be written. `changed` are the fields that differ from the generated
    ones, detected as trustee-operator detects manual changes: without the last generated values.
    """

    spec: Json
    findings: tuple[FieldResolution, ...]
    conflicts: tuple[Path, ...]
    changed: tuple[Path, ...]
    memory: LastGenerated


def merge_kbs_config(last: LastGenerated | None, live: Json, generated: Json, table: EditableFields) -> MergedKbsConfig:
    """The three-way merge of a KbsConfig's spec; two-way, as trustee-operator's, without the last generated values."""
    merged = merge(last, live, generated, table)
    return MergedKbsConfig(
        spec=merged.value,
        findings=merge_report("KbsConfig", merged),
        conflicts=merged.conflicts,
        changed=_changed(live, generated, table),
        memory=remember(generated, table),
    )


def _changed(live: Json, generated: Json, table: EditableFields) -> tuple[Path, ...]:
    """Fields of `table` that are not empty, and differ from the generated ones; in the order of the table."""
    found = []
    for path, edits in table.items():
        entries = isinstance(edits, EntryMap)
        mine, ours = (_held(get_at(side, path), entries=entries) for side in (live, generated))
        known = (ours, *edits.own) if isinstance(edits, WholeValue) else (ours,)
        if mine is not None and not any(same(mine, one) for one in known):
            found.append(path)
    return tuple(found)


def _held(value: Json | Missing, *, entries: bool) -> Json:
    if isinstance(value, Missing):
        return None
    if entries and isinstance(value, dict):
        return {name: entry for name, entry in value.items() if entry is not None} or None
    held: Json = full(value)
    return held


# --- TLS -------------------------------------------------------------------------------------------------------------

_SUITE: Final = re.compile(r"TLS_(\w+?)_WITH_(\w+?)(?:_(MD5|SHA|SHA256|SHA384))?")
_CHACHA: Final = "CHACHA20_POLY1305"
_TRIPLE_DES: Final = "3DES_EDE_CBC"


def upstream_tls_settings(config: TlsConfig | None) -> TlsSettings:
    """The TLS settings with trustee-operator's names of ciphers."""
    settings = tls_settings(config)
    suites = (config.ciphers or ()) if config is not None and settings.ciphers else ()
    return msgspec.structs.replace(settings, ciphers=upstream_cipher_list(suites))


def upstream_cipher_list(suites: "list[str] | tuple[str, ...]") -> str:
    """The suites as trustee-operator's colon-separated list."""
    return ":".join(map(upstream_name, suites))


def upstream_name(suite: str) -> str:
    """The suite as trustee-operator spells it: by a rule of thumb, except for some that it knows."""
    found = _SUITE.fullmatch(suite)
    if found is None and suite.startswith(("TLS_AES_", "TLS_CHACHA20_")):
        return suite
    if found is not None and _is_known(found[1], found[2]):
        return openssl_name(suite)
    bare = suite.removeprefix("TLS_").replace("_WITH_", "-", 1)
    return re.sub("_(?=[0-9])", "", bare).replace("_", "-")


def _is_known(exchange: str, cipher: str) -> bool:
    match exchange:
        case "RSA":
            return cipher == _TRIPLE_DES or re.fullmatch("AES_(128|256)_(CBC|GCM)", cipher) is not None
        case "ECDHE_RSA":
            return cipher in (_CHACHA, _TRIPLE_DES)
        case "ECDHE_ECDSA" | "DHE_RSA":
            return cipher == _CHACHA
        case _:
            return False


def read_tls_config(tree: "dict[str, Json] | None") -> TlsConfig | None:
    """A `tlsConfig` as a cluster decodes it: empty text is left out; ManifestInvalid for an invalid one."""
    if tree is None:
        return None
    values = {name: value for name, value in tree.items() if value not in ("", None)}
    try:
        config = msgspec.convert(values, TlsConfig)
    except msgspec.ValidationError as error:
        raise ManifestInvalid(f"spec.tlsConfig: {error}") from error
    check_tls(config)
    return config
