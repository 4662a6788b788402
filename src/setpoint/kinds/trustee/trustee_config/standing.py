"""How it stands with a TrusteeConfig: told from its live KbsConfig, and from the settings that people may edit."""

from collections.abc import Iterator

import msgspec

from setpoint.core.conditions import find_condition
from setpoint.core.kubernetes import condition_lag, conditions_of, lag, observed_generation, text_at, title
from setpoint.core.paths import Path, get_at
from setpoint.engine.owner import Standing
from setpoint.engine.report import Ready
from setpoint.engine.resource import ResourceRef, Tree
from setpoint.kinds.trustee.trustee_config.status import KbsConfigRef, status_of
from setpoint.kinds.trustee.trustee_config.toml_tls import settings_problem
from setpoint.kinds.trustee_places import API_VERSION, KBS_TOML


def standing_of(kbs_config: ResourceRef, live: Tree | None, settings: Tree | None, generated: str) -> Standing:
    """How it stands, given the live KbsConfig and the live ConfigMap; `generated` are the settings as they are made.

    `isReady` is what the KbsConfig says. Ready wants the settings to be in order as well: those that cannot be seen to
    are not as declared, whatever still runs.
    """
    unready = _unready(kbs_config, live)
    ref = KbsConfigRef(API_VERSION, kbs_config.kind, kbs_config.name, kbs_config.namespace)
    status = status_of(ref, is_ready=unready is None)
    problems = [one for one in (unready, *_wrong_settings(settings, generated)) if one]
    ready = (
        Ready("False", "NotReady", "; ".join(problems))
        if problems
        else Ready("True", "UpToDate", str(status.statusDescription))
    )
    return Standing(ready, msgspec.to_builtins(status))


def _unready(kbs_config: ResourceRef, live: Tree | None) -> str | None:
    """Why the KbsConfig is not ready; None when it is."""
    if live is None:
        return f"{kbs_config} is not there yet"
    if text_at(live, "metadata", "deletionTimestamp"):
        return f"{title(live)} is being deleted"
    behind = lag(live, observed_generation(live))
    if behind:
        return f"{title(live)} is not ready yet: {behind}"
    return None if is_ready(live) else f"{title(live)} is not ready{_told_by(live)}"


def is_ready(kbs_config: Tree) -> bool:
    """Whether a live KbsConfig says that it is ready."""
    return get_at(kbs_config, Path(("status", "isReady"))) is True


def _told_by(live: Tree) -> str:
    """What the KbsConfig itself says about it, as long as that is not about an older one."""
    ready = find_condition(conditions_of(live), "Ready")
    if ready is None or ready.status == "True" or not ready.message or condition_lag(live, ready):
        return " yet"
    return f": {ready.message}"


def _wrong_settings(settings: Tree | None, generated: str) -> Iterator[str]:
    problem = None if settings is None else settings_problem(text_at(settings, "data", KBS_TOML), generated)
    if problem:
        yield f"{KBS_TOML} in {title(settings)}: {problem}; or delete the ConfigMap, and it is made anew"
