"""What the kind can do, and what it costs those who do not use it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from setpoint.engine.capabilities import SupportsAliases, SupportsDryRun, SupportsReplace, SupportsWait, SupportsWatch
from setpoint.engine.kind import ResolvedReferences
from setpoint.engine.ports import SystemClock
from setpoint.errors import UserError
from setpoint.kinds.kubernetes_object.clusters import Clusters
from setpoint.kinds.kubernetes_object.kind import KubernetesObjectKind
from tests.kinds.kubernetes_object.declared_objects import MAP, Tree, kind, resource

CONFIG = {"contexts": [{"name": "eu/prod", "context": {"cluster": "c"}}], "current-context": "eu/prod"}
KEY = {"valueFrom": {"secretKeyRef": {"name": "access", "key": "config"}}}


def test_it_rehearses_waits_gives_way_and_tells_of_changes() -> None:
    one = kind()

    assert isinstance(one, SupportsDryRun)
    assert isinstance(one, SupportsWait)
    assert isinstance(one, SupportsReplace)
    assert isinstance(one, SupportsAliases)
    assert isinstance(one, SupportsWatch)


@pytest.mark.parametrize(
    ("cluster", "word"),
    [
        (None, "context:eu%2Fprod"),
        ({}, "context:eu%2Fprod"),
        ({"inCluster": False}, "context:eu%2Fprod"),
        ({"context": "other"}, "context:other"),
        ({"inCluster": True}, "in-cluster"),
        ({"kubeconfig": KEY}, "secret:shop%2Faccess%2Fconfig"),
        ({"kubeconfig": KEY, "context": "a/b"}, "secret:shop%2Faccess%2Fconfig%2Fa%2Fb"),
    ],
)
def test_an_object_is_where_its_cluster_is(cluster: Tree | None, word: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    one = KubernetesObjectKind(Clusters({"KUBECONFIG": str(file)}), SystemClock())

    location = one.locate(resource(MAP, cluster=cluster), ResolvedReferences())

    assert location == f"v1 ConfigMap shop/map @ {word}"
    assert one.watch_topic(location) == f"v1 ConfigMap shop/* @ {word}"


def test_without_a_kubeconfig_the_missing_file_is_named(tmp_path: Path) -> None:
    one = KubernetesObjectKind(Clusters({"HOME": str(tmp_path)}), SystemClock())

    with pytest.raises(UserError, match="there is no kubeconfig at"):
        one.locate(resource(MAP), ResolvedReferences())


def test_only_the_author_says_that_an_object_may_give_way() -> None:
    assert not kind().may_replace(resource(MAP))
    assert not kind().may_replace(resource(MAP, replace=False))
    assert kind().may_replace(resource(MAP, replace=True))


def test_who_reaches_no_cluster_loads_nothing_that_does() -> None:
    """Neither the client, nor what reads YAML, nor the verbs themselves."""
    heavy = (
        "setpoint.clients.kubernetes.client",
        "setpoint.clients.kubernetes.watch",
        "setpoint.kinds.kubernetes_object.remote",
    )
    program = f"import sys, setpoint.app; print([name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
