"""With a tenant, a spec may name objects of the tenant's project, and of those that an administrator shares with it.

The service checks most references with the rights of the caller, which is the operator: a subscription to a topic, a
disk from a snapshot, a service account to act as.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from setpoint.catalogue.rows import FieldFacts
from setpoint.core.values.paths import Path
from setpoint.kinds.gcp.generic.placement import PlacedResource
from setpoint.kinds.gcp.generic.spec_types import choices_of, is_choice

_LINK: Final = re.compile(r"(?:\S*/)?projects/([^/\s]+)(?:/\S*)?")
_ACCOUNT: Final = re.compile(r"\S+@([^@\s]+)\.iam\.gserviceaccount\.com")
_DEFAULT_ACCOUNT: Final = re.compile(r"([^@\s]+?)(?:-compute)?@(?:developer|appspot)\.gserviceaccount\.com")
# Accounts of Google's own services: no other account can act as one.
_SERVICE_AGENT: Final = re.compile(r"gcp-sa-[a-z0-9-]+")
# The service encrypts with a key on behalf of the project that the object is in, and IAM decides about that.
_ANY_PROJECT: Final = frozenset({"KMSCryptoKey", "KMSCryptoKeyVersion"})
_IMAGES: Final = frozenset({"ComputeImage"})
# Projects with images for everyone.
_PUBLIC_IMAGES: Final = frozenset(
    {
        *("almalinux-cloud", "centos-cloud", "cloud-hpc-image-public", "confidential-vm-images", "cos-cloud"),
        *("debian-cloud", "deeplearning-platform-release", "fedora-cloud", "fedora-coreos-cloud", "ml-images"),
        *("opensuse-cloud", "oracle-linux-cloud", "rhel-cloud", "rhel-sap-cloud", "rocky-linux-cloud", "suse-cloud"),
        *("suse-sap-cloud", "ubuntu-os-accelerator-images", "ubuntu-os-cloud", "ubuntu-os-pro-cloud"),
        *("windows-cloud", "windows-sql-cloud"),
    }
)


def require_own_projects(
    tree: Mapping[str, Any], fields: Mapping[str, FieldFacts], at: Path, placed: PlacedResource
) -> None:
    """ProjectRefused for a field that names an object of a project that the tenant may not use.

    `tree` is what is sent: references are texts in it.
    """
    for name, value in tree.items():
        _require(value, fields.get(name) or FieldFacts("any"), at / name, placed)


def _require(value: Any, facts: FieldFacts, at: Path, placed: PlacedResource) -> None:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        project = named_project(value, facts)
        if project is not None:
            placed.projects.require_shared(project, placed.resource, str(at))
    elif isinstance(value, Mapping):
        inside = _fields_of(facts)
        for name, one in value.items():
            _require(one, inside.get(name, facts if facts.ref is not None else FieldFacts("any")), at / name, placed)
    elif isinstance(value, list):
        for position, one in enumerate(value):
            _require(one, facts, at / position, placed)


def _fields_of(facts: FieldFacts) -> Mapping[str, FieldFacts]:
    return choices_of(facts) if is_choice(facts) else facts.fields


def named_project(text: str, facts: FieldFacts) -> str | None:
    """The project of the object that a text names; None when it names none, or one that any project may use."""
    kinds = frozenset(facts.ref.kinds) if facts.ref is not None else frozenset()
    if kinds and kinds <= _ANY_PROJECT:
        return None
    found = _LINK.fullmatch(text)
    if found is not None:
        return None if found[1] in _PUBLIC_IMAGES and kinds <= _IMAGES else found[1]
    if kinds == {"Project"}:
        return text.partition("/")[0] or None
    return _project_of_account(text)


def _project_of_account(text: str) -> str | None:
    """The project of a service account, by its e-mail address."""
    found = _ACCOUNT.fullmatch(text)
    if found is not None:
        # That of a project in a domain has the two the other way round: `id.example.com`.
        own, _, domain = found[1].partition(".")
        return None if _SERVICE_AGENT.fullmatch(own) else f"{domain}:{own}" if domain else own
    found = _DEFAULT_ACCOUNT.fullmatch(text)
    return None if found is None else found[1]
