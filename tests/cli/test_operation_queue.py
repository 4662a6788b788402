"""Operations of one database instance: the service executes one at a time, and none of ours is refused for that."""

from tests.cli.workspace import Workspace, database

INSTANCE = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata:
  name: shared
  annotations: {cnrm.cloud.google.com/project-id: some-project}
spec: {databaseVersion: POSTGRES_15, region: europe-west1, settings: {tier: db-custom-1-3840}}
"""


def test_deletions_of_databases_of_one_instance_take_turns(workspace: Workspace) -> None:
    names = [f"data-{number}" for number in range(4)]
    workspace.write("---\n".join((INSTANCE, *(database(name, "{name: shared}") for name in names))))
    workspace.run_in_process("apply")

    code, lines = workspace.run_in_process("delete")

    journal = workspace.in_cloud(lambda cloud: list(cloud.journal.entries))
    statuses = [one.status for one in journal if one.method == "DELETE"]
    assert (code, lines[-1]) == (0, "deleted 5")
    assert statuses == [200] * 5
