"""Three-way merge of lists that name an entry more than once."""

from tests.core.test_threeway import told, volume


def test_copies_share_what_becomes_of_the_first() -> None:
    gone, _, _, _ = told({"secrets": ["a"]}, {"secrets": ["a", "b", "a"]}, {"secrets": []})
    kept, edits, _, _ = told({"secrets": ["a"]}, {"secrets": ["a", "b", "a"]}, {"secrets": ["a"]})
    moved, _, _, _ = told(
        {"volumes": [volume("x")]}, {"volumes": [volume("x"), volume("x")]}, {"volumes": [volume("x", "/new")]}
    )

    assert gone == {"secrets": ["b"]}
    assert kept == {"secrets": ["a", "b", "a"]}
    assert edits == ["secrets.b"]
    assert moved == {"volumes": [volume("x", "/new"), volume("x", "/new")]}


def test_a_copy_of_what_is_there_or_was_removed_does_not_arrive() -> None:
    value, edits, _, _ = told({"secrets": ["b"]}, {"secrets": ["a"]}, {"secrets": ["a", "a", "b", "b"]})

    assert value == {"secrets": ["a"]}
    assert edits == ["secrets.b"]


def test_generated_copies_all_arrive() -> None:
    value, _, _, _ = told({}, {}, {"secrets": ["a", "a#2", "a"]})

    assert value == {"secrets": ["a", "a#2", "a"]}
