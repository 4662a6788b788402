"""The data source `setpoint_object`: an object as it is, whoever keeps it."""

from collections.abc import Mapping
from typing import Final

from setpoint.core.hiding import is_secret
from setpoint.core.paths import Path, remove_at
from setpoint.core.values import Json
from setpoint.core.yaml_documents import write_document
from setpoint.terraform.calls import Call
from setpoint.terraform.cluster_attribute import check_cluster
from setpoint.terraform.cty_values import Values
from setpoint.terraform.diagnostics import Refused, error
from setpoint.terraform.object_schema import SOURCE
from setpoint.terraform.object_state import dynamic
from setpoint.terraform.provider import DataSource
from setpoint.terraform.sites import Sites
from setpoint.terraform.wait_resource import awaited

_MANAGED_FIELDS: Final = Path(("metadata", "managedFields"))
_VALUES: Final = (
    Path(("data",)),
    Path(("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")),
)


class ObjectSource(DataSource):
    """Objects of the clusters that `sites` lead to."""

    schema = SOURCE

    def __init__(self, sites: Sites) -> None:
        self._sites = sites

    async def validate(self, config: Values, call: Call) -> None:
        """See DataSource."""
        check_cluster(config.get("cluster"))

    async def read(self, config: Values, call: Call) -> Values:
        """See DataSource."""
        live = await call.unless_stopped(awaited(self._sites, config, config.get("cluster")).look())
        if not isinstance(live, Mapping):
            if config.get("optional") is not True:
                why = f"There is no {config['kind']} {config['name']} in that cluster. Where it may be missing, write "
                raise Refused(error("No such object", f"{why}optional = true.", ("name",)))
            return {**config, "object": None, "yaml_body": None}
        # A Secret's values would be stored in the clear, with every state.
        hidden = (_MANAGED_FIELDS, *_VALUES) if is_secret(live) else (_MANAGED_FIELDS,)
        shown: Json = dict(live)
        for path in hidden:
            shown = remove_at(shown, path)
        return {**config, "object": dynamic(shown), "yaml_body": write_document(shown)}
