"""What is a version, and which one is meant."""

import pytest

from setpoint.cli.upgrade_interpreters import is_version, satisfies


@pytest.mark.parametrize("word", ["1", "0.1.0", "1.2rc1", "1.2.post3", "1.2.dev4", "1.2b1.post2.dev3", "0.1.0+ours.2"])
def test_a_version_number_is_recognised(word: str) -> None:
    assert is_version(word)


@pytest.mark.parametrize("word", ["", "this", "../1.2", "1.2/", "1..2", ".1", "v1", ">=1.2", "1.2 ", "1.2;x", "1.2\n"])
def test_other_words_are_no_version_numbers(word: str) -> None:
    assert not is_version(word)


@pytest.mark.parametrize(
    ("asked", "found"), [("0.2", "0.2.0"), ("0.2.0", "0.2"), ("0.2", "0.2.0+ours"), ("1rc1", "1.0rc1"), ("0", "0.0")]
)
def test_equal_versions_satisfy_each_other(asked: str, found: str) -> None:
    assert satisfies(asked, found)


@pytest.mark.parametrize(
    ("asked", "found"), [("0.2", "0.20"), ("0.2", "0.2rc1"), ("0.2+ours", "0.2"), ("0.2+ours", "0.2+yours"), ("1", "x")]
)
def test_different_versions_do_not_satisfy_each_other(asked: str, found: str) -> None:
    assert not satisfies(asked, found)
