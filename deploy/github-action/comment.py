"""Puts a plan into one comment of a pull request or merge request: the earlier comment is edited, none is added.

Of GitHub or GitLab, as the environment says; with the standard library alone. `comment.py FILE` has the text in FILE.
"""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARKER = "<!-- setpoint plan"
MOST = 65_536
SECONDS = 30


def main() -> int:
    """The exit code: 0 once the comment is there, 1 with what is wrong."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    marker = (
        f"{MARKER} {os.environ['SETPOINT_COMMENT_NAME']} -->"
        if os.environ.get("SETPOINT_COMMENT_NAME")
        else f"{MARKER} -->"
    )
    text = text.replace(f"{MARKER} -->", marker, 1)
    if not text.startswith(marker):
        return failed(f"{sys.argv[1]} is no plan: make it by setpoint plan -o markdown")
    if len(text) > MOST:
        return failed(f"the plan has {len(text):,} characters, and a comment at most {MOST:,}")
    try:
        forge = GitLab() if "GITLAB_CI" in os.environ else GitHub()
        known = next((one for one in forge.comments() if one[1].startswith(marker)), None)
        forge.write(None if known is None else known[0], text)
    except KeyError as error:
        return failed(
            f"{error.args[0]} is not in the environment: this is for a job of a pull request or merge request"
        )
    except urllib.error.HTTPError as error:
        return failed(f"{error.url.partition('?')[0]}: {error.code} {error.reason}: may the token write comments?")
    except (urllib.error.URLError, OSError, ValueError) as error:
        return failed(f"the comment could not be written: {error}")
    sys.stdout.write("comment updated\n" if known else "comment added\n")
    return 0


def failed(why: str) -> int:
    """Says why, as an annotation of the job where that is known."""
    sys.stderr.write(f"::error::{why}\n" if "GITHUB_ACTIONS" in os.environ else f"error: {why}\n")
    return 1


class GitHub:
    """The comments of a pull request."""

    def __init__(self) -> None:
        api, repository = os.environ["GITHUB_API_URL"], os.environ["GITHUB_REPOSITORY"]
        self.repository = f"{api}/repos/{repository}"
        self.all = f"{self.repository}/issues/{int(os.environ['SETPOINT_PULL_REQUEST'])}/comments"
        self.headers = {
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
        }

    def comments(self) -> Iterator[tuple[str, str]]:
        """Address and text of each, those of bots alone: a user could write the marker, too."""
        for found in pages(f"{self.all}?per_page=100", self.headers):
            if (found.get("user") or {}).get("type") == "Bot":
                yield f"{self.repository}/issues/comments/{found['id']}", found["body"] or ""

    def write(self, known: str | None, text: str) -> None:
        """Adds the comment, or replaces its text."""
        call("POST" if known is None else "PATCH", known or self.all, self.headers, {"body": text})


class GitLab:
    """The notes of a merge request."""

    def __init__(self) -> None:
        api, project = os.environ["CI_API_V4_URL"], os.environ["CI_PROJECT_ID"]
        project = f"{api}/projects/{urllib.parse.quote(project, safe='')}"
        self.all = f"{project}/merge_requests/{int(os.environ['CI_MERGE_REQUEST_IID'])}/notes"
        self.headers = {"PRIVATE-TOKEN": os.environ["SETPOINT_GITLAB_TOKEN"]}
        self.own = call("GET", f"{api}/user", self.headers)[0]["id"]

    def comments(self) -> Iterator[tuple[str, str]]:
        """Address and text of each of the token's own."""
        for found in pages(f"{self.all}?per_page=100", self.headers):
            if found["author"]["id"] == self.own:
                yield f"{self.all}/{found['id']}", found["body"]

    def write(self, known: str | None, text: str) -> None:
        """Adds the note, or replaces its text."""
        call("POST" if known is None else "PUT", known or self.all, self.headers, {"body": text})


def pages(url: str, headers: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The elements of all pages; both forges name the next one in the header Link."""
    while url:
        found, links = call("GET", url, headers)
        yield from found
        nexts = [part for part in links.split(",") if 'rel="next"' in part]
        following = nexts[0].split(";")[0].strip(" <>") if nexts else ""
        # A token is sent to the forge alone.
        same = urllib.parse.urlsplit(following).netloc == urllib.parse.urlsplit(url).netloc
        url = following if same else ""


def call(method: str, url: str, headers: dict[str, str], body: object = None) -> tuple[Any, str]:
    """The answer as JSON, and its header Link."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {**headers, "Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer), answer.headers.get("Link", "")


if __name__ == "__main__":
    sys.exit(main())
