"""The plural of the name of a kind."""

import pytest

from setpoint.core.unstructured import plural_name


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("KMSKeyRing", "kmskeyrings"),
        ("ComputeAddress", "computeaddresses"),
        ("DNSPolicy", "dnspolicies"),
        ("ComputeVPNGateway", "computevpngateways"),
        ("FirestoreIndex", "firestoreindexes"),
        ("NetworkServicesMesh", "networkservicesmeshes"),
    ],
)
def test_a_name_has_its_plural_in_english(kind: str, plural: str) -> None:
    assert plural_name(kind) == plural
