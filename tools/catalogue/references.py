"""Which kinds a reference may point at, where facts do not say: by the words of its name."""

import re
from collections.abc import Iterable
from typing import Final

from tools.catalogue.entries import FieldEntry, RefEntry, RowEntry, fields_below
from tools.catalogue.matching import words_of

_HAND_WRITTEN: Final = ("StorageBucket", "SQLInstance", "SQLDatabase", "SQLUser")
_CONTENTS: Final = ("fields", "ref", "secret", "one_of_refs", "items", "shape")


_ID: Final = re.compile(r"(?:(?:Required|Optional|Immutable)\. )*(?:The )?ID of ")
_HOST: Final = re.compile(r"(//([a-z]+)\.googleapis\.com/)projects/")


class Targets:
    """The kinds that can be referred to."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._kinds = sorted({*kinds, *_HAND_WRITTEN})

    def complete(self, row: RowEntry) -> None:
        """Adds the kinds of references that have none; an object of which only the name is known is a reference."""
        for path, field in fields_below(row["fields"]):
            name = path.rpartition(".")[2]
            if _is_bare(name, field):
                field["ref"] = {"form": "name"}
            if "ref" in field:
                self._add_kinds(name, field["ref"], row)
            for alternative, ref in field.get("one_of_refs", {}).items():
                self._add_kinds(alternative, ref, row)

    def _add_kinds(self, name: str, ref: RefEntry, row: RowEntry) -> None:
        known = ref.get("kinds", [])
        if len(known) > 1:
            ref["kinds"] = [kind for kind in known if _is_target(kind, name, row)] or known
        found = "" if known else self._named(words_of(name), row)
        if found:
            ref["kinds"] = [found]
        if found == "ComputeAddress":
            ref["form"] = "address"
        elif ref.get("kinds") == ["StorageBucket"]:
            # Services know a bucket by its name alone.
            ref["form"] = "id"
        elif "form" not in ref:
            ref["form"] = "email" if ref.get("kinds") == ["IAMServiceAccount"] else "name"

    def _named(self, words: tuple[str, ...], row: RowEntry) -> str:
        """The one kind whose name ends with that of the reference; of several, the one of the same service."""
        stem = words[:-1] if words[-1] == "ref" and len(words) > 1 else words
        if stem == ("organization",):
            # It is given by its number alone: there is no kind of it.
            return ""
        if stem[-1] == "ip":
            return "ComputeAddress"
        if stem[-1] == "key" and "kms" in stem:
            return "KMSCryptoKey"
        while stem:
            found = self._ending_with(stem, words_of(row["kind"])[0])
            if found:
                return found
            # `sourceDiskRef` refers to a disk, `dataprocMetastoreServiceRef` to a service of Metastore.
            stem = stem[1:] if stem[0] in ("source", "parent") or len(stem) > 2 else ()
        # What a service of another name calls a cluster is one of Kubernetes Engine.
        return "ContainerCluster" if "cluster" in words else ""

    def _ending_with(self, stem: tuple[str, ...], service: str) -> str:
        found = [kind for kind in self._kinds if words_of(kind)[-len(stem) :] == stem]
        same = [kind for kind in found if words_of(kind)[0] == service]
        exact = [kind for kind in same if len(words_of(kind)) == len(stem) + 1]
        return next((one[0] for one in (found, same, exact) if len(one) == 1), "")


def _is_target(kind: str, name: str, row: RowEntry) -> bool:
    """Whether a kind in the text of a reference is what it refers to: not the object itself, nor what one is in."""
    return kind not in ("Service", row["kind"]) and (kind != "Project" or "project" in words_of(name))


def correct_form(ref: RefEntry, member: str, text: str) -> None:
    """The form of the value, and what stands before it, where the name or the text of the member says so."""
    kinds, form = ref.get("kinds", []), ref.get("form")
    if form == "name" and (kinds == ["StorageBucket"] or member.endswith(("Id", "Ids")) or _ID.match(text)):
        ref["form"] = "id"
    elif form == "name" and "{projectId}.{datasetId}" in text:
        ref["form"] = "dotted"
    found = _HOST.search(text)
    if found is not None and form == "link" and kinds and all(kind.lower().startswith(found[2]) for kind in kinds):
        ref["prefix"], ref["form"] = found[1], "name"


def _is_bare(name: str, field: FieldEntry) -> bool:
    if any(key in field for key in _CONTENTS):
        return False
    return field["type"] == "list" or (field["type"] == "object" and name.endswith("Ref"))
