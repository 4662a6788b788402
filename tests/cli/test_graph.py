"""`setpoint graph`: the dependency graph, as text and as data."""

import json
from typing import Any

import pytest

from setpoint.engine.dependency_graph import EdgeType, GraphEdge, GraphNode, NodeState
from setpoint.engine.resource import ResourceRef
from setpoint.library.inspection.graph import ResourceGraph
from tests.cli.workspace import Workspace, bucket, database

INSTANCE = """apiVersion: sql.cnrm.cloud.google.com/v1beta1
kind: SQLInstance
metadata:
  name: {name}
  annotations: {{cnrm.cloud.google.com/project-id: some-project{more}}}
spec: {{region: europe-west1, databaseVersion: MYSQL_8_0, settings: {{tier: db-f1-micro}}}}
"""


def instance(name: str, after: str = "") -> str:
    return INSTANCE.format(name=name, more=f', setpoint.dev/depends-on: "{after}"' if after else "")


def _graph(workspace: Workspace, *arguments: str) -> Any:
    done = workspace.run("graph", *arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _states(graph: Any) -> dict[str, str]:
    return {f"{node['kind']}/{node['name']}": node["state"] for node in graph["nodes"]}


def _links(graph: Any) -> set[tuple[str, str, str, str]]:
    return {
        (link["needed"]["name"], link["dependant"]["name"], link["sort"], link.get("label", ""))
        for link in graph["links"]
    }


def test_manifests_in_a_file_can_be_drawn_before_they_are_applied(workspace: Workspace) -> None:
    workspace.write(database("orders", "{name: db}"), instance("db", after="StorageBucket/logs"))

    graph = _graph(workspace, "-f", "manifest.yaml")

    assert _states(graph) == {
        "StorageBucket/logs": "missing",
        "SQLInstance/db": "not looked at",
        "SQLDatabase/orders": "not looked at",
    }
    assert _links(graph) == {("logs", "db", "order", ""), ("db", "orders", "ready", "spec.instanceRef")}


def test_every_node_comes_after_its_dependencies(workspace: Workspace) -> None:
    workspace.write(database("a", "{name: z}"), instance("z"))

    assert [node["name"] for node in _graph(workspace, "-f", "manifest.yaml")["nodes"]] == ["z", "a"]


def test_every_node_has_its_state_on_record(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), database("orders", "{name: db}"))

    graph = _graph(workspace)

    assert _states(graph) == {
        "SQLInstance/db": "missing",
        "StorageBucket/logs": "ready",
        "SQLDatabase/orders": "blocked",
    }
    (orders,) = [node for node in graph["nodes"] if node["name"] == "orders"]
    assert orders["message"] == "reference SQLInstance default/db is not found"


def test_in_text_a_resource_is_below_its_last_dependency(workspace: Workspace) -> None:
    workspace.write(
        bucket("logs"),
        instance("db", after="StorageBucket/logs"),
        database("orders", "{name: db}").replace(
            "project-id: some-project", 'project-id: some-project, setpoint.dev/depends-on: "StorageBucket/logs"'
        ),
    )

    assert workspace.run("graph", "-f", "manifest.yaml").stdout == (
        "StorageBucket default/logs not looked at\n"
        "└── SQLInstance default/db not looked at  ← after it\n"
        "    └── SQLDatabase default/orders not looked at  ← spec.instanceRef  "
        "also needs StorageBucket default/logs (after it)\n"
    )


def test_a_cycle_is_named_and_fails(workspace: Workspace) -> None:
    workspace.write(instance("one", after="SQLInstance/two"), instance("two", after="SQLInstance/one"))

    done = workspace.run("graph", "-f", "manifest.yaml", "-o", "json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["cycle"].startswith("SQLInstance default/")
    assert "no order can satisfy this" in done.stderr


def test_only_the_named_resources_and_their_dependencies_are_drawn(workspace: Workspace) -> None:
    workspace.apply(bucket("logs"), bucket("others"), database("orders", "{name: db}"))

    assert set(_states(_graph(workspace, "SQLDatabase/orders"))) == {"SQLInstance/db", "SQLDatabase/orders"}
    assert workspace.run("graph", "SQLDatabase/missing").returncode == 1


@pytest.mark.parametrize("form", ["dot", "mermaid"])
def test_the_output_for_graphviz_and_mermaid(workspace: Workspace, form: str) -> None:
    workspace.write(database("orders", "{name: db}"), instance("db"))

    drawn = workspace.run("graph", "-f", "manifest.yaml", "-o", form).stdout

    expected = {
        "dot": '  "SQLInstance default/db" -> "SQLDatabase default/orders" [label="spec.instanceRef"];\n',
        "mermaid": '  n0 -->|"spec.instanceRef"| n1\n',
    }
    assert expected[form] in drawn


def test_quotes_in_a_path_are_escaped() -> None:
    one, two = (ResourceRef("g", "Kind", "default", name) for name in ("one", "two"))
    link = GraphEdge(one, two, EdgeType.VALUE, 'metadata.labels["app.kubernetes.io/name"]')
    graph = ResourceGraph((GraphNode(one, NodeState.READY), GraphNode(two, NodeState.BLOCKED)), (link,))

    assert r'[label="metadata.labels[\"app.kubernetes.io/name\"]"]' in graph.to_dot()
    assert '|"metadata.labels#91;#34;app.kubernetes.io/name#34;#93;"|' in graph.to_mermaid()


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("SQLInstance", "'SQLInstance' names no resource: write KIND/NAME or KIND/NAMESPACE/NAME"),
        ("Castle/x", "no kind 'Castle' is known here; `setpoint kinds` lists"),
        ("SQLInstance/a/b/c", "names no resource"),
    ],
)
def test_a_depends_on_annotation_without_a_resource_is_refused(
    workspace: Workspace, annotation: str, message: str
) -> None:
    workspace.write(instance("db", after=annotation))
    done = workspace.run("apply", "-f", "manifest.yaml")

    assert done.returncode == 1
    assert message in done.stderr
