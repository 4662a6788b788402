"""Versions for Terraform: in the order of our own, and of the form that semver.org asks for."""

import re
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.deployment.terraform_plugin import semantic_version

pytestmark = pytest.mark.laws

# Numbers of the release, the pre-release phase in the order of PEP 440, the number of the phase.
Version: TypeAlias = tuple[tuple[int, ...], int, int]

PHASES = (".dev", "a", "b", "rc")
RELEASED = len(PHASES)
# As semver.org has it: no leading zeros.
SEMANTIC = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|[a-z]+)(?:\.(?:0|[1-9]\d*|[a-z]+))*))?"
)

releases = st.lists(st.integers(0, 30), min_size=1, max_size=3).map(tuple)
phases = st.tuples(st.integers(0, RELEASED - 1), st.integers(0, 30)) | st.just((RELEASED, 0))
versions = st.builds(lambda release, phase: (release, *phase), releases, phases)


def text_of(version: Version) -> str:
    release, phase, number = version
    numbers = ".".join(map(str, release))
    return numbers if phase == RELEASED else f"{numbers}{PHASES[phase]}{number}"


def precedence(version: Version) -> Version:
    """What PEP 440 compares."""
    release, phase, number = version
    return (*release, 0, 0)[:3], phase, number


def semantic_precedence(text: str) -> tuple[object, ...]:
    """What semver.org compares: numbers come before words, and a pre-release before its release."""
    found = SEMANTIC.fullmatch(text)
    assert found is not None, text
    parts = found[4].split(".") if found[4] else []
    words = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in parts)
    return (*map(int, found.group(1, 2, 3)), not parts, words)


@given(versions, versions)
def test_versions_keep_their_order(one: Version, other: Version) -> None:
    before = semantic_precedence(semantic_version(text_of(one))) < semantic_precedence(semantic_version(text_of(other)))

    assert before == (precedence(one) < precedence(other))


@given(versions, versions)
def test_different_versions_stay_different(one: Version, other: Version) -> None:
    same = semantic_version(text_of(one)) == semantic_version(text_of(other))

    assert same == (precedence(one) == precedence(other))
