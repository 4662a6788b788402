"""The owner KbsConfig: its sources, its Deployment and Service, and its status."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.core.merge.children import ChildUpdate, ChildUpdatePolicy, child_update
from setpoint.core.owner_references import Ownership, ownership
from setpoint.engine.owner import GeneratedChildren, Owner
from setpoint.engine.resource import Resource, ResourceRef
from setpoint.errors import DependencyNotFound, ImmutableFieldChanged, ManifestInvalid, UserError
from setpoint.kinds.trustee.kbs_config import KbsConfigOwner, KbsConfigStatus
from tests.kinds.trustee.test_kbs_inputs import live as live_deployment
from tests.kinds.trustee.test_kbs_workload import EVERYTHING
from tests.kinds.trustee.trustee_objects import kbs_resource as resource

ENVIRON = {"OPERATOR_IMAGE_NAME": "operator:1"}
OWNER: Owner = KbsConfigOwner(ENVIRON)
MICROSERVICES = {"kbsDeploymentType": "MicroservicesDeployment", "kbsAsConfigMapName": "a", "kbsRvpsConfigMapName": "r"}
SPECS: tuple[dict[str, Any], ...] = (
    {},
    EVERYTHING,
    MICROSERVICES,
    {**EVERYTHING, **MICROSERVICES},
    {"KbsEnvVars": {"RUST_LOG": "debug"}, "KbsDeploymentSpec": {"replicas": 2}, "kbsServiceType": "NodePort"},
)


def there(**spec: Any) -> dict[ResourceRef, Resource]:
    """All objects that the spec names."""
    refs = OWNER.sources(resource(**spec))
    return {
        ref: Resource({"kind": ref.kind, "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": ref.name}})
        for ref in refs
    }


def generated(found: Mapping[ResourceRef, Resource] | None = None, **spec: Any) -> GeneratedChildren:
    return OWNER.generate(resource(**spec), there(**spec) if found is None else found)


def again(live: Any, index: int, **spec: Any) -> ChildUpdate:
    """One of both children after the next pass."""
    return child_update(generated(**spec).children[index], live, None)


# --- Sources ----------------------------------------------------------------------------------------------------------


def test_sources_are_the_config_maps_and_secrets_of_its_own_namespace() -> None:
    assert OWNER.sources(resource(kbsSecretResources=["s"])) == (
        ResourceRef("", "ConfigMap", "trust", "settings"),
        ResourceRef("", "Secret", "trust", "auth"),
        ResourceRef("", "Secret", "trust", "s"),
    )


@pytest.mark.parametrize("spec", SPECS)
def test_all_kinds_of_children_and_sources_are_declared(spec: dict[str, Any]) -> None:
    OWNER.check(resource(**spec))

    assert {ref.kind for ref in OWNER.sources(resource(**spec))} == {one.kind for one in OWNER.reads}
    assert [Resource(one.object).ref[:2] for one in generated(**spec).children] == [
        (one.group, one.kind) for one in OWNER.makes
    ]
    assert OWNER.dependencies(resource(**spec)) == ()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kbsConfigMap": "x"}, r"there is no field spec\.kbsConfigMap; did you mean spec\.kbsConfigMapName"),
        ({"KbsDeploymentSpec": {"replicas": "2"}}, r"spec\.KbsDeploymentSpec\.replicas is text: write a whole number"),
        ({"kbsSecretResources": ["s", "s"]}, "the volume s is there more than once"),
    ],
)
def test_a_spec_that_no_pod_can_have_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestInvalid, match=message):
        OWNER.check(resource(**spec))


@pytest.mark.parametrize(
    "spec", [{"kbsConfigMapName": None}, {"kbsAuthSecretName": ""}, {"kbsDeploymentType": "MicroservicesDeployment"}]
)
def test_a_spec_without_required_names_is_accepted_and_reported(spec: dict[str, Any]) -> None:
    OWNER.check(resource(**spec))

    made = generated(**spec)

    assert made.children == ()
    assert isinstance(made.error, ManifestInvalid)
    assert "name hasn't been provided for volume" in str(made.error)


@pytest.mark.laws
@given(st.data(), st.sampled_from(SPECS))
def test_nothing_is_generated_until_every_input_exists(data: st.DataObject, spec: dict[str, Any]) -> None:
    whole = there(**spec)
    found = {ref: whole[ref] for ref in data.draw(st.sets(st.sampled_from(sorted(whole))))}

    made = generated(found, **spec)

    if len(found) == len(whole):
        assert (len(made.children), made.error) == (2, None)
    else:
        assert made.children == ()
        assert isinstance(made.error, DependencyNotFound)
        assert all(ref.name in str(made.error) for ref in whole.keys() - found.keys())


def test_nothing_is_generated_without_the_image_of_the_init_container() -> None:
    made = KbsConfigOwner({}).generate(resource(), there())

    assert made.children == ()
    assert isinstance(made.error, UserError)
    assert "OPERATOR_IMAGE_NAME environment variable must be set" in str(made.error)


# --- Children ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_the_deployment_and_the_service_have_the_names_of_trustee_operator(spec: dict[str, Any]) -> None:
    made = generated(**spec)

    assert [one.key for one in made.children] == ["Deployment/trustee-deployment", "Service/kbs-service"]
    for one in made.children:
        assert Resource(one.object).ref.namespace == "trust"
        assert ownership(one.object, resource().document) is Ownership.OURS
        assert one.update_policy is ChildUpdatePolicy.APPLY_SUBSET
        assert OWNER.completed(one) is one.object
    assert [one.object for one in made.children] == [one.object for one in generated(**spec).children]


def test_a_second_kbs_config_in_the_namespace_does_not_take_over_the_children() -> None:
    second = {"metadata": {"name": "second", "namespace": "trust", "uid": "u3"}}

    assert {ownership(one.object, second) for one in generated().children} == {Ownership.OTHER_OWNER}


def test_a_changed_config_map_restarts_the_pods() -> None:
    ref = ResourceRef("", "ConfigMap", "trust", "settings")
    moved = {**there(), ref: Resource({"kind": "ConfigMap", "data": {"kbs-config.toml": "new"}})}

    before, after = generated().children[0].object, generated(moved).children[0].object

    assert before != after
    assert child_update(generated(moved).children[0], before, None).object == after


def as_served(index: int, **spec: Any) -> Any:
    """As a server would have it: with defaults in every part of it."""
    made: Any = generated(**spec).children[index].object
    live = {**made, "metadata": {**made["metadata"], "annotations": {"theirs": "1"}}, "status": {"x": 1}}
    if index:
        (port,) = made["spec"]["ports"]
        live["spec"] = {**made["spec"], "clusterIP": "10.0.0.1", "ports": [{**port, "nodePort": 30080}]}
        return live
    pod = made["spec"]["template"]["spec"]
    (broker,) = pod["containers"]
    full = {**pod, "dnsPolicy": "ClusterFirst", "containers": [{**broker, "resources": {"limits": {"cpu": "1"}}}]}
    template = {**made["spec"]["template"], "spec": full}
    live["spec"] = {**made["spec"], "revisionHistoryLimit": 10, "template": template}
    return live


@pytest.mark.parametrize("index", [0, 1])
def test_an_idle_pass_writes_nothing(index: int) -> None:
    live = as_served(index)

    assert again(live, index).object is live


def test_a_change_keeps_fields_that_other_writers_added_to_the_deployment() -> None:
    made: Any = again(as_served(0), 0, KbsEnvVars={"A": "1"}, KbsDeploymentSpec={"replicas": 3}).object

    pod = made["spec"]["template"]["spec"]
    assert made["metadata"]["annotations"] == {"theirs": "1"}
    assert (made["spec"]["replicas"], made["spec"]["revisionHistoryLimit"]) == (3, 10)
    assert pod["dnsPolicy"] == "ClusterFirst"
    assert pod["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_a_change_keeps_the_address_of_the_service() -> None:
    made: Any = again(as_served(1), 1, kbsServiceType="NodePort").object

    assert (made["spec"]["type"], made["spec"]["clusterIP"]) == ("NodePort", "10.0.0.1")
    assert made["spec"]["ports"][0]["nodePort"] == 30080


@pytest.mark.parametrize("part", ["containers", "initContainers", "volumes"])
def test_fields_that_another_writer_put_into_the_pods_are_removed(part: str) -> None:
    live = as_served(0)
    pod = live["spec"]["template"]["spec"]
    before = list(pod[part])
    pod[part] = [*before, {"name": "mine", "image": "mine"}]

    made: Any = again(live, 0).object

    assert made["spec"]["template"]["spec"][part] == before


def test_a_volume_of_another_source_is_replaced_and_not_mixed() -> None:
    live = as_served(0, kbsSecretResources=["s"])
    volumes = live["spec"]["template"]["spec"]["volumes"]
    volumes[:] = [{"name": "s", "configMap": {"name": "s"}} if one["name"] == "s" else one for one in volumes]

    made: Any = again(live, 0, kbsSecretResources=["s"]).object

    assert {"name": "s", "secret": {"secretName": "s"}} in made["spec"]["template"]["spec"]["volumes"]


def test_a_deployment_with_another_selector_is_an_error_and_no_write() -> None:
    live = as_served(0)
    live["spec"]["selector"] = {"matchLabels": {"app": "other"}}

    with pytest.raises(ImmutableFieldChanged, match=r"Deployment trust/trustee-deployment: spec\.selector cannot"):
        again(live, 0)


# --- Status -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "status", "reason"),
    [
        (live_deployment(), "True", "Ready"),
        (live_deployment(0), "False", "ScaledToZero"),
        (live_deployment(observed=2), "False", "RollingOut"),
        (live_deployment(availableReplicas=1), "False", "RollingOut"),
        (None, "False", "DeploymentAbsent"),
    ],
)
def test_its_readiness_is_that_of_the_deployment(live: Any, status: str, reason: str) -> None:
    children = {} if live is None else {"Deployment/trustee-deployment": Resource(live)}

    found = OWNER.status_of(resource(), children)

    assert (found.ready.status, found.ready.reason) == (status, reason)
    assert found.outputs == {"isReady": status == "True"}
    assert bool(found.ready.message)


def test_the_ready_message_is_that_of_trustee_operator() -> None:
    found = OWNER.status_of(resource(), {"Deployment/trustee-deployment": Resource(live_deployment())})

    assert found.ready.message == "Trustee deployment is ready"


def test_the_finalizer_is_kept_until_the_deployment_is_gone() -> None:
    assert OWNER.finalizer == "kbsconfig.confidentialcontainers.org/finalizer"
    assert OWNER.deleted_first(resource()) == (ResourceRef("apps", "Deployment", "trust", "trustee-deployment"),)


def test_the_status_has_is_ready_from_the_first_step() -> None:
    assert OWNER.minimum_outputs == {"isReady": False}
    assert OWNER.definition.outputs is KbsConfigStatus
    assert OWNER.definition.required == ("isReady",)
