"""Reviews of plans: the comment as Markdown, the action and the job that write it, and the hook of pre-commit."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from setpoint.cli.views.markdown import MARKER, MAX_CHARACTERS, code, plan_markdown
from setpoint.cli.views.table import one_line
from tests.localcloud.process import cloud_process

ACTION = Path("deploy/github-action")
BIN = Path(sys.executable).parent
SHOW = MarkdownIt("commonmark", {"html": True}).enable("table")
TRICKS = st.sampled_from(
    [
        "|",
        "\n",
        "`",
        "```\n",
        "<!-- x -->",
        "</code>",
        "</details>",
        "@admin",
        "https://x.example",
        "**",
        "![a](b)",
        "&#124;",
    ]
)
TEXTS = st.lists(TRICKS | st.text(max_size=8), max_size=6).map("".join)


def result(name: str, before: object, after: object, message: str = "", outcome: str = "update") -> dict[str, Any]:
    changes = [{"path": f"spec.{name}", "rule": "spec", "before": before, "after": after}]
    names = {"group": "g", "kind": "Kind", "namespace": "default", "name": name}
    return {**names, "outcome": outcome, "reason": "", "message": message, "changes": changes}


def document(*results: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"command": "plan", "results": list(results), "summary": {}, "exitCode": 2, "warnings": [], **more}


def shape(tokens: list[Token]) -> list[str]:
    """The structure of a text without its letters."""
    found = []
    for token in tokens:
        for one in [token, *(token.children or ())]:
            tag = re.sub(r"&#\d+;|\w", "", one.content) if one.type.startswith("html") else ""
            if one.type not in ("text", "text_special"):
                found.append(f"{one.type} {re.sub(r'[^<>/a-z]', '', tag)}")
    return found


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_text_gets_out_of_its_cell(name: str, before: str, after: str, message: str) -> None:
    plain = plan_markdown(document(result("a", "b", "c", "d"), warnings=["e"]))
    found = plan_markdown(document(result(f"a{name}", before, after, f"d{message}"), warnings=[f"e{message}"]))

    assert shape(SHOW.parse(found)) == shape(SHOW.parse(plain))
    assert found.count("\n") == plain.count("\n")


@given(TEXTS)
def test_a_text_is_shown_as_it_is(text: str) -> None:
    shown = code(f"a{text}", 10_000).removeprefix("<code>").removesuffix("</code>")

    assert re.fullmatch(r"(?:&#\d+;|[^\W_]| )*", shown)
    decoded = re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), shown)
    assert decoded == one_line(f"a{text}")


@given(st.integers(0, 3_000), st.sampled_from([1, 300, 100_000]), st.integers(0, 60))
def test_a_comment_fits_and_says_what_it_leaves_out(count: int, length: int, warnings: int) -> None:
    results = [result(f"n{number}", "|" * length, "x", "m" * length) for number in range(count // (1 + length // 100))]
    failed = result("last", 1, 2, "boom", "failed")

    text = plan_markdown(document(*results, failed, warnings=["w" * length] * warnings))

    shown = text.count("<details")
    assert len(text) <= MAX_CHARACTERS
    assert text.startswith(MARKER)
    # What failed comes first, and is never what is left out.
    assert "<b>failed</b>" in text
    left = len(results) + 1 - shown
    assert (f"**{left:,} more resources do not fit" in text) == (left > 0)


def test_secret_values_are_redacted_and_unchanged_resources_left_out() -> None:
    text = plan_markdown(document(result("password", "hunter2", "hunter3"), result("b", 1, 1, outcome="unchanged")))

    assert "hunter" not in text
    assert text.count("<details") == 1
    assert "### Plan: update 1, unchanged 1" in text


def test_a_plan_that_could_not_be_made_says_why() -> None:
    text = plan_markdown(document(error="m.yaml:3: no"))

    assert "### Plan: failed\n\n**The plan could not be made:** <code>m&#46;yaml&#58;3&#58; no</code>" in text


def test_each_mistake_has_a_line_of_its_own() -> None:
    text = plan_markdown(document(error="\n".join(f"wrong {number}" for number in range(22))))

    lines = text.splitlines()
    assert lines[4:7] == ["**The plan could not be made:**", "", "* <code>wrong 0</code>"]
    assert lines[-2:] == ["* <code>wrong 19</code>", "* … and 2 more"]
    long = {**document(error="\n".join(["*" * 5_000] * 50)), "warnings": ["*" * 5_000] * 50}
    assert len(plan_markdown(long)) <= MAX_CHARACTERS


# --- The comment ------------------------------------------------------------------------------------------------------


class Forge:
    """The comments of one pull request or merge request, behind a real HTTP server."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.status = 0
        self.url = ""

    def answer(self, method: str, path: str, body: Any) -> tuple[Any, str]:
        if path.endswith("/user"):
            return {"id": 7}, ""
        is_all = path.partition("?")[0].endswith(("/comments", "/notes"))
        if method == "GET":
            # One on each page.
            page = int(path.partition("page=")[2].rpartition("page=")[2] or 1) if "&page=" in path else 1
            more = (
                f'<{self.url}{path.partition("&")[0]}&page={page + 1}>; rel="next"' if page < len(self.comments) else ""
            )
            return self.comments[page - 1 : page], more
        if method == "POST" and is_all:
            self.add(body["body"])
            return self.comments[-1], ""
        number = int(path.rpartition("/")[2])
        (one,) = [one for one in self.comments if one["id"] == number]
        one["body"] = body["body"]
        return one, ""

    def add(self, text: str, *, by_bot: bool = True) -> None:
        user = {"type": "Bot" if by_bot else "User"}
        number = len(self.comments) + 1
        self.comments.append({"id": number, "body": text, "user": user, "author": {"id": 7 if by_bot else 8}})


@contextmanager
def forge_server() -> Iterator[Forge]:
    forge = Forge()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            forge.requests.append(f"{self.command} {self.path.partition('?')[0]}")
            forge.tokens |= {self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""}
            found, link = ({}, "") if forge.status else forge.answer(self.command, self.path, body)
            data = json.dumps(found).encode()
            self.send_response(forge.status or 200)
            self.send_header("Link", link)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = _handle

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def environment(forge: Forge, kind: str, **more: str) -> dict[str, str]:
    own = {
        "github": {
            "GITHUB_API_URL": forge.url,
            "GITHUB_REPOSITORY": "acme/world",
            "GITHUB_TOKEN": "t0ken",
            "SETPOINT_PULL_REQUEST": "5",
        },
        "gitlab": {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": forge.url,
            "CI_PROJECT_ID": "12",
            "CI_MERGE_REQUEST_IID": "5",
            "SETPOINT_GITLAB_TOKEN": "t0ken",
        },
    }
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": "/nonexistent", **own[kind], **more}


def comment(file: Path, forge: Forge, kind: str, **more: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, str(ACTION / "comment.py"), str(file)]
    return subprocess.run(call, env=environment(forge, kind, **more), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_the_comment_is_added_once_and_edited_from_then_on(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    with forge_server() as forge:
        forge.add("hello")
        # A user cannot take the place of the comment.
        forge.add(f"{MARKER}\nmine", by_bot=False)
        for text in ("first", "second"):
            file.write_text(f"{MARKER}\n\n{text}\n")
            assert comment(file, forge, kind).returncode == 0
        assert comment(file, forge, kind, SETPOINT_COMMENT_NAME="eu").returncode == 0

        texts = [one["body"] for one in forge.comments]
        assert texts == ["hello", f"{MARKER}\nmine", f"{MARKER}\n\nsecond\n", "<!-- setpoint plan eu -->\n\nsecond\n"]
        assert {token.removeprefix("Bearer ") for token in forge.tokens} == {"t0ken"}


@pytest.mark.parametrize(
    ("text", "status", "without", "why"),
    [
        ("no plan", 0, "", "is no plan: make it by setpoint plan -o markdown"),
        (f"{MARKER}\n" + "x" * 70_000, 0, "", "and a comment at most 65,536"),
        (f"{MARKER}\n", 403, "", "403 Forbidden: may the token write comments?"),
        (f"{MARKER}\n", 0, "SETPOINT_PULL_REQUEST", "SETPOINT_PULL_REQUEST is not in the environment"),
    ],
)
def test_what_is_wrong_is_said(text: str, status: int, without: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    file.write_text(text)
    with forge_server() as forge:
        forge.status = status
        found = {name: value for name, value in environment(forge, "github").items() if name != without}
        call = [sys.executable, str(ACTION / "comment.py"), str(file)]
        done = subprocess.run(call, env=found, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert why in done.stderr
    assert "t0ken" not in done.stderr


# --- The action and the job -------------------------------------------------------------------------------------------

BUCKET = """apiVersion: storage.cnrm.cloud.google.com/v1beta1
kind: StorageBucket
metadata: {name: logs-1, annotations: {cnrm.cloud.google.com/project-id: demo}}
spec: {location: EU}
"""


@pytest.fixture
def cloud_url() -> Iterator[str]:
    """The address of a local cloud."""
    with cloud_process() as address:
        yield address


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]
    return found


def test_every_value_of_the_action_reaches_its_scripts_by_the_environment() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text())

    assert action["runs"]["using"] == "composite"
    assert [step["name"] for step in steps() if step["shell"] != "bash" or "${{" in step["run"]] == []
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(action["runs"])))
    assert used == set(action["inputs"])


def test_the_steps_of_the_action_validate_plan_and_comment(tmp_path: Path, cloud_url: str) -> None:
    world, temp = tmp_path / "world", tmp_path / "temp"
    world.mkdir()
    temp.mkdir()
    (world / "bucket.yaml").write_text(BUCKET)
    given = {"SETPOINT_PATH": str(world), "SETPOINT_STORE": "sqlite:///state.db", "SETPOINT_ARGUMENTS": "-n default"}
    files = {"GITHUB_STEP_SUMMARY": str(temp / "summary"), "GITHUB_OUTPUT": str(temp / "output")}
    runner = {"RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(ACTION.absolute()), "GITHUB_ACTIONS": "true"}
    service = {"STORAGE_EMULATOR_HOST": cloud_url, "SETPOINT_GCP_AUTH": "anonymous"}

    def run(name: str, forge: Forge, **more: str) -> subprocess.CompletedProcess[str]:
        (step,) = [one for one in steps() if one["name"] == name]
        own = environment(forge, "github", **given, **files, **runner, **service, **more)
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(shell, env=own, cwd=tmp_path, capture_output=True, text=True, check=False)

    with forge_server() as forge:
        assert run("Validate", forge).returncode == 0
        assert run("Plan", forge).returncode == 0
        assert (temp / "output").read_text() == "exit-code=2\n"
        assert run("Comment", forge).returncode == 0
        assert run("Result", forge, CODE="2").returncode == 0
        (body,) = [one["body"] for one in forge.comments]
        assert "### Plan: create 1" in body
        assert body == (temp / "summary").read_text()

        (world / "bucket.yaml").write_text(BUCKET.replace("location", "locatoin"))
        wrong = run("Validate", forge)
        assert wrong.returncode == 1
        assert "::error file=" in wrong.stdout
        assert run("Result", forge, CODE="1").returncode == 1


def test_the_job_of_gitlab_runs_the_same_and_in_this_order() -> None:
    (job,) = yaml.safe_load(Path("deploy/gitlab/setpoint-plan.yml").read_text()).values()

    assert [line.split()[0] for line in job["script"]] == ["setpoint", "code=0", "set", "setpoint", "python3", "test"]
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]


# --- pre-commit -------------------------------------------------------------------------------------------------------


def test_the_hook_finds_a_mistake_in_what_is_committed(tmp_path: Path) -> None:
    (published,) = yaml.safe_load(Path(".pre-commit-hooks.yaml").read_text())
    # As published, but for the environment that it would install from the network.
    hook = {**published, "language": "system", "entry": f"{BIN}/{published['entry']}", "files": "^world/"}
    config = {"repos": [{"repo": "local", "hooks": [hook]}]}
    (tmp_path / ".pre-commit-config.yaml").write_text(json.dumps(config))
    (tmp_path / "world").mkdir()
    (tmp_path / "world/good.yaml").write_text(BUCKET)
    (tmp_path / "world/bad.yaml").write_text(BUCKET.replace("location", "locatoin").replace("logs-1", "bad-1"))
    own = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*call: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(call, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)

    assert run("git", "init", "-q").returncode == 0
    run("git", "add", ".")
    refused = run("pre-commit", "run")
    run("git", "rm", "-q", "--cached", "world/bad.yaml")
    accepted = run("pre-commit", "run")

    assert refused.returncode == 1
    assert "world/bad.yaml:4: StorageBucket default/bad-1: there is no field spec.locatoin" in refused.stdout
    assert accepted.returncode == 0, accepted.stdout


def test_the_published_definition_of_the_hook_is_valid() -> None:
    call = [str(BIN / "pre-commit"), "validate-manifest", ".pre-commit-hooks.yaml"]

    assert subprocess.run(call, capture_output=True, text=True, check=False).returncode == 0


def test_the_page_shows_what_there_is() -> None:
    page = Path("docs/how-to/review-in-pull-requests.md").read_text()
    workflow, job, hooks = (
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    )
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    (use,) = [step for step in workflow["jobs"]["plan"]["steps"] if "with" in step]
    (hook,) = hooks["repos"][0]["hooks"]

    assert (use["uses"], set(use["with"]) - set(action["inputs"])) == ("./deploy/github-action", set())
    assert job["plan"]["extends"] in yaml.safe_load(Path("deploy/gitlab/setpoint-plan.yml").read_text())
    assert hook["id"] in [one["id"] for one in yaml.safe_load(Path(".pre-commit-hooks.yaml").read_text())]


def test_an_installation_takes_the_addresses_of_notifications_from_a_secret() -> None:
    call = [str(BIN / "setpoint"), "install", "--dry-run", "--no-crds", "--notify-secret"]
    made = subprocess.run([*call, "notify"], capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run([*call, "No_Secret"], capture_output=True, text=True, check=False)

    (deployment,) = [one for one in yaml.safe_load_all(made) if one["kind"] == "Deployment"]
    variables = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert variables["SETPOINT_NOTIFY"]["valueFrom"]["secretKeyRef"] == {"name": "notify", "key": "addresses"}
    assert variables["SETPOINT_NOTIFY_SECRET"]["valueFrom"]["secretKeyRef"]["optional"] is True
    assert (wrong.returncode, "--notify-secret: 'No_Secret' cannot be a Secret" in wrong.stderr) == (1, True)
