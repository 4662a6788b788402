"""Every message is in the docs, and the docs show no message that is gone."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from setpoint.errors import Retry
from tests.docs.messages import MESSAGE_POSITIONS, PLACEHOLDER, messages_in
from tests.docs.sessions import TYPED

PAGE = Path("docs/errors.md").read_text(encoding="utf-8")
# The errors that the contract of kinds raises in the place of a store or a service are for tests.
SOURCES = {
    file: file.read_text(encoding="utf-8")
    for file in sorted(Path("src/setpoint").rglob("*.py"))
    if "testing" not in file.parts
}
# Tables of messages have this heading; a cell with a backtick in it has two around it.
TABLE = re.compile(r"^\| message \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
CELL = re.compile(r"^\| (`+)(.+?)\1 \|", re.MULTILINE)
SESSION = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _rows(page: str) -> list[str]:
    # A bar would end the cell, so that it is escaped there.
    return [message.replace(r"\|", "|") for table in TABLE.findall(page) for _, message in CELL.findall(table)]


def _printed(page: str) -> list[str]:
    sessions = "".join(SESSION.findall(page))
    return [line for _, shown in TYPED.findall(sessions) for line in shown.splitlines()]


def missing_from(page: str, messages: Iterable[str]) -> list[str]:
    """The messages that stand in no row of a table, and that no session prints."""
    rows, printed = _rows(page), _printed(page)

    def is_shown(message: str) -> bool:
        pattern = re.compile(".+".join(map(re.escape, message.split(PLACEHOLDER))))
        return any(message in row for row in rows) or any(map(pattern.search, printed))

    return [message for message in messages if not is_shown(message)]


def gone_from(messages: Iterable[str], page: str) -> list[str]:
    """The rows of the page whose message is in no code any more."""
    known = set(messages)
    return [row for row in _rows(page) if row not in known]


@cache
def _messages() -> dict[str, str]:
    """Every message, and where it is made."""
    found = {message: f"{file}:{line}" for file, text in SOURCES.items() for message, line in messages_in(text).items()}
    assert len(found) > 100
    return found


def test_every_message_is_in_the_docs() -> None:
    messages = _messages()
    missing = [f"{messages[message]}: add a row: | `{message}` |" for message in missing_from(PAGE, messages)]

    assert not missing, "\n".join(missing)


def test_every_message_in_the_docs_is_in_the_source() -> None:
    gone = [f"this message is in no code any more: | `{row}` |" for row in gone_from(_messages(), PAGE)]

    assert not gone, "\n".join(gone)


def test_no_message_has_two_rows() -> None:
    rows = _rows(PAGE)

    assert [row for row in dict.fromkeys(rows) if rows.count(row) > 1] == []


def test_the_docs_have_the_retry_of_every_error_class() -> None:
    assert [one.value for one in Retry if one.value not in PAGE] == []


def test_every_error_class_is_defined_in_errors_py() -> None:
    """The messages of a class defined elsewhere would not be found."""
    classes = [
        f"{file}:{node.lineno}"
        for file, text in SOURCES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and file.name != "errors.py"
        if any(isinstance(one, ast.Name) and one.id in MESSAGE_POSITIONS for one in node.bases)
    ]

    assert classes == []


# --- The tests above can fail -----------------------------------------------------------------------------------------

SMALL_PAGE = """
| message | when | what to do |
|---|---|---|
| `the disk … is full: make room` | Soon. | Make room. |
| ``run `fsck` on …`` | Later. | Do that. |

```console
$ setpoint get
error: a.yaml:3: there is no lamp: add one
```
"""


def test_a_message_without_a_row_is_reported() -> None:
    new = messages_in('raise StoreError(f"the disk {disk} is gone: put it back")')

    assert missing_from(SMALL_PAGE, new) == ["the disk … is gone: put it back"]


def test_a_message_in_a_row_or_a_session_is_not_reported() -> None:
    shown = ["the disk … is full: make room", "run `fsck` on …", "…: there is no lamp: add one"]

    assert missing_from(SMALL_PAGE, shown) == []


def test_a_row_without_a_message_is_reported() -> None:
    assert gone_from(["run `fsck` on …"], SMALL_PAGE) == ["the disk … is full: make room"]


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        ("raise UserError('turn it off and on')", ["turn it off and on"]),
        ("raise UserError(f'{a} is {b!r}: write {c:d}')", ["… is …: write …"]),
        ("raise UserError('this ' + that + ' other')", ["this … other"]),
        ("return Blocked(f'waiting for {what}', after=3)", ["waiting for …"]),
        ("raise errors.UserError('turn it off and on')", ["turn it off and on"]),
        ("raise UserError('now' if soon else 'not now')", ["not now", "now"]),
        ("raise UserError('; '.join(f'{one} is odd' for one in odd))", ["… is odd"]),
        ("raise UserError(f'{at}: {error}')", []),
        ("raise KeyError('who reads this')", []),
    ],
)
def test_a_message_is_its_words_and_placeholders(source: str, messages: list[str]) -> None:
    found = messages_in(f"def make():\n    {source}\n")

    assert sorted(found) == messages


FOLLOWED = """
NAME = "SETPOINT_LAMP"
_MEANINGS = (("DARK", "is dark: light it"), ("LOUD", "is on fire: run"))


def check(word):
    hint = f"; did you mean {near}?" if near else ""
    raise UserError(f"{NAME} is no lamp{hint}")


def judge(lamp):
    meaning = next((words for start, words in _MEANINGS if lamp == start), "failed")
    return StoreError(f"{lamp} {meaning}")


class Reader:
    def read(self, text):
        raise self._refused(text, "a lamp belongs here")

    def _refused(self, text, why):
        return ManifestInvalid(f"{text} breaks off: {why}")


def observe(error):
    raise RemoteError(f"GET: {_reason(error)}")


def _reason(error):
    if error:
        return f"cannot connect to {error.host}"
    return "that is no address"
"""


def test_the_parts_of_a_message_are_resolved_within_their_module() -> None:
    assert sorted(messages_in(FOLLOWED)) == [
        "GET: cannot connect to …",
        "GET: that is no address",
        "SETPOINT_LAMP is no lamp",
        "SETPOINT_LAMP is no lamp; did you mean …?",
        "… breaks off: a lamp belongs here",
        "… is dark: light it",
        "… is on fire: run",
    ]
