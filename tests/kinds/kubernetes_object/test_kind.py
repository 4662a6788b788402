"""Capabilities of the kind, and what it imports before its first request."""

import subprocess
import sys
from importlib.util import find_spec
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


def test_the_kind_supports_dry_run_wait_replace_and_watch() -> None:
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
def test_the_location_names_the_cluster(cluster: Tree | None, word: str, tmp_path: Path) -> None:
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


def test_an_object_is_replaced_only_if_the_author_allows_it() -> None:
    assert not kind().may_replace(resource(MAP))
    assert not kind().may_replace(resource(MAP, replace=False))
    assert kind().may_replace(resource(MAP, replace=True))


def test_no_kubernetes_client_is_loaded_before_the_first_request() -> None:
    heavy = (
        "setpoint.clients.kubernetes.client",
        "setpoint.clients.kubernetes.watch",
        "setpoint.kinds.kubernetes_object.remote",
    )
    program = f"import sys, setpoint.app; print([name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
    assert [name for name in heavy if find_spec(name) is None] == []
