"""`setpoint dashboard` and `setpoint run --dashboard`: as processes, with the URL that they print."""

import json
import re
import signal
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cli.programs import Piped
from tests.cli.workspace import Workspace, bucket
from tests.cluster.polling import until

BUCKET = "StorageBucket.storage.cnrm.cloud.google.com/default/logs"


@dataclass(slots=True)
class Browser:
    """Signed in at the URL that a process printed."""

    url: str
    cookie: str = ""

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"X-Setpoint": "1", "Content-Type": "application/json", "Cookie": self.cookie}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            if cookie := response.headers.get("Set-Cookie"):
                self.cookie = cookie.partition(";")[0]
            return json.load(response)


def signed_in(process: Piped) -> Browser:
    process.until(lambda: "#token=" in process.text)
    found = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)", process.text)
    assert found is not None
    browser = Browser(found[1])
    browser.send("POST", "/login", {"token": found[2]})
    return browser


def ended(process: Piped) -> int:
    process.send(signal.SIGTERM)
    return process.end()


def test_the_running_process_serves_its_store_and_itself(workspace: Workspace) -> None:
    daemon = workspace.daemon("--dashboard", "127.0.0.1:0", "--allow-actions")
    workspace.write(bucket("logs"))
    workspace.run("apply", "-f", "manifest.yaml")
    browser = signed_in(daemon)
    workspace.in_cloud(lambda cloud: cloud.edit("/b/logs", {"website": {"mainPageSuffix": "index.html"}}))
    browser.send("POST", f"/resources/{BUCKET}/actions/reconcile", {})
    until(lambda: browser.send("GET", "/resources")["resources"][0]["drifted"])
    timeline = browser.send("GET", f"/resources/{BUCKET}/timeline")["entries"]
    write = next(one for one in timeline if one["type"] == "write")
    summary = browser.send("GET", "/summary")
    browser.send("POST", f"/resources/{BUCKET}/actions/pause", {})
    until(lambda: browser.send("GET", "/resources")["resources"][0]["state"] == "paused")

    assert {one["type"] for one in timeline} == {"step", "write", "drift", "event"}
    assert [(one["method"], one["status"]) for one in write["requests"]] == [("PATCH", 200)]
    assert (write["who"], write["decision"]) == ("setpoint reconcile", "drifted")
    assert summary["process"]["phase"] == "running"
    assert summary["process"]["rates"]["steps"] >= 0
    assert browser.send("GET", f"/resources/{BUCKET}/fields")["isFresh"] is True
    assert ended(daemon) == 0


def test_a_page_beside_the_process_shows_the_same_store(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    workspace.run("apply", "-f", "manifest.yaml")
    page = workspace.piped("dashboard", "--no-open")
    browser = signed_in(page)

    assert [one["id"] for one in browser.send("GET", "/resources")["resources"]] == [BUCKET]
    assert browser.send("GET", "/session")["actions"] == []
    assert ended(page) == 0


def test_a_recording_is_shown_without_its_store(workspace: Workspace) -> None:
    workspace.write(bucket("logs"))
    workspace.run("apply", "-f", "manifest.yaml")
    workspace.run("record", "--to", "world.jsonl")
    page = workspace.piped("--store", "sqlite:///elsewhere.db", "dashboard", "--no-open", "--recording", "world.jsonl")
    browser = signed_in(page)
    session = browser.send("GET", "/session")
    fields = browser.send("GET", f"/resources/{BUCKET}/fields")["fields"]

    assert (session["source"], session["isLive"]) == ({"type": "recording", "name": "world.jsonl"}, False)
    assert browser.send("GET", "/resources")["total"] == 1
    assert {one["path"]: one["rule"] for one in fields}["spec.location"] == "spec"
    assert ended(page) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dashboard", "--listen", "0.0.0.0:0"), "other machines reach that"),
        (("dashboard", "--listen", ":0"), "other machines reach that"),
        (("dashboard",), "there is no store at"),
        (("dashboard", "--recording", "none.jsonl"), "none.jsonl"),
        (("dashboard", "--recording", "a", "--allow-actions"), "nothing can be done to a recording"),
        (("run", "--dashboard", "0.0.0.0:0"), "other machines reach that"),
        (("run", "--allow-actions"), "--allow-actions is for the page of --dashboard"),
        (("run", "--no-plan"), "--no-plan is for the page of --dashboard"),
        (("run", "--dashboard", "127.0.0.1:0", "--dashboard-peers", ":80"), "--dashboard-peers: write HOST:PORT"),
        (("run", "--dashboard", "127.0.0.1:0", "--dashboard-peers", "a:1"), "--dashboard-peers is for processes of a"),
    ],
)
def test_mistakes_are_told(workspace: Workspace, arguments: tuple[str, ...], message: str) -> None:
    done = workspace.run(*arguments)

    assert done.returncode == 1
    assert message in done.stderr
