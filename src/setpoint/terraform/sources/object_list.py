"""The data source `setpoint_objects`: the objects of one kind, by selector."""

from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.terraform.connections.clusters import cluster_needed, validate_cluster
from setpoint.terraform.cty.values import AttributeValues, CtyValue, is_known
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.provider import DataSource
from setpoint.terraform.resources.object_state import dynamic_value
from setpoint.terraform.sources.schemas import DEFAULT_LIMIT, LARGEST_LIMIT, OBJECTS_SOURCE_SCHEMA
from setpoint.terraform.sources.single_object import ClusterReader, visible_object


class ObjectsDataSource(ClusterReader, DataSource):
    """Lists objects, whichever field manager keeps them."""

    schema = OBJECTS_SOURCE_SCHEMA

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See DataSource."""
        validate_cluster(config.get("cluster"))
        if config.get("all_namespaces") is True and config.get("namespace") is not None:
            why = "namespace is one of them and all_namespaces all of them: write one of the two."
            raise DiagnosticsError(error("Not one place", why, ("namespace",)))
        limit = config.get("limit")
        if limit is not None and is_known(limit) and not (isinstance(limit, int) and 1 <= limit <= LARGEST_LIMIT):
            why = f"limit is a whole number from 1 to {LARGEST_LIMIT}."
            raise DiagnosticsError(error("No such limit", why, ("limit",)))

    async def read(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """See DataSource."""
        from setpoint.objects.listing import ObjectQuery, list_objects

        self._clusters.require_known(config.get("cluster"))
        session, limit = self._clusters.session(config.get("cluster")), config.get("limit")
        most = limit if isinstance(limit, int) else DEFAULT_LIMIT
        query = ObjectQuery(
            api_version=str(config["api_version"]),
            kind=str(config["kind"]),
            namespace=_text(config.get("namespace")),
            all_namespaces=config.get("all_namespaces") is True,
            labels=_text(config.get("label_selector")),
            fields=_text(config.get("field_selector")),
        )
        with cluster_needed(session.client.connection):
            found = await call.until_stopped(list_objects(session, query, most))
        if found is None:
            why = f"There are more than {most}: select fewer by labels, fields or namespace, or raise limit."
            raise DiagnosticsError(error("Too many objects", why, ("limit",)))
        return {**config, "objects": dynamic_value({_key(one): visible_object(one) for one in found})}


def _text(value: CtyValue) -> str:
    return value if isinstance(value, str) else ""


def _key(live: Json) -> str:
    names = (text_at(live, "metadata", "namespace"), text_at(live, "metadata", "name"))
    return "/".join(name for name in names if name)
