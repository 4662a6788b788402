"""Which of the resources that are there a command is about: those with some labels and fields."""

from collections.abc import Iterable, Mapping

from setpoint.core.schema.shape import shape_of
from setpoint.core.unstructured import GroupKind
from setpoint.core.values.deferred_dataclass import dataclass
from setpoint.engine.kind import ResourceType
from setpoint.engine.resource import Resource
from setpoint.library.selecting.field_selector import FieldSelector
from setpoint.library.selecting.label_selector import LabelSelector


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """Labels and fields that a resource has to have."""

    labels: LabelSelector = LabelSelector()
    fields: FieldSelector = FieldSelector()

    @staticmethod
    def parse(labels: str | None, fields: str | None) -> "ResourceFilter":
        """The filter that two selectors say, either of which may be missing; ManifestInvalid for a wrong one."""
        return ResourceFilter(
            LabelSelector() if labels is None else LabelSelector.parse(labels),
            FieldSelector() if fields is None else FieldSelector.parse(fields),
        )

    def require_known(self, resources: Iterable[Resource], types: Mapping[GroupKind, ResourceType]) -> None:
        """UnknownField for a field that no kind of these resources has."""
        kinds = sorted({one.ref.group_kind for one in resources})
        self.fields.require_known(shape_of(types[one].tree_type) for one in kinds if one in types)

    def matches(self, resource: Resource) -> bool:
        """Whether a resource is selected."""
        return self.labels.matches(resource.labels) and self.fields.matches(resource)
