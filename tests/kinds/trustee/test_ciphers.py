"""Cipher suites: every name of OpenSSL 3.0, from OpenSSL itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

from setpoint.kinds.trustee.trustee_config import cipher_list, openssl_name
from tests.kinds.trustee.upstream import upstream_cipher_list, upstream_name

LISTED = (Path(__file__).parents[2] / "data" / "openssl_suites.txt").read_text("utf-8").splitlines()
SUITES = dict(line.split() for line in LISTED)
ALL = "ALL:COMPLEMENTOFALL:eNULL:@SECLEVEL=0"


def test_the_list_is_that_of_openssl_3_0() -> None:
    assert len(SUITES) == 158


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_of_iana_is_spelled_as_openssl_does(suite: str) -> None:
    assert openssl_name(suite) == SUITES[suite]


@pytest.mark.parametrize("name", SUITES.values())
def test_a_name_of_openssl_stays(name: str) -> None:
    assert openssl_name(name) == name


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_AES_128_CCM_8_SHA256", "TLS_AES_128_CCM_8_SHA256"),
        ("TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA", "DHE-RSA-DES-CBC3-SHA"),
        ("TLS_ECDHE_RSA_WITH_RC4_128_SHA", "ECDHE-RSA-RC4-SHA"),
        ("TLS_PSK_WITH_3DES_EDE_CBC_SHA", "PSK-3DES-EDE-CBC-SHA"),
        ("TLS_RSA_WITH_SEED_CBC_SHA", "SEED-SHA"),
        ("TLS_RSA_WITH_AES_128", "AES128"),
        ("nonsense", "nonsense"),
    ],
)
def test_disabled_suites_have_their_old_names(suite: str, name: str) -> None:
    assert openssl_name(suite) == name


def test_the_openssl_of_this_machine_agrees() -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl on the PATH")
    output = subprocess.run([program, "ciphers", "-stdname", ALL], capture_output=True, text=True, check=True).stdout
    known = {line.split()[0]: line.split()[2] for line in output.splitlines()}

    wrong = {suite: name for suite, name in known.items() if openssl_name(suite) != name}

    assert wrong == {}


def test_upstream_is_right_for_82_of_them() -> None:
    right = [suite for suite, name in SUITES.items() if upstream_name(suite) == name]

    assert len(right) == 82


@pytest.mark.parametrize(
    ("suite", "theirs", "ours"),
    [
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "DHE-RSA-AES128-CBC-SHA", "DHE-RSA-AES128-SHA"),
        ("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE-RSA-DES-CBC3-SHA", "ECDHE-RSA-DES-CBC3-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384", "AES256-GCM-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_128_CCM_8", "DHE-RSA-AES128-CCM8", "DHE-RSA-AES128-CCM8"),
    ],
)
def test_upstream_and_openssl_spellings(suite: str, theirs: str, ours: str) -> None:
    assert upstream_cipher_list([suite]) == theirs
    assert cipher_list([suite]) == ours


def test_a_list_is_joined_by_colons() -> None:
    names = cipher_list(["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"])

    assert names == "TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-SHA256"
    assert cipher_list([]) == ""
