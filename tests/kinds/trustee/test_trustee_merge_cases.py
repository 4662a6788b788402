"""Cases of trustee-operator, every one through the public merge: both ways of merging, and everything about TLS."""

import msgspec
import pytest

from setpoint.core.merge.threeway import remember
from setpoint.errors import ManifestInvalid
from setpoint.kinds.trustee.trustee_config import is_tls_line, merge_tls_lines
from tests.kinds.trustee.cases import WHERE, Case, cases, full, same_places
from tests.kinds.trustee.upstream import (
    MergeDialect,
    dialect_fields,
    merge_kbs_config,
    read_tls_config,
    upstream_cipher_list,
    upstream_tls_settings,
)

CASES = cases()


@pytest.mark.skipif(not CASES, reason=f"no cases at {WHERE}: name a file of them in SETPOINT_TRUSTEE_CASES")
@pytest.mark.parametrize("case", CASES or [{"name": "none"}], ids=lambda case: case["name"])
def test_trustee_merge_cases(case: Case) -> None:
    CHECKS[case["kind"]](case)


def merge_is_as_expected(case: Case) -> None:
    two_ways(case)
    if "last_generated" in case:
        three_ways(case)


def two_ways(case: Case) -> None:
    table = dialect_fields(case["trusteeconfig_name"], MergeDialect(case["dialect"]))

    merged = merge_kbs_config(None, case["current"], case["generated"], table)

    assert full(merged.spec) == full(case["expected"])
    assert bool(merged.changed) is case["manual_change_detected"]
    assert same_places(merged.changed, case["detected_fields"], table)
    assert (merged.spec is not case["current"]) is case["update_called"]
    assert merged.conflicts == ()


def three_ways(case: Case) -> None:
    table = dialect_fields(case["trusteeconfig_name"], MergeDialect(case["dialect"]))
    last = remember(case["last_generated"], table)

    merged = merge_kbs_config(last, case["current"], case["generated"], table)

    assert full(merged.spec) == full(case["expected_three_way"])
    assert same_places(merged.conflicts, case["three_way_conflicts"], table)
    assert (full(merged.spec) != full(case["expected"])) is case["three_way_differs"]


def data_is_as_expected(case: Case) -> None:
    settings = upstream_tls_settings(read_tls_config(case["current"]))

    assert msgspec.to_builtins(settings) == case["expected"]


def ciphers_are_as_expected(case: Case) -> None:
    assert upstream_cipher_list(case["current"] or []) == case["expected"]


def verdict_is_as_expected(case: Case) -> None:
    problem = ""
    try:
        read_tls_config(case["current"])
    except ManifestInvalid as error:
        problem = str(error).replace("matching regex", "pattern")

    assert (problem == "") is case["expected"]["valid"]
    assert case["expected"]["error_kind"] in problem


def line_is_as_expected(case: Case) -> None:
    assert is_tls_line(case["current"]) is case["expected"]


def text_is_as_expected(case: Case) -> None:
    assert merge_tls_lines(case["current"], case["generated"]) == case["expected"]


CHECKS = {
    "merge": merge_is_as_expected,
    "tls_data": data_is_as_expected,
    "tls_ciphers": ciphers_are_as_expected,
    "tls_validate": verdict_is_as_expected,
    "tls_line": line_is_as_expected,
    "tls_merge": text_is_as_expected,
}
