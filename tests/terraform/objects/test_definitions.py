"""CustomResourceDefinitions that change in the same plan as objects of theirs; and fields that a kind accepts."""

from tests.terraform.objects.manifests import CUSTOM, DEFINITION
from tests.terraform.objects.workspace import A, B, Workspace, declared

AFTER = f"depends_on = [{A}]"
WITH_FIELD = DEFINITION.replace("{host: {type: string},", "{host: {type: string}, zone: {type: string},")
V2 = WITH_FIELD[WITH_FIELD.index("  - name: v1") :].replace("v1", "v2").replace("storage: true", "storage: false")
WITH_VERSION = WITH_FIELD + V2.lstrip("\n")
IN_ZONE = CUSTOM.replace("{host: www}", "{host: www, zone: a}")
IN_VERSION = IN_ZONE.replace("GROUP/v1", "GROUP/v2").replace("zone: a", "zone: b")


def test_a_definition_that_gains_a_field_or_a_version_and_an_object_that_uses_it_are_applied_in_one_run(
    workspace: Workspace,
) -> None:
    group = f"{workspace.namespace}.example.com"
    path = f"/apis/{group}/v1/namespaces/{workspace.namespace}/records/www"

    def text(definition: str, custom: str, more: str = AFTER) -> str:
        return (declared("a", definition) + declared("b", custom, more)).replace("GROUP", group)

    workspace.applied(text(DEFINITION, CUSTOM))
    uid = workspace.access.call("GET", path).body["metadata"]["uid"]

    # Without depends_on the order is not known, and the mistake may be one.
    workspace.write(text(DEFINITION, IN_ZONE))
    summary, detail = workspace.refused()
    assert "zone" in detail, (summary, detail)
    assert "depends_on" in detail
    for definition, custom, zone in ((WITH_FIELD, IN_ZONE, "a"), (WITH_VERSION, IN_VERSION, "b")):
        change = workspace.planned(text(definition, custom))[B]
        assert (change.actions, change.unknown["projection"]) == (["update"], True)
        workspace.apply_planned()
        live = workspace.access.call("GET", path).body
        assert (live["spec"]["zone"], live["metadata"]["uid"]) == (zone, uid)
    # A mistake is one, whatever changes in the definition.
    workspace.write(
        text(WITH_VERSION.replace("GROUP}", "GROUP, labels: {a: b}}"), IN_VERSION.replace("zone:", "zoen:"))
    )
    outcome = workspace.apply()
    assert (outcome.code, "zoen" in outcome.diagnostics[0].detail) == (1, True), outcome.diagnostics
    workspace.applied(text(WITH_VERSION, IN_VERSION, f'{AFTER}\nignore_fields = ["spec.ttl", "metadata.labels.any"]'))
    _, detail = workspace.refused(text(WITH_VERSION, IN_VERSION, f'{AFTER}\nignore_fields = ["spec.hosst"]'))
    assert "ignore_fields[0] is 'spec.hosst': Record of" in detail
    assert "did you mean spec.host?" in detail
    workspace.write(text(WITH_VERSION, IN_VERSION))
    workspace.destroyed()
