"""Reads of one object: the data source `setpoint_object`, and the ephemeral resource `setpoint_secret`."""

import base64
from collections.abc import Mapping
from typing import Final

from setpoint.core.secret_paths import without_secrets
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, remove_at
from setpoint.core.values.yaml_documents import write_document
from setpoint.terraform.connections.clusters import ClusterConnections, cluster_needed, validate_cluster
from setpoint.terraform.cty.values import AttributeValues, CtyValue
from setpoint.terraform.framework.call import CallContext
from setpoint.terraform.framework.diagnostics import DiagnosticsError, error
from setpoint.terraform.framework.hidden_texts import HiddenTexts
from setpoint.terraform.framework.provider import DataSource, EphemeralResource, HasSchema
from setpoint.terraform.resources.object_state import dynamic_value
from setpoint.terraform.sources.schemas import OBJECT_SOURCE_SCHEMA, SECRET_SCHEMA
from setpoint.terraform.sources.wait_resource import target_of

_MANAGED_FIELDS: Final = Path(("metadata", "managedFields"))
_SECRET: Final = {"api_version": "v1", "kind": "Secret"}


class ClusterReader(HasSchema):
    """What reads objects of clusters."""

    def __init__(self, clusters: ClusterConnections) -> None:
        self._clusters = clusters

    def hidden_texts(self, values: AttributeValues) -> HiddenTexts:
        """See HasSchema."""
        return self._clusters.hidden_texts(values.get("cluster"))


class ObjectDataSource(ClusterReader, DataSource):
    """Reads an object that may be managed by any field manager."""

    schema = OBJECT_SOURCE_SCHEMA

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See DataSource."""
        validate_cluster(config.get("cluster"))
        others = [name for name, one in _SECRET.items() if isinstance(config.get(name), str) and config[name] != one]
        if config.get("read_secrets") is True and others:
            why = f"{config['kind']} in {config['api_version']} is no Secret: leave read_secrets out."
            raise DiagnosticsError(error("No values of a Secret", why, ("read_secrets",)))

    async def read(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """See DataSource."""
        live = await _observe(self._clusters, config, config, call)
        if live is None:
            if config.get("optional") is not True:
                raise _missing_error(config, " Where it may be missing, write optional = true.")
            return {**config, **dict.fromkeys(("object", "yaml_body", "secret_data", "secret_data_base64"))}
        shown = visible_object(live)
        texts, encoded = secret_values(live) if config.get("read_secrets") is True else (None, None)
        return {
            **config,
            "object": dynamic_value(shown),
            "yaml_body": write_document(shown),
            "secret_data": texts,
            "secret_data_base64": encoded,
        }


class SecretResource(ClusterReader, EphemeralResource):
    """Reads the values of a Secret, which Terraform does not store."""

    schema = SECRET_SCHEMA

    async def validate(self, config: AttributeValues, call: CallContext) -> None:
        """See EphemeralResource."""
        validate_cluster(config.get("cluster"))

    async def open(self, config: AttributeValues, call: CallContext) -> AttributeValues:
        """See EphemeralResource."""
        names: AttributeValues = {**config, **_SECRET}
        live = await _observe(self._clusters, names, config, call)
        if live is None:
            raise _missing_error(names)
        texts, encoded = secret_values(live)
        return {**config, "data": texts, "data_base64": encoded}


async def _observe(
    clusters: ClusterConnections, names: AttributeValues, config: AttributeValues, call: CallContext
) -> Mapping[str, Json] | None:
    clusters.require_known(config.get("cluster"))
    target = target_of(clusters, names, config.get("cluster"))
    with cluster_needed(target.connection):
        live = await call.until_stopped(target.observe())
    return live if isinstance(live, Mapping) else None


def _missing_error(names: AttributeValues, advice: str = " Check its name and namespace.") -> DiagnosticsError:
    why = f"There is no {names['kind']} {names['name']} in that cluster.{advice}"
    return DiagnosticsError(error("No such object", why, ("name",)))


def visible_object(live: Mapping[str, Json]) -> Json:
    """An object as it is shown: secret values would be stored in the state in plain text."""
    return without_secrets(remove_at(dict(live), _MANAGED_FIELDS))


def secret_values(live: Mapping[str, Json]) -> tuple[dict[str, CtyValue], dict[str, CtyValue]]:
    """The values of a Secret: those that are text, decoded; and all of them in base64."""
    data = live.get("data")
    encoded = {key: text for key, text in data.items() if isinstance(text, str)} if isinstance(data, Mapping) else {}
    texts: dict[str, CtyValue] = {}
    for key, text in encoded.items():
        try:
            texts[key] = base64.b64decode(text).decode()
        except ValueError:
            # Bytes that are no text: Terraform has no type for them.
            continue
    return texts, dict(encoded)
