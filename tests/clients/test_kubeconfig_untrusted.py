"""Kubeconfigs of authors, the current context, and bodies that are valid as YAML."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from setpoint.clients.http import HttpResponse
from setpoint.clients.kubernetes.contexts import current_context
from setpoint.clients.kubernetes.errors import error_for_response, outcome_of
from setpoint.clients.kubernetes.handed_over import connection_from_untrusted_text
from setpoint.clients.kubernetes.kubeconfig import BearerToken, InlineText
from setpoint.clients.kubernetes.requests import yaml_safe
from setpoint.clients.ratelimit.circuit_breaker import RESPONDED
from setpoint.errors import RemoteInvalid, UserError

CONFIG = {
    "kind": "Config",
    "current-context": "a",
    "clusters": [{"name": "c", "cluster": {"server": "https://c.test"}}],
    "users": [{"name": "u", "user": {"token": "hunter2"}}],
    "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in "ab"],
}


def test_a_kubeconfig_is_read_from_its_text() -> None:
    connection = connection_from_untrusted_text(yaml.safe_dump(CONFIG), "config of Secret shop/access", "b")

    assert connection.name == "context b of config of Secret shop/access"
    assert connection.login == BearerToken(InlineText("hunter2"))
    assert "hunter2" not in repr(connection)


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({"exec": {"command": "x"}}, {}, "exec"),
        ({"tokenFile": "t"}, {}, "tokenFile"),
        ({"client-certificate": "c", "client-key": "k"}, {}, "client-certificate, client-key"),
        ({}, {"certificate-authority": "/ca"}, "certificate-authority"),
    ],
)
def test_an_untrusted_kubeconfig_reads_no_files_and_runs_no_commands(
    user: dict[str, object], cluster: dict[str, str], message: str
) -> None:
    config = {
        **CONFIG,
        "users": [{"name": "u", "user": user}],
        "clusters": [{"name": "c", "cluster": {"server": "https://c.test", **cluster}}],
    }

    with pytest.raises(UserError) as caught:
        connection_from_untrusted_text(yaml.safe_dump(config), "the Secret")

    assert str(caught.value).startswith(f"the Secret: context a: {message}: a kubeconfig that is handed over")


def test_an_invalid_kubeconfig_is_reported_without_its_text() -> None:
    for text in ("hunter2: [", "users: hunter2", "a: 1\n---\nhunter2: 2"):
        with pytest.raises(UserError) as caught:
            connection_from_untrusted_text(text, "the Secret")
        assert "hunter2" not in str(caught.value)


def test_the_name_of_the_current_context(tmp_path: Path) -> None:
    file, account = tmp_path / "config", tmp_path / "account"
    file.write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    account.mkdir()
    (account / "token").write_text("t", encoding="utf-8")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}

    assert current_context({"KUBECONFIG": str(file)}, account) == "a"
    assert current_context({**environment, "KUBECONFIG": str(file)}, account) == "a"
    assert current_context(environment, account) is None
    with pytest.raises(UserError, match="there is no kubeconfig"):
        current_context({"HOME": str(tmp_path)}, account)


@pytest.mark.laws
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_an_apply_body_is_the_same_value_as_yaml(tree: dict[str, str]) -> None:
    sent = yaml_safe(json.dumps(tree, ensure_ascii=False).encode())

    assert json.loads(sent) == tree
    assert yaml.load(sent.decode(), Loader=yaml.CBaseLoader) == tree


def test_an_apply_with_unknown_fields_is_invalid_and_no_outage() -> None:
    message = (
        "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): errors:\n"
        "  .spec.paussed: field not declared in schema\n  .spec.replicas: expected numeric (int or float), got string"
    )
    body = json.dumps({"kind": "Status", "code": 500, "message": message}).encode()
    answer = HttpResponse(500, {"Content-Type": "application/json"}, body)

    error = error_for_response("PATCH /x", answer)

    assert isinstance(error, RemoteInvalid)
    assert error.causes == (
        ("spec.paussed", "field not declared in schema"),
        ("spec.replicas", "expected numeric (int or float), got string"),
    )
    assert outcome_of(answer) is RESPONDED
