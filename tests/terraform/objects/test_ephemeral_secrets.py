"""Values of a Secret for one run of Terraform: they log in at a cluster, and are in no plan and in no state."""

import base64

from tests.terraform.objects.workspace import A, Workspace, config_map, declared

SECRET = """
ephemeral "setpoint_secret" "login" {
  name      = "NAME"
  namespace = "NAMESPACE"
}
"""
# A second provider block whose token is the value of the Secret.
OTHER = """
provider "setpoint" {
  alias = "other"
  cluster = {
    host                   = "HOST"
    cluster_ca_certificate = ephemeral.setpoint_secret.login.data_base64["ca"]
    token                  = ephemeral.setpoint_secret.login.data["token"]
  }
}
"""


def test_the_values_of_a_secret_are_used_and_never_stored(workspace: Workspace) -> None:
    token, access = workspace.access.token_of("alice"), workspace.access
    workspace.allow("alice")
    values = {"token": token.encode(), "ca": access.certificate_authority.read_bytes()}
    data = {key: base64.b64encode(one).decode() for key, one in values.items()}
    workspace.make("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "data": data})
    object_ = declared("a", config_map("made", a="1"), "provider = setpoint.other")
    whole = SECRET.replace("NAME", "login", 1) + OTHER.replace("HOST", access.url) + object_
    workspace.write(whole)
    assert workspace.plan("-out=plan").code == 2
    workspace.apply_planned()

    assert workspace.get("configmaps", "made")["data"] == {"a": "1"}
    assert workspace.state(A)["cluster"] is None
    kept = [file for file in workspace.folder.iterdir() if file.is_file()]
    assert {"plan", "terraform.tfstate"} <= {file.name for file in kept}
    stored = b"".join(file.read_bytes() for file in kept)
    assert [one for one in (token.encode(), data["token"].encode()) if one in stored] == []
    assert workspace.refused(whole.replace('"login"\n', '"none"\n')) == (
        "No such object",
        "There is no Secret none in that cluster. Check its name and namespace.",
    )
