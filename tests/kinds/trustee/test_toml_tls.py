"""TLS settings in a file that users edit."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.kinds.trustee.trustee_config import ProfileType, TlsSettings, merge_tls_lines, toml_problem, with_tls
from setpoint.kinds.trustee.trustee_config.kbs_toml import kbs_toml
from setpoint.kinds.trustee.trustee_config.kbs_toml_merge import tls_in, toml_statements, without_tls

INTERMEDIATE = kbs_toml(ProfileType.RESTRICTED, TlsSettings("intermediate"))
CUSTOM = kbs_toml(ProfileType.RESTRICTED, TlsSettings("custom", "1.2", "1.3", "AES128-SHA", "x25519"))
PERMISSIVE = kbs_toml(ProfileType.PERMISSIVE, TlsSettings("intermediate"))


def test_a_key_without_spaces_is_recognised_and_keeps_its_position_and_comment() -> None:
    text = "[http_server]\n\"tls_profile\"='old'  # mine\nworker_count = 8\n\n[admin]\nx = 1\n"

    assert with_tls(text, INTERMEDIATE) == (
        '[http_server]\n"tls_profile"="intermediate"  # mine\nworker_count = 8\n\n[admin]\nx = 1\n'
    )


def test_a_removed_setting_is_added_at_the_end_of_its_table() -> None:
    text = "[http_server] # the server\nworker_count = 8\n\n\n[admin]\nx = 1\n"

    assert with_tls(text, INTERMEDIATE) == (
        "[http_server] # the server\nworker_count = 8\n"
        '\n# TLS configuration - Mozilla intermediate profile\n\ntls_profile = "intermediate"\n'
        "\n\n[admin]\nx = 1\n"
    )


def test_settings_of_the_former_profile_are_removed_and_the_comment_is_updated() -> None:
    assert with_tls(CUSTOM, INTERMEDIATE) == INTERMEDIATE


def test_settings_of_the_new_profile_are_added() -> None:
    assert with_tls(INTERMEDIATE, CUSTOM) == CUSTOM


def test_a_file_without_the_table_gets_it() -> None:
    made = with_tls("[admin]\nx = 1\n", INTERMEDIATE)

    assert made.startswith("[admin]\nx = 1\n\n[http_server]\n")
    assert tomllib.loads(made)["http_server"] == tomllib.loads(INTERMEDIATE)["http_server"]


@pytest.mark.parametrize("empty", ["", " \n\n"])
def test_an_emptied_file_is_generated_again(empty: str) -> None:
    assert with_tls(empty, INTERMEDIATE) == INTERMEDIATE


def test_dotted_keys_stay_dotted() -> None:
    text = "http_server.worker_count = 8\nother = 1"

    assert with_tls(text, INTERMEDIATE) == (
        'http_server.worker_count = 8\nhttp_server.tls_profile = "intermediate"\nother = 1'
    )


def test_a_last_line_without_an_end_gets_one() -> None:
    made = with_tls("[http_server]\nworker_count = 8", INTERMEDIATE)

    assert made.startswith("[http_server]\nworker_count = 8\n\n# TLS configuration")


def test_windows_line_endings_are_kept() -> None:
    made = with_tls("[http_server]\r\nworker_count = 8\r\n", INTERMEDIATE)

    assert made.endswith(
        '\r\n\r\n# TLS configuration - Mozilla intermediate profile\r\n\r\ntls_profile = "intermediate"\r\n'
    )


def test_text_that_resembles_a_setting_is_not_changed() -> None:
    text = (
        '[http_server]\nsockets = [\n  "a", # [admin]\n]\nnote = """\n[admin]\ntls_profile = "no"\n"""\n'
        'tls_profile = "old"\n\n[plugins.http_server]\ntls_profile = "no"\n'
    )

    made = with_tls(text, INTERMEDIATE)

    assert made == text.replace('tls_profile = "old"', 'tls_profile = "intermediate"')


def test_a_second_generated_comment_is_removed() -> None:
    comment = "# TLS configuration - Mozilla old profile\n"

    made = with_tls(f'[http_server]\n{comment}{comment}tls_profile = "old"\n', INTERMEDIATE)

    assert made == ('[http_server]\n# TLS configuration - Mozilla intermediate profile\ntls_profile = "intermediate"\n')


def test_without_generated_settings_nothing_changes() -> None:
    assert with_tls(INTERMEDIATE, PERMISSIVE) == INTERMEDIATE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("http_server = { worker_count = 8 }\n", "inline table"),
        ("worker_count = \n", "it is not TOML"),
        ("a = 1\na = 2\n", "it is not TOML"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_unchanged_and_reported(text: str, problem: str) -> None:
    assert with_tls(text, INTERMEDIATE) == text
    assert problem in (toml_problem(text) or "")


def test_a_valid_file_has_no_problem() -> None:
    assert toml_problem(INTERMEDIATE) is None


def test_a_value_with_quotes_is_escaped() -> None:
    odd = kbs_toml(ProfileType.RESTRICTED, TlsSettings("custom", ciphers='a"b\\c'))

    assert tls_in(with_tls(INTERMEDIATE, odd)) == {"tls_profile": "custom", "tls_ciphers": 'a"b\\c'}


# --- For every file ---------------------------------------------------------------------------------------------------

LINES = (
    "",
    "# a comment",
    "# TLS configuration - Mozilla old profile",
    'tls_profile = "old"',
    "tls_groups='x' # mine",
    'tls_min_version="1.0"',
    "worker_count = 8",
    'sockets = [\n "a",\n]',
    'note = """\n[http_server]\n"""',
    "[http_server]",
    "[admin]",
    "[[plugins]]",
    "[http_server.deep]",
)
files = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)
generated = st.sampled_from([INTERMEDIATE, CUSTOM])


@pytest.mark.laws
@given(files)
def test_statements_are_the_whole_text(text: str) -> None:
    assert "".join(one.text for one in toml_statements(text)) == text


@pytest.mark.laws
@given(files, generated)
def test_an_edit_is_idempotent_and_changes_nothing_else(text: str, new: str) -> None:
    made = with_tls(text, new)

    assert with_tls(made, new) == made
    if toml_problem(text) is None:
        before, after = tomllib.loads(text), tomllib.loads(made)
        server = {key: value for key, value in before.pop("http_server", {}).items() if not key.startswith("tls_")}
        assert tls_in(made) == tls_in(new)
        assert server.items() <= after.pop("http_server").items()
        assert before.items() <= after.items()
        assert all(line in made for line in without_tls(text).splitlines())


@pytest.mark.laws
@given(files, generated)
def test_the_line_merge_is_idempotent(text: str, new: str) -> None:
    made = merge_tls_lines(text, new)

    assert merge_tls_lines(made, new) == made
