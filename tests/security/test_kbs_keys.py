"""The key broker gets the public key of its administrator, and never the private one."""

import base64
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.children import child_update
from setpoint.engine.owner import GeneratedChildren
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyInvalid
from setpoint.kinds.trustee.kbs_config import KbsConfigOwner
from setpoint.kinds.trustee.trustee_config.children import generate_key_pair
from setpoint.replay.masking import Masker
from tests.cluster.access import Access
from tests.kinds.trustee.test_trustee_on_a_server import FOLDERS, by_hand, created
from tests.kinds.trustee.trustee_objects import kbs_resource

OWNER: Final = KbsConfigOwner({"OPERATOR_IMAGE_NAME": "operator:1"})
AUTH: Final = ResourceRef("", "Secret", "trust", "auth")
PAIR: Final = dict(generate_key_pair())
DEPLOYMENT: Final = "Deployment/trustee-deployment"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def generated(data: Any, **spec: Any) -> GeneratedChildren:
    """What the owner generates with this auth Secret."""
    resource = kbs_resource(**spec)
    found = {
        ref: Resource({"kind": ref.kind, "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.name}})
        for ref in OWNER.sources(resource)
    }
    secret = {**found[AUTH].document, "apiVersion": "v1", "data": data}
    return OWNER.generate(resource, {**found, AUTH: Resource(secret)})


def auth_volume(made: GeneratedChildren) -> Any:
    pods: Any = made.children[0].object
    return next(one for one in pods["spec"]["template"]["spec"]["volumes"] if one["name"] == "auth-secret")["secret"]


MICROSERVICES: Final = {
    "kbsDeploymentType": "MicroservicesDeployment",
    "kbsAsConfigMapName": "a",
    "kbsRvpsConfigMapName": "r",
}


@pytest.mark.parametrize("spec", [{}, MICROSERVICES], ids=["all in one", "microservices"])
def test_pods_get_the_public_key_of_a_pair_alone(spec: dict[str, Any]) -> None:
    assert auth_volume(generated(PAIR, **spec)) == {
        "secretName": "auth",
        "items": [{"key": "publicKey", "path": "publicKey"}],
    }


@pytest.mark.parametrize(
    "private",
    [
        {"privateKey": "anything"},
        {"admin.pem": PAIR["privateKey"]},
        {"rsa": encoded("-----BEGIN RSA PRIVATE KEY-----\nx")},
        {"sealed": encoded("text\n-----BEGIN ENCRYPTED PRIVATE KEY-----\nx")},
        {"ssh": encoded("-----BEGIN OPENSSH PRIVATE KEY-----\nx")},
        {"both": encoded("-----BEGIN PUBLIC KEY-----\nx\n-----BEGIN PRIVATE KEY-----\nx")},
    ],
    ids=lambda private: next(iter(private)),
)
def test_a_private_key_is_recognised_by_its_name_and_by_its_content(private: dict[str, str]) -> None:
    kept = {"kbs.pem": PAIR["publicKey"], "notes": encoded("a note")}

    items = auth_volume(generated({**private, **kept}))["items"]
    assert [one["key"] for one in items] == ["kbs.pem", "notes"]


def test_a_secret_without_a_private_key_is_mounted_as_before() -> None:
    for data in ({"publicKey": PAIR["publicKey"]}, {"kbs.pem": PAIR["publicKey"], "x": "not base64!"}, {}, None):
        assert auth_volume(generated(data)) == {"secretName": "auth"}


def test_a_secret_with_private_keys_alone_starts_no_pod() -> None:
    made = generated({"privateKey": PAIR["privateKey"]})

    assert made.children == ()
    assert isinstance(made.error, DependencyInvalid)
    assert str(made.error) == (
        "Secret auth has a private key, and no public one, which is all that the key broker gets: add publicKey"
    )


@given(st.dictionaries(st.text("abc.-", min_size=1), st.sampled_from([PAIR["privateKey"], PAIR["publicKey"], "x"])))
def test_no_private_key_is_ever_mounted(data: dict[str, str]) -> None:
    made = generated(data)
    mounted = set() if made.error else {one["key"] for one in auth_volume(made).get("items", [])} or set(data)

    assert not any(data[key] == PAIR["privateKey"] for key in mounted)


def test_a_recorded_secret_still_tells_its_private_key() -> None:
    secret: Any = Masker().mask({"apiVersion": "v1", "kind": "Secret", "data": {"a": PAIR["privateKey"], **PAIR}})

    assert auth_volume(generated(secret["data"])) == auth_volume(generated(PAIR))
    assert PAIR["privateKey"] not in json.dumps(secret)


# --- Upgrades ---------------------------------------------------------------------------------------------------------


def test_an_upgrade_takes_the_private_key_away_once_and_keeps_edits(api_server: Access, namespace: str) -> None:
    """On children that the version before made, with the defaults of a server and the edits of another writer."""
    before = generated({"publicKey": PAIR["publicKey"]}).children[0]
    live = created(api_server, namespace, before.object)
    place = f"{FOLDERS['Deployment'].format(namespace)}/trustee-deployment"
    pod = by_hand(live)["spec"]["template"]["spec"]
    template = {**live["spec"]["template"], "spec": {**pod, "volumes": live["spec"]["template"]["spec"]["volumes"]}}
    edited = api_server.call("PUT", place, {**live, "spec": {**live["spec"], "template": template}}).body

    child = generated(PAIR).children[0]
    upgraded: Any = child_update(child, edited, None).object
    answer = api_server.call("PUT", place, upgraded)
    assert answer.status == 200, answer.body

    volumes = answer.body["spec"]["template"]["spec"]["volumes"]
    secret = next(one["secret"] for one in volumes if one["name"] == "auth-secret")
    assert secret == {"secretName": "auth", "defaultMode": 420, "items": [{"key": "publicKey", "path": "publicKey"}]}
    assert answer.body["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    # The next pass finds nothing to write: pods are restarted once.
    assert child_update(child, answer.body, None).object is answer.body
