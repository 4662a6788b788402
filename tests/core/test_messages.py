"""Messages with terms: the text is that of a manifest, and a vocabulary words the terms anew."""

import copy
import pickle

from setpoint.core.values.messages import (
    AnnotationTerm,
    FieldTerm,
    ManifestAdvice,
    MemberTerm,
    Message,
    MessageTerm,
    SettingTerm,
    SubjectTerm,
    below,
    field_message,
    field_named_by,
    joined,
    message_of,
    printable,
    worded,
)
from setpoint.errors import ManifestInvalid, UnknownField

EVERY_TERM = Message(
    SubjectTerm("Gadget default/a"),
    FieldTerm("spec.size"),
    " goes with ",
    MemberTerm("spec", "colour"),
    ", ",
    AnnotationTerm("example.com/a"),
    " or ",
    SettingTerm("spec.force", "true"),
    ManifestAdvice("; or delete it"),
)


def _by_class(term: MessageTerm) -> str:
    return f"<{type(term).__name__}>"


def test_the_text_of_a_message_has_the_words_of_a_manifest() -> None:
    assert EVERY_TERM == (
        "Gadget default/a: spec.size goes with colour, example.com/a or spec.force: true; or delete it"
    )
    assert str(ManifestInvalid(EVERY_TERM)) == EVERY_TERM
    assert type(str(ManifestInvalid(EVERY_TERM))) is str


def test_a_vocabulary_words_the_terms_and_leaves_the_texts() -> None:
    assert worded(ManifestInvalid(EVERY_TERM), _by_class) == (
        "<SubjectTerm><FieldTerm> goes with <MemberTerm>, <AnnotationTerm> or <SettingTerm><ManifestAdvice>"
    )
    assert worded(ManifestInvalid("spec.size is wrong"), _by_class) == "spec.size is wrong"
    assert worded(ManifestInvalid(), _by_class) == ""


def test_a_message_inside_another_keeps_its_terms() -> None:
    inner = UnknownField(Message(FieldTerm("spec.size"), ": no such field"), ("spec.sizes",))
    outer = Message(SubjectTerm("Gadget default/a"), message_of(inner))

    assert outer.parts == (SubjectTerm("Gadget default/a"), FieldTerm("spec.size"), ": no such field")


def test_the_fields_of_a_message_are_moved_below_another() -> None:
    message = Message(FieldTerm("waitFor.field"), " or ", MemberTerm("waitFor", "rollout"), AnnotationTerm("a"))

    assert below("spec", message).parts == (
        FieldTerm("spec.waitFor.field"),
        " or ",
        MemberTerm("spec.waitFor", "rollout"),
        AnnotationTerm("a"),
    )


def test_terms_are_joined() -> None:
    assert joined(" or ", (MemberTerm("spec", name) for name in ("a", "b"))).parts == (
        MemberTerm("spec", "a"),
        " or ",
        MemberTerm("spec", "b"),
    )
    assert joined(", ", ()) == ""
    assert field_message("spec.size", " is wrong").parts == (FieldTerm("spec.size"), " is wrong")


def test_the_first_field_or_annotation_is_the_one_that_is_named() -> None:
    assert field_named_by(ManifestInvalid(EVERY_TERM)) == FieldTerm("spec.size")
    annotation = AnnotationTerm("example.com/a")
    assert field_named_by(ManifestInvalid(Message(annotation, ": ", FieldTerm("spec.size")))) == annotation
    assert field_named_by(ManifestInvalid("spec.size is wrong")) is None
    assert field_named_by(ManifestInvalid(EVERY_TERM, "spec.other")) == FieldTerm("spec.other")


def test_a_copy_has_the_same_terms() -> None:
    for same in (copy.deepcopy(EVERY_TERM), pickle.loads(pickle.dumps(EVERY_TERM))):
        assert (same, same.parts) == (EVERY_TERM, EVERY_TERM.parts)


def test_what_a_terminal_interprets_is_written_as_an_escape_of_json() -> None:
    assert printable("a\x1b[2J\tb\nc\x9b\u202e\U000e0041\ud800é") == (
        "a\\u001b[2J\\u0009b\nc\\u009b\\u202e\\udb40\\udc41\\ud800é"
    )
    assert printable("plain text,\nin two lines") == "plain text,\nin two lines"
