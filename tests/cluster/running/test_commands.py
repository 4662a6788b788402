"""The commands of `setpoint` on resources in a cluster, with a running controller and without."""

import json
from pathlib import Path
from typing import Any

from tests.cluster.access import ADMIN
from tests.cluster.running.manifests import bucket, bucket_path
from tests.cluster.running.site import Site

NO_CONTROLLER = "no controller is running for this cluster"


def _written(site: Site, manifest: Any) -> str:
    """The file that a manifest is in; in the namespace of the site."""
    metadata = {**manifest["metadata"], "namespace": site.kubectl.namespace}
    file = Path(site.folder, f"{metadata['name']}.json")
    file.write_text(json.dumps({**manifest, "metadata": metadata}), encoding="utf-8")
    return str(file)


def _said(site: Site, *arguments: str, user: str = ADMIN) -> tuple[int, str]:
    """The exit code, and what was printed, without the name of the namespace."""
    done = site.setpoint(*arguments, user=user)
    return done.returncode, (done.stdout + done.stderr).replace(site.kubectl.namespace, "here")


def test_a_life_by_commands_alone(busy_site: Site) -> None:
    site, place = busy_site, ("-n", busy_site.kubectl.namespace)
    file = _written(site, bucket("by-hand"))

    assert _said(site, "plan", "-f", file)[0] == 2
    assert _said(site, "apply", "-f", file) == (0, "StorageBucket here/by-hand created\n")
    assert _said(site, "plan", "-f", file)[0] == 0
    assert _said(site, "plan", "StorageBucket/by-hand", *place)[0] == 0
    assert "True    UpToDate" in _said(site, "get", "StorageBucket/by-hand", *place)[1]
    assert "created with spec.location" in _said(site, "events", "StorageBucket/by-hand", *place)[1]
    code, explained = _said(site, "explain", "StorageBucket/by-hand", *place)
    assert code == 0
    assert '  wrote: create\n    spec.location: unset → "EU" (spec)\n' in explained
    assert "next step: by the running process, at the latest" in explained
    assert _said(site, "delete", "-f", file) == (0, "StorageBucket here/by-hand deleted\n")
    assert site.live(bucket_path("by-hand")) is None


def test_what_drifted_is_put_back_when_asked_for(busy_site: Site) -> None:
    file = _written(busy_site, bucket("astray"))
    _said(busy_site, "apply", "-f", file)
    busy_site.in_cloud(lambda cloud: cloud.edit("/b/astray", {"website": {"mainPageSuffix": "index.html"}}))
    planned = _said(busy_site, "plan", "-f", file)[0]
    reconciled = _said(busy_site, "reconcile", "-f", file)

    assert (planned, reconciled) == (2, (0, "StorageBucket here/astray updated\n"))
    assert "website" not in busy_site.live(bucket_path("astray"))


def test_an_apply_that_says_nothing_new_asks_for_a_look(busy_site: Site) -> None:
    file = _written(busy_site, bucket("again"))
    _said(busy_site, "apply", "-f", file)
    unchanged = _said(busy_site, "apply", "-f", file)
    busy_site.in_cloud(lambda cloud: cloud.edit("/b/again", {"website": {"mainPageSuffix": "index.html"}}))

    assert unchanged == (0, "StorageBucket here/again unchanged\n")
    assert _said(busy_site, "apply", "-f", file) == (0, "StorageBucket here/again updated\n")


def test_without_permission_for_leases_a_controller_is_assumed(busy_site: Site) -> None:
    kinds = "kbsconfigs,kubernetesobjects,sqldatabases,sqlinstances,sqlusers,storagebuckets,trusteeconfigs"
    verbs = "--verb=get,list,watch,create,patch,delete"
    busy_site.kubectl("create", "role", "author", verbs, f"--resource={kinds}")
    busy_site.kubectl("create", "rolebinding", "author", "--role=author", "--user=alice")
    file = _written(busy_site, bucket("of-alice"))

    assert _said(busy_site, "apply", "-f", file, user="alice") == (0, "StorageBucket here/of-alice created\n")
    assert _said(busy_site, "delete", "-f", file, user="alice") == (0, "StorageBucket here/of-alice deleted\n")


def test_what_belongs_to_another_namespace_than_the_store_is_refused(busy_site: Site) -> None:
    file = Path(busy_site.folder, "nowhere.json")
    file.write_text(json.dumps(bucket("nowhere")), encoding="utf-8")

    code, printed = _said(busy_site, "apply", "-f", str(file))

    assert code == 1
    assert "StorageBucket default/nowhere: this store is the namespace here alone" in printed


def test_without_a_process_it_is_on_record_and_waits(site: Site) -> None:
    file, place = _written(site, bucket("alone")), ("-n", site.kubectl.namespace)

    for command in (("apply", "-f", file), ("reconcile", "StorageBucket/alone", *place)):
        code, printed = _said(site, *command)
        assert (code, printed.startswith(NO_CONTROLLER)) == (3, True)
        assert "run `setpoint --store kubernetes run`, or `setpoint install`" in printed
    assert _said(site, "plan", "-f", file)[0] == 2
    assert "Unknown   NotLookedAt" in _said(site, "get", *place)[1]
    assert "no step has been taken yet" in _said(site, "explain", "StorageBucket/alone", *place)[1]

    site.process()
    site.kubectl.until_ready("storagebucket/alone")
    assert _said(site, "apply", "-f", file) == (0, "StorageBucket here/alone unchanged\n")


def test_a_deletion_without_a_process_hangs_until_there_is_one(site: Site) -> None:
    file = _written(site, bucket("hanging"))
    process = site.process()
    _said(site, "apply", "-f", file)
    process.stop()

    code, printed = _said(site, "delete", "-f", file)
    assert (code, printed.startswith(NO_CONTROLLER)) == (3, True)
    assert site.kubectl.get("storagebucket/hanging")["metadata"]["deletionTimestamp"]

    process.start()
    site.kubectl("wait", "storagebucket/hanging", "--for=delete", "--timeout=240s")
    assert site.live(bucket_path("hanging")) is None
