"""A plan as a comment of a pull request: Markdown that any text in it leaves as it is, within the size of a comment.

Whatever comes from manifests and services stands in `<code>`, with its punctuation as character references: it is no
mark-up, no link, no mention and no end of a cell.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from setpoint.cli.views.table import one_line
from setpoint.core.redaction import redact_record
from setpoint.core.values.canonical import canonical
from setpoint.core.values.json_types import MISSING, Json, Missing
from setpoint.core.values.shortening import UNSET_TEXT
from setpoint.library.command_document import counts_of, summary_line

# By which a comment is found again.
MARKER: Final = "<!-- setpoint plan -->"
# What a comment of GitHub may have; one of GitLab may have more.
MAX_CHARACTERS: Final = 65_536
# Kept free for the line that says what was left out.
_RESERVED: Final = 1_000
_MAX_ROWS: Final = 100
_MAX_VALUE: Final = 200
_MAX_MESSAGE: Final = 1_000
_MAX_WARNINGS: Final = 20
_MAX_MISTAKES: Final = 20
_UNCHANGED: Final = "unchanged"
# What needs attention comes first.
_FIRST: Final = ("failed", "blocked", "waiting")
_SIGNS: Final = {"create": "+", "update": "~", "replace": "±", "delete": "-", "failed": "✗"}


def plan_markdown(document: Mapping[str, Any]) -> str:
    """The document of `plan -o json` as Markdown, at most MAX_CHARACTERS long."""
    results = [one for one in document["results"] if one["outcome"] != _UNCHANGED]
    results.sort(key=lambda one: _FIRST.index(one["outcome"]) if one["outcome"] in _FIRST else len(_FIRST))
    parts = [MARKER, f"### Plan: {_summary(document)}"]
    parts += [_mistakes(document["error"])] if "error" in document else []
    parts += [] if results or "error" in document else ["Nothing to do."]
    parts += _fitting([_paragraph("Warning", text) for text in document["warnings"][:_MAX_WARNINGS]])
    left_out, size = Counter[str](), sum(len(part) + 2 for part in parts) + _RESERVED
    for one in results:
        section = _section(one)
        size += len(section) + 2
        if size > MAX_CHARACTERS:
            left_out[one["outcome"]] += 1
            size -= len(section) + 2
        else:
            parts.append(section)
    if left_out:
        words = ", ".join(f"{name} {count}" for name, count in left_out.items())
        parts.append(
            f"**{left_out.total():,} more resources do not fit into a comment** ({words}): see the output of the job."
        )
    return "\n\n".join(parts) + "\n"


def _summary(document: Mapping[str, Any]) -> str:
    is_failed = "error" in document and not document["results"]
    return "failed" if is_failed else summary_line(counts_of(_outcomes(document)))


def _outcomes(document: Mapping[str, Any]) -> Iterator[Any]:
    from setpoint.library.command_document import ResultOutcome

    return (ResultOutcome(one["outcome"]) for one in document["results"])


def _paragraph(word: str, text: str) -> str:
    return f"**{word}:** {code(text, _MAX_MESSAGE)}"


def _mistakes(text: str) -> str:
    """Why there is no plan: each mistake on a line of its own."""
    word, lines = "The plan could not be made", text.splitlines()
    if len(lines) < 2:
        return _paragraph(word, text)
    shown = _fitting([f"* {code(line, _MAX_MESSAGE)}" for line in lines[:_MAX_MISTAKES]])
    more = [f"* … and {len(lines) - len(shown):,} more"] if len(lines) > len(shown) else []
    return "\n".join([f"**{word}:**", "", *shown, *more])


def _fitting(texts: Sequence[str]) -> Sequence[str]:
    """As many of them, from the first, as a third of a comment has room for."""
    sizes = accumulate(len(one) + 2 for one in texts)
    return [one for one, size in zip(texts, sizes, strict=True) if size <= MAX_CHARACTERS // 3]


def _section(one: Mapping[str, Any]) -> str:
    name = "/".join(part for part in (one["namespace"], one["name"]) if part)
    outcome = one["outcome"]
    head = f"<summary>{_SIGNS.get(outcome, '!')} {code(one['kind'])} {code(name)}: <b>{outcome}</b></summary>"
    lines = [f"<details{' open' if outcome in _FIRST else ''}>{head}"]
    if one["message"]:
        lines += ["", code(one["message"], _MAX_MESSAGE)]
    if "then" in one:
        lines += ["", f"Then: {', '.join(code(write['action']) for write in one['then']['writes']) or _UNCHANGED}"]
    rows = list(_rows(one))
    if rows:
        lines += ["", "| field | before | after | why |", "|---|---|---|---|", *rows[:_MAX_ROWS]]
    if len(rows) > _MAX_ROWS:
        lines += ["", f"… and {len(rows) - _MAX_ROWS:,} more fields"]
    return "\n".join([*lines, "", "</details>"])


def _rows(one: Mapping[str, Any]) -> Iterator[str]:
    withheld = one.get("plan", {}).get("withheld", ())
    for write in one.get("then", {}).get("writes", ()):
        for change in write["changes"]:
            yield _row(change, f"then: {change['rule']}")
    for change in one["changes"]:
        yield _row(change, str(change["rule"]))
    for change in withheld:
        yield _row(change, f"withheld: {change['rule']}")


def _row(change: Mapping[str, Json], why: str) -> str:
    # A plan has no secret values; fields with a name that sounds secret are redacted besides.
    shown = redact_record(dict(change), whole=False)
    assert isinstance(shown, Mapping)
    cells: Iterable[str] = (
        code(str(change["path"]), _MAX_VALUE),
        _value(shown.get("before", MISSING)),
        _value(shown.get("after", MISSING)),
        code(why),
    )
    return f"| {' | '.join(cells)} |"


def _value(value: Json | Missing) -> str:
    return UNSET_TEXT if isinstance(value, Missing) else code(canonical(value).decode(), _MAX_VALUE)


def code(text: str, longest: int = _MAX_VALUE) -> str:
    """Any text, on one line, as itself."""
    plain = one_line(text)
    short = plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
    return f"<code>{''.join(map(_reference, short))}</code>" if short else ""


def _reference(letter: str) -> str:
    return letter if letter == " " or letter.isalnum() else f"&#{ord(letter)};"
