"""Expressions of SQL that an author writes: what can be one, and how the server spells it.

PostgreSQL keeps an expression parsed, and spells it in its own way: `status = 'paid'` is read back as
`(status = 'paid'::text)`. What the server made of each text is read in the transaction that sent it, and kept in the
status: another spelling found later is another expression.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from setpoint.kind import JsonObject, Resource, field_invalid

_FORBIDDEN: Final = (";", "--", "/*", "$")
# A text with escapes, or the end of a word before a quote: both are taken for the first.
_ESCAPED_TEXT: Final = re.compile("[eE]'")


class ExpressionForm(Struct, frozen=True):
    """An expression as the author wrote it, and as the server spells it."""

    at: str
    """What it belongs to, such as a table."""
    declared: str
    """The author's text."""
    stored: str
    """The server's text."""


def check_expression(resource: Resource, field: str, text: str) -> None:
    """ManifestInvalid for a text that cannot be one expression: it would end the statement that it stands in."""
    problem = _problem(text)
    if problem:
        raise field_invalid(resource, field, f" {problem}: write one expression of SQL")


def is_expression(text: str) -> bool:
    """Whether the text stays inside of the parentheses that it is put into: sessions of setpoint read a backslash in
    '…' as itself (standard_conforming_strings)."""
    return _problem(text) == ""


def _problem(text: str) -> str:
    if "\0" in text or ("\\" in text and _ESCAPED_TEXT.search(text)):
        return "has a NUL, or a backslash beside E'…'"
    depth, at = 0, 0
    while at < len(text):
        char = text[at]
        if char in "'\"":
            end = _quoted_end(text, at)
            if end is None:
                return "has a quote that does not end"
            at = end
            continue
        depth += (char == "(") - (char == ")")
        if depth < 0 or any(text.startswith(one, at) for one in _FORBIDDEN):
            return f"has {text[at : at + 2].strip()!r} outside of quotes"
        at += 1
    if depth:
        return "has a parenthesis that is not closed"
    return "" if text.strip() else "is empty"


def _quoted_end(text: str, begin: int) -> int | None:
    """The position after a quoted text or name; two quotes are one of them. None where it does not end."""
    quote, at = text[begin], begin + 1
    while (found := text.find(quote, at)) >= 0:
        if text[found + 1 : found + 2] != quote:
            return found + 1
        at = found + 2
    return None


def plain(text: str) -> str:
    """The text without the parentheses that the server, or an author, puts around the whole of it."""
    found = text.strip()
    while found.startswith("(") and found.endswith(")") and is_expression(found[1:-1]):
        found = found[1:-1].strip()
    return found


def recorded_forms(status: JsonObject, member: str) -> dict[str, ExpressionForm]:
    """The forms in the status, by what they belong to."""
    try:
        found = msgspec.convert(status.get(member) or [], list[ExpressionForm])
    except msgspec.ValidationError:
        # A status is not written by setpoint alone: what is no form is none.
        return {}
    return {one.at: one for one in found}


def new_forms(declared: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, ExpressionForm]:
    """The forms of expressions that were just sent."""
    return {at: ExpressionForm(at, text, stored[at]) for at, text in declared.items() if at in stored}


def as_declared(forms: Iterable[ExpressionForm], stored: Mapping[str, str]) -> dict[str, str]:
    """The live expressions in the author's words where the server made them of these, else in the server's."""
    known = {(one.at, one.stored): one.declared for one in forms}
    return {at: known.get((at, text), plain(text)) for at, text in stored.items()}


def forms_output(forms: Iterable[ExpressionForm], stored: Mapping[str, str]) -> list[dict[str, str]]:
    """What the status has to keep: the forms that are still what the server has."""
    kept = [one for one in forms if stored.get(one.at) == one.stored]
    return [msgspec.to_builtins(one) for one in sorted(kept, key=lambda one: one.at)]
