"""The alert rules: promtool takes them, each fires on its trouble alone, and they name metrics that there are."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from setpoint.runtime.metrics.catalogue import DEFINITIONS

RULES: Final = Path("deploy/prometheus/rules.yaml")
TESTS: Final = Path("tests/deployment/monitoring/rules.test.yaml")


def _rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_promtool_takes_the_rules_and_each_fires_on_its_trouble_and_not_otherwise(promtool: str) -> None:
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(TESTS)]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_has_a_test_that_sees_it_fire_and_one_that_does_not() -> None:
    cases = [one for test in yaml.safe_load(TESTS.read_text("utf-8"))["tests"] for one in test["alert_rule_test"]]

    names = {rule["alert"] for rule in _rules()}
    assert {one["alertname"] for one in cases if one["exp_alerts"]} == names
    for name in names:
        # On healthy series, and before its time.
        assert sum(one["alertname"] == name and not one["exp_alerts"] for one in cases) == 2


def test_every_metric_of_a_rule_exists() -> None:
    for rule in _rules():
        used = set(re.findall(r"\b(?:setpoint|workqueue|controller_runtime)_\w+", rule["expr"]))
        assert used <= {*DEFINITIONS}, rule["alert"]
