"""TLS settings merged line by line, with trustee-operator's rules."""

import pytest

from setpoint.kinds.trustee.trustee_config import is_tls_line, merge_tls_lines, tls_settings
from tests.kinds.trustee.upstream import read_tls_config

BLOCK = '# TLS configuration - Mozilla modern profile\n\ntls_profile = "modern"\n\n'
NEW = f"[http_server]\nworker_count = 4\n\n{BLOCK}[admin]\n"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('tls_profile = "modern"', True),
        ("tls_min_version =1", True),
        ("# TLS configuration of any sort", True),
        ('tls_profile="modern"', False),
        ("# tls_profile", False),
        ("worker_count = 4", False),
        ("", False),
    ],
)
def test_a_setting_is_recognised_by_its_start(line: str, answer: bool) -> None:
    assert is_tls_line(line) is answer


def test_settings_go_to_the_end_of_their_section() -> None:
    old = '[http_server]\ntls_profile = "old"\n\nworker_count = 8\n[admin]\nx = 1\n'

    assert merge_tls_lines(old, NEW) == f"[http_server]\nworker_count = 8\n{BLOCK}[admin]\nx = 1\n"


def test_a_section_may_be_the_last() -> None:
    assert merge_tls_lines("[http_server]\nworker_count = 8", NEW) == f"[http_server]\nworker_count = 8\n{BLOCK}"


def test_a_key_without_spaces_is_not_recognised() -> None:
    assert merge_tls_lines('[http_server]\ntls_profile="old"\n', NEW) == f'[http_server]\ntls_profile="old"\n{BLOCK}'


@pytest.mark.parametrize("new", ["[http_server]\nworker_count = 4\n", f"[admin]\n{NEW}", ""])
def test_without_new_settings_nothing_changes(new: str) -> None:
    old = '[http_server]\r\ntls_profile = "old"'

    assert merge_tls_lines(old, new) == old


def test_a_file_without_the_section_stays_as_it_is() -> None:
    assert merge_tls_lines('[admin]\ntls_profile = "mine"\n', NEW) == '[admin]\ntls_profile = "mine"\n'


def test_only_the_first_section_of_that_name_gets_the_settings() -> None:
    twice = "[http_server]\n[admin]\n[http_server]\na = 1\n"

    assert merge_tls_lines(twice, NEW) == f"[http_server]\n{BLOCK}[admin]\n[http_server]\na = 1\n"


def test_a_header_that_is_repeated_at_once_starts_no_section() -> None:
    twice = "[http_server]\na = 1\n[http_server]\n[admin]\n"

    assert merge_tls_lines(twice, NEW) == f"[http_server]\na = 1\n[http_server]\n{BLOCK}[admin]\n"


def test_the_default_is_the_intermediate_profile() -> None:
    assert tls_settings(read_tls_config(None)).values == {"tls_profile": "intermediate"}
