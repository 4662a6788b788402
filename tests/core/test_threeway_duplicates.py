"""Three-way merge of lists with duplicate entries."""

from tests.core.test_threeway import summarize_merge, volume


def test_copies_are_kept_or_removed_with_the_first() -> None:
    gone, _, _, _ = summarize_merge({"secrets": ["a"]}, {"secrets": ["a", "b", "a"]}, {"secrets": []})
    kept, edits, _, _ = summarize_merge({"secrets": ["a"]}, {"secrets": ["a", "b", "a"]}, {"secrets": ["a"]})
    moved, _, _, _ = summarize_merge(
        {"volumes": [volume("x")]}, {"volumes": [volume("x"), volume("x")]}, {"volumes": [volume("x", "/new")]}
    )

    assert gone == {"secrets": ["b"]}
    assert kept == {"secrets": ["a", "b", "a"]}
    assert edits == ["secrets.b"]
    assert moved == {"volumes": [volume("x", "/new"), volume("x", "/new")]}


def test_a_generated_copy_of_a_live_or_removed_entry_is_not_added() -> None:
    value, edits, _, _ = summarize_merge({"secrets": ["b"]}, {"secrets": ["a"]}, {"secrets": ["a", "a", "b", "b"]})

    assert value == {"secrets": ["a"]}
    assert edits == ["secrets.b"]


def test_all_generated_copies_are_added() -> None:
    value, _, _, _ = summarize_merge({}, {}, {"secrets": ["a", "a#2", "a"]})

    assert value == {"secrets": ["a", "a#2", "a"]}
