"""A key of a service account in a cluster: its private part is in a Secret that goes with the resource."""

import base64
import json
from typing import Any, Final

from tests.cluster.polling import until
from tests.cluster.running.controller_harness import ControllerHarness

PROJECT: Final = "some-project"
EMAIL: Final = f"app-account@{PROJECT}.iam.gserviceaccount.com"
ACCOUNTS: Final = f"/iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts"
KEYS: Final = f"{ACCOUNTS}/{EMAIL}/keys"
MANIFEST: Final[Any] = {
    "apiVersion": "iam.cnrm.cloud.google.com/v1beta1",
    "kind": "IAMServiceAccountKey",
    "metadata": {"name": "app-key"},
    "spec": {"serviceAccountRef": {"external": EMAIL}},
}


def _live(harness: ControllerHarness) -> list[str]:
    """The ids of the keys of the account."""
    found: Any = harness.live(KEYS)
    return [one["name"].rpartition("/")[2] for one in (found or {}).get("keys", [])]


def _kept(harness: ControllerHarness) -> str:
    """The id of the key in the Secret; empty where there is none."""
    secret: Any = harness.kubectl.get("secret/app-key")
    text = (secret or {}).get("data", {}).get("key.json", "")
    return str(json.loads(base64.b64decode(text))["private_key_id"]) if text else ""


def test_a_key_is_kept_replaced_when_its_secret_is_deleted_and_gone_with_its_resource(
    harness: ControllerHarness,
) -> None:
    kubectl = harness.kubectl
    harness.in_cloud(lambda cloud: cloud.call("POST", ACCOUNTS, {"accountId": "app-account"}))
    harness.start_controller("--kinds", "IAMServiceAccountKey")

    kubectl.apply(MANIFEST)
    kubectl.until_ready("iamserviceaccountkey/app-key")
    first = _kept(harness)
    assert _live(harness) == [first]

    kubectl("delete", "secret", "app-key")
    until(lambda: _kept(harness) not in ("", first))
    until(lambda: _live(harness) == [_kept(harness)])

    kubectl("delete", "iamserviceaccountkey", "app-key")
    until(lambda: kubectl.get("secret/app-key") is None)
    assert _live(harness) == []
