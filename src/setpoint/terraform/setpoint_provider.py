"""The provider `setpoint`: its schema, and its resources, data sources and functions by name."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from setpoint.terraform.connections.clusters import CLUSTER, ClusterConnections, validate_cluster
from setpoint.terraform.cty.values import AttributeValues
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.provider import (
    DataSource,
    EphemeralResource,
    ManagedResource,
    Provider,
    Registration,
)
from setpoint.terraform.framework.schema import TerraformSchema
from setpoint.terraform.functions.manifest_functions import ManifestDecode, ManifestEncode, Manifests, ManifestsIn
from setpoint.terraform.patches.patch_schema import PATCH_SCHEMA
from setpoint.terraform.resources.schemas import OBJECT_SCHEMA, WAIT_SCHEMA
from setpoint.terraform.resources.vocabulary import attribute_words
from setpoint.terraform.sources.schemas import OBJECT_SOURCE_SCHEMA, OBJECTS_SOURCE_SCHEMA, SECRET_SCHEMA

if TYPE_CHECKING:
    from setpoint.terraform.resources.object_resource import ObjectResource


class SetpointProvider(Provider):
    """Its schema, and its resources, data sources, ephemeral resources and functions by name."""

    schema = TerraformSchema(
        description="Keeps objects of Kubernetes clusters as declared, waits for what becomes of them, and tells drift "
        "from defaults.",
        attributes={"cluster": CLUSTER},
    )

    def __init__(self) -> None:
        self._clusters = ClusterConnections()
        self._object_resource: ObjectResource | None = None
        self.resources = {
            "setpoint_object": Registration(OBJECT_SCHEMA, self._objects),
            "setpoint_patch": Registration(PATCH_SCHEMA, self._patches),
            "setpoint_wait": Registration(WAIT_SCHEMA, self._waits),
        }
        self.data_sources = {
            "setpoint_object": Registration(OBJECT_SOURCE_SCHEMA, self._source),
            "setpoint_objects": Registration(OBJECTS_SOURCE_SCHEMA, self._list),
        }
        self.ephemeral_resources = {"setpoint_secret": Registration(SECRET_SCHEMA, self._secret)}
        self.functions = {
            "manifests": Manifests(),
            "manifests_in": ManifestsIn(),
            "manifest_decode": ManifestDecode(),
            "manifest_encode": ManifestEncode(),
        }
        self.vocabulary = attribute_words

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See Provider."""
        validate_cluster(config.get("cluster"))

    async def configure(self, config: AttributeValues, call: CallContext) -> None:
        """See Provider."""
        self._clusters.default = config.get("cluster")

    def shut_down(self) -> None:
        """See Provider."""
        if self._object_resource is not None:
            self._object_resource.shut_down()

    def _objects(self) -> ManagedResource:
        from setpoint.terraform.resources.object_resource import ObjectResource

        self._object_resource = ObjectResource(self._clusters)
        return self._object_resource

    def _patches(self) -> ManagedResource:
        from setpoint.terraform.patches.patch_resource import PatchResource

        return PatchResource(self._clusters)

    def _waits(self) -> ManagedResource:
        from setpoint.terraform.sources.wait_resource import WaitResource

        return WaitResource(self._clusters)

    def _source(self) -> DataSource:
        from setpoint.terraform.sources.single_object import ObjectDataSource

        return ObjectDataSource(self._clusters)

    def _list(self) -> DataSource:
        from setpoint.terraform.sources.object_list import ObjectsDataSource

        return ObjectsDataSource(self._clusters)

    def _secret(self) -> EphemeralResource:
        from setpoint.terraform.sources.single_object import SecretResource

        return SecretResource(self._clusters)


# What nearly every configuration needs to be validated, planned and applied.
_USED_BY_MOST: Final = (
    "setpoint.terraform.resources.object_resource",
    "setpoint.objects.settled_objects",
    "setpoint.terraform.connections.connection",
    "setpoint.clients.kubernetes.client",
    "setpoint.clients.kubernetes.contexts",
)


def import_implementations() -> None:
    """Imports what the schema alone does not need."""
    for name in _USED_BY_MOST:
        import_module(name)
