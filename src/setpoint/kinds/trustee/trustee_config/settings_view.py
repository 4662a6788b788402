"""The ConfigMap with `kbs-config.toml`, as it is merged: people's text, and TLS settings that stay managed in it."""

from typing import Final

from setpoint.core.kubernetes import text_at
from setpoint.core.paths import Path, get_at, set_at
from setpoint.core.threeway import Table, Whole
from setpoint.core.values import Json
from setpoint.engine.resource import Tree
from setpoint.kinds.trustee.trustee_config.tls_lines import merge_tls_lines
from setpoint.kinds.trustee.trustee_config.toml_tls import tls_in, toml_problem, with_tls, without_tls
from setpoint.kinds.trustee_places import KBS_TOML

_FILE: Final = Path(("data", KBS_TOML))
_TEXT: Final = _FILE / "text"
# The text is people's to edit.
SETTINGS: Final[Table] = {_TEXT: Whole()}


class SettingsView:
    """Seen in two parts: what the file says apart from TLS, and the TLS settings in it."""

    def read(self, object_: Tree) -> Json:
        text = text_at(object_, "data", KBS_TOML)
        return {"data": {KBS_TOML: {"text": without_tls(text), "tls": dict(tls_in(text))}}}

    def write(self, live: Tree, generated: Tree, merged: Json) -> Tree:
        old, new = text_at(live, "data", KBS_TOML), text_at(generated, "data", KBS_TOML)
        if get_at(merged, _TEXT) != without_tls(new):
            # A text that is no TOML cannot be read, only gone through line by line.
            new = merge_tls_lines(old, new) if toml_problem(old) else with_tls(old, new)
        made = set_at(live, _FILE, new)
        assert isinstance(made, dict)
        return made
