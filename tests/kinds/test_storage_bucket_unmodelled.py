"""Settings of a bucket that are kept: those that the spec does not model, and unmanaged ones."""

import pytest

from setpoint.core.values.json_types import JsonObject
from setpoint.kinds.gcp.storage_bucket.requests import patch_body
from setpoint.localcloud.schema import merge_patch
from tests.kinds.kind_harness import bucket
from tests.kinds.test_storage_bucket_laws import KIND, intent_for, plan_over, read, sent, wanted_over

UNMANAGED = "cnrm.cloud.google.com/unmanaged"
LIVE = {"name": "b", "location": "US", "storageClass": "STANDARD", "labels": {"managed-by-cnrm": "true"}}
KEY = "projects/p/locations/eu/keyRings/r/cryptoKeys/k"


@pytest.mark.parametrize("autoclass", [{}, {"autoclass": {"enabled": False}}])
def test_no_terminal_class_is_sent_while_unmanaged_autoclass_is_off(autoclass: JsonObject) -> None:
    declared = {"autoclass": {"enabled": True, "terminalStorageClass": "ARCHIVE"}}
    intent = intent_for(bucket(declared, annotations={UNMANAGED: "spec.autoclass.enabled"}))

    assert plan_over(intent, read({**LIVE, **autoclass})).changes == ()


def test_removing_a_key_keeps_the_unmodelled_encryption_settings() -> None:
    enforced = {"customerSuppliedEncryptionEnforcementConfig": {"restrictionMode": "FullyRestricted"}}
    intent, members = intent_for(bucket({})), {**LIVE, "encryption": {"defaultKmsKeyName": KEY, **enforced}}
    view = KIND.view(read(members))
    (write,) = plan_over(intent, read(members)).writes

    body = patch_body(intent, wanted_over(intent, view), write, view)

    assert merge_patch(members, sent(body))["encryption"] == enforced
