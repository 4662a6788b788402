"""The provider `setpoint`: objects of Kubernetes clusters, with their waits and what they offer."""

from setpoint.terraform.calls import Call
from setpoint.terraform.cluster_attribute import CLUSTER, check_cluster
from setpoint.terraform.cty_values import Values
from setpoint.terraform.object_schema import OBJECT, SOURCE, WAITING
from setpoint.terraform.provider import DataSource, ManagedResource, Offer, Provider
from setpoint.terraform.schema import Schema
from setpoint.terraform.sites import Sites


class SetpointProvider(Provider):
    """All that it offers."""

    schema = Schema(
        description="Keeps objects of Kubernetes clusters as declared, waits for what becomes of them, and tells drift "
        "from defaults.",
        attributes={"cluster": CLUSTER},
    )

    def __init__(self) -> None:
        self._sites = Sites()
        self.resources = {
            "setpoint_object": Offer(OBJECT, self._objects),
            "setpoint_wait": Offer(WAITING, self._waits),
        }
        self.data_sources = {"setpoint_object": Offer(SOURCE, self._source)}
        self.functions = {}

    async def validate(self, config: Values, call: Call) -> None:
        """See Provider."""
        check_cluster(config.get("cluster"))

    async def configure(self, config: Values, call: Call) -> None:
        """See Provider."""
        self._sites.usual = config.get("cluster")

    def _objects(self) -> ManagedResource:
        from setpoint.terraform.object_resource import ObjectResource

        return ObjectResource(self._sites)

    def _waits(self) -> ManagedResource:
        from setpoint.terraform.wait_resource import WaitResource

        return WaitResource(self._sites)

    def _source(self) -> DataSource:
        from setpoint.terraform.object_source import ObjectSource

        return ObjectSource(self._sites)
