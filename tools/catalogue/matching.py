"""Which member of the API's object a field of a spec is, where facts do not know: rules over names and types.

Names are compared as words: `kmsKeyRef` is `kms key`, `pemPrivateKey` and `privateKeyPem` are the same words.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from tools.catalogue.discovery import Document, Schema
from tools.catalogue.entries import FieldEntry

UNKNOWN: Final = "?"
# An object whose members stand in the object that it is in.
BESIDE: Final = "."
# A field that no request has: it says how another is sent, or what becomes of the object.
LOCAL: Final = "-"
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# The API adds such a word to what the spec names, or the spec to what the API names.
_ADDED: Final = frozenset(
    {"name", "id", "uri", "url", "link", "email", "path", "gb", "sec", "second", "ms", "config", "count", "version"}
)
_SYNONYMS: Final = {
    "num": "count",
    "auto": "automatic",
    "configuration": "config",
    "enable": "enabled",
    "disabled": "disable",
}
_SCALARS: Final = ("string", "integer", "boolean", "number")
_NO_PLURALS: Final = frozenset({"kms", "dns", "tls", "gcs", "aws", "https", "cors", "gas", "iops", "status"})
Words: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A member that a field may be: its path, the words of the path's last step, and its schema."""

    path: str
    words: Words
    schema: Schema


Rule: TypeAlias = Callable[[Words, Candidate], bool]


@cache
def words_of(name: str) -> Words:
    """The words of a name in camel case, each in the singular and in lower case."""
    return tuple(_singular(word.lower()) for word in _WORD.findall(name))


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith("ss") or len(word) <= 2 or word in _NO_PLURALS:
        return word
    if word.endswith(("xies", "sses", "xes", "ches")):
        return word[:-2]
    return word.removesuffix("s")


def stem_of(name: str, field: FieldEntry) -> Words:
    """The words of a field's name, without what marks a reference."""
    found = words_of(name)
    return found[:-1] if "ref" in field and len(found) > 1 and found[-1] == "ref" else found


def matched(
    name: str, field: FieldEntry, members: Mapping[str, Schema], document: Document, claimed: Set[str] = frozenset()
) -> str:
    """The path of the one member that the first fitting rule finds; `?` when no rule finds exactly one.

    `claimed`: the paths of members that other fields are.
    """
    stem = stem_of(name, field)
    outer = {path.split(".")[0] for path in claimed}
    free = {one: schema for one, schema in members.items() if one not in claimed}
    direct = [one for one in _direct(free) if one.path not in outer and _fits(field, one.schema, document)]
    nested = [one for one in _nested(free, document) if one.path not in claimed and _fits(field, one.schema, document)]
    attempts = list(_attempts(direct, nested))
    if "ref" in field:
        attempts += [(direct, _email_of_account)] if "IAMServiceAccount" in field["ref"].get("kinds", ()) else []
        attempts += [(direct, _of_another_service), (nested, _word_added)]
    if "fields" in field:
        attempts.append(([one for one in direct if _same_inside(field, one, document)], _a_word_shared))
    for candidates, rule in attempts:
        found = sorted((one for one in candidates if rule(stem, one)), key=lambda one: len(one.words))
        if len(found) == 1 or (len(found) > 1 and len(found[0].words) < len(found[1].words)):
            return found[0].path
    return UNKNOWN


def matched_in(outer: str, name: str, members: Mapping[str, Schema], document: Document) -> str:
    """The member of the object `outer` that has the words of the name; `?` when there is none."""
    inside = [one for one in _nested({outer: members[outer]}, document) if _same_words(words_of(name), one)]
    return inside[0].path if len(inside) == 1 else UNKNOWN


def _attempts(direct: list[Candidate], nested: list[Candidate]) -> Iterator[tuple[list[Candidate], Rule]]:
    yield direct, _same_words
    yield direct, _word_added
    yield direct, _participle
    yield nested, _same_words_and_parent
    yield nested, _same_words_of_several
    yield direct, _with_words_before


def _direct(members: Mapping[str, Schema]) -> Iterator[Candidate]:
    for name, schema in members.items():
        if not is_output(schema):
            yield Candidate(name, words_of(name), schema)


def _nested(members: Mapping[str, Schema], document: Document) -> Iterator[Candidate]:
    for outer, schema in members.items():
        found = document.resolved(schema)
        if "items" in found or is_output(schema):
            continue
        for name, inner in found.get("properties", {}).items():
            if not is_output(inner):
                yield Candidate(f"{outer}.{name}", words_of(name), inner)


def is_output(schema: Schema) -> bool:
    """Whether only the service sets a member."""
    text = schema.get("description", "").lower()
    return schema.get("readOnly", False) or text.startswith(("output only", "[output only]", "[output-only]"))


def is_plain_text(schema: Schema, document: Document) -> bool:
    """Whether an author may write any text there, or texts."""
    element = document.element(schema)
    return element.get("type") == "string" and "enum" not in element and not is_output(schema)


# --- Rules ------------------------------------------------------------------------------------------------------------


def _plain(words: Words) -> frozenset[str]:
    """The words without their order; a key of Cloud KMS is a key."""
    found = frozenset(_SYNONYMS.get(word, word) for word in words)
    return found - {"kms", "crypto"} if "key" in found else found


def _same_words(stem: Words, one: Candidate) -> bool:
    return _plain(stem) == _plain(one.words)


def _word_added(stem: Words, one: Candidate) -> bool:
    more, less = _plain(one.words), _plain(stem)
    return (less < more and more - less <= _ADDED) or (more < less and less - more <= _ADDED)


def _participle(stem: Words, one: Candidate) -> bool:
    """`allow` is `allowed`."""
    joined, other = "".join(stem), "".join(one.words)
    return len(joined) >= 4 and other in (f"{joined}ed", f"{joined}d")


def _same_words_and_parent(stem: Words, one: Candidate) -> bool:
    """`enableShieldedNodes` is `shieldedNodes.enabled`: the words of the whole path."""
    whole = _plain(tuple(word for step in one.path.split(".") for word in words_of(step)))
    return whole == _plain(stem) or whole - {"config"} == _plain(stem) - {"config"}


def _same_words_of_several(stem: Words, one: Candidate) -> bool:
    """`routingMode` is `routingConfig.routingMode`; one word alone, such as `enabled`, is in too many objects."""
    return len(stem) > 1 and _same_words(stem, one)


def _with_words_before(stem: Words, one: Candidate) -> bool:
    """`diskRef` is `sourceDisk`, `target` is `utilizationTarget`."""
    return stem[-1] not in ("name", "id") and 0 < len(one.words) - len(stem) <= 2 and one.words[-len(stem) :] == stem


def _of_another_service(stem: Words, one: Candidate) -> bool:
    """`backendServiceRef` is `service`."""
    return len(stem) > len(one.words) and stem[-len(one.words) :] == one.words


def _email_of_account(_stem: Words, one: Candidate) -> bool:
    """`serviceAccountRef` is `email`."""
    return one.words == ("email",)


def _a_word_shared(stem: Words, one: Candidate) -> bool:
    """`nodeConfig` is `config`, if most of what is in them has the same names."""
    return bool(_plain(stem) & _plain(one.words))


def _same_inside(field: FieldEntry, one: Candidate, document: Document) -> bool:
    inside = {_plain(stem_of(name, below)) for name, below in field.get("fields", {}).items()}
    members = {_plain(words_of(name)) for name in document.members(one.schema)}
    return 2 * len(inside & members) >= len(inside)


# --- Types ------------------------------------------------------------------------------------------------------------


def _fits(field: FieldEntry, schema: Schema, document: Document) -> bool:
    """Whether the one could be written as the other."""
    found = document.resolved(schema)
    api = "list" if "items" in found else found.get("type", "object")
    if "ref" in field or "secret" in field:
        text = document.element(schema).get("type") == "string"
        return text and (field["type"] != "list" or api == "list")
    if field["type"] in _SCALARS:
        return api in _SCALARS and ((api == "boolean") == (field["type"] == "boolean"))
    if field["type"] == "list" and "fields" not in field:
        return api == "list" and document.element(schema).get("type") in _SCALARS
    return api in ("object", "list", "any")


def mark_unmatched(field: FieldEntry, claimed: Collection[str], members: Mapping[str, Schema]) -> None:
    """Marks a field without a member. An object of fields that are all members of what it is in stands for these."""
    below = field.get("fields", {})
    is_beside = field["type"] == "object" and len(below) > 1 and "ref" not in field
    if is_beside and all(name in members and name not in claimed for name in below):
        field["to"] = BESIDE
        for inner in below.values():
            inner.pop("to", None)
        return
    field["to"] = UNKNOWN
    for inner in below.values():
        mark_unmatched(inner, (), {})


def schema_at(members: Mapping[str, Schema], path: str, document: Document) -> Schema | None:
    """The schema of the member at a dotted path; `None` where there is none."""
    found: Schema | None = None
    for step in path.split("."):
        found = members.get(step)
        if found is None:
            return None
        members = document.members(found)
    return found
