"""Which values of a manifest may be shown: those of places where no secret stands. All others are hidden.

Terraform does not tell a provider which values are sensitive. So the place decides, and free text is always hidden:
the data of a ConfigMap, environment variables, arguments, annotations, and whatever a custom resource has as text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from setpoint.core.redaction import SECRET_NAME
from setpoint.core.unstructured import text_at
from setpoint.core.values.json_types import Json
from setpoint.core.values.paths import Path, scalar_text
from setpoint.errors import ManifestInvalid, SetpointError
from setpoint.terraform.cty.json_trees import to_json_tree
from setpoint.terraform.cty.values import UNKNOWN, AttributeValues, CtyValue, UnknownValue, nullify_unknown
from setpoint.terraform.framework.hidden_texts import HiddenTexts

# Values that tell nothing: one of two, nothing, or a number that is too short for a secret.
_HARMLESS: Final = re.compile(r"true|false|null|\{\}|\[\]||-?[0-9]{1,3}")
# Maps with names of the author's own, and everything below them: free text.
_CLOSED_MAPS: Final = frozenset(
    ("annotations", "attributes", "binaryData", "data", "options", "parameters", "stringData", "volumeAttributes")
)
# Maps whose values are shown, in every kind.
_OPEN_MAPS: Final = frozenset(("labels", "matchLabels", "nodeSelector", "finalizers"))
# The same in the kinds of Kubernetes itself: labels that select, and quantities.
_OPEN_KUBERNETES_MAPS: Final = frozenset(("selector", "limits", "requests", "hard", "capacity"))
_OPEN_FIELDS: Final = frozenset(("apiVersion", "kind", "image", "replicas"))
# Fields of the kinds of Kubernetes itself whose values are words, names, numbers, addresses or schedules.
_OPEN_KUBERNETES_FIELDS: Final = re.compile(
    r"accessModes|apiGroup|apiGroups|averageUtilization|averageValue|backoffLimit|claimName|clusterIP|"
    r"clusterIPs|completionMode|completions|concurrencyPolicy|containerPort|divisor|dnsPolicy|effect|egress|"
    r"externalIPs|externalName|externalTrafficPolicy|fieldPath|fsGroup|group|groups|host|hostPort|hostnames|"
    r"imagePullPolicy|ingress|ingressClassName|internalTrafficPolicy|ipFamilies|ipFamilyPolicy|key|"
    r"loadBalancerClass|loadBalancerIP|matchExpressions|maxReplicas|maxSurge|maxUnavailable|metrics|"
    r"minAvailable|minReplicas|mode|mountPath|name|namespace|nodeName|nodePort|nonResourceURLs|operator|"
    r"parallelism|pathType|plural|podManagementPolicy|policyTypes|port|priorityClassName|protocol|provisioner|"
    r"reclaimPolicy|resource|resourceNames|resources|restartPolicy|revisionHistoryLimit|runAsGroup|runAsUser|"
    r"runtimeClassName|schedule|schedulerName|scope|scopes|secretName|serviceAccountName|serviceName|"
    r"sessionAffinity|shortNames|singular|sizeLimit|storageClassName|subPath|subjects|targetPort|"
    r"terminationMessagePolicy|timeZone|tolerations|topologyKey|type|verbs|volumeBindingMode|volumeMode|"
    r"volumeName|whenUnsatisfiable|workingDir|\w+Seconds"
)
# The rules of a role.
_RULES: Final = ("rules",)
_NAMES: Final = frozenset((("metadata", "name"), ("metadata", "namespace")))
_HIDDEN: Final = re.compile(r"\(hidden, version ([0-9]{1,9})\)")
_MANIFESTS: Final = ("yaml_body", "manifest")
# Stands for an `apiVersion` that is not known: the least is shown.
UNKNOWN_VERSION: Final = "unknown.example/v1"


def is_shown(path: Path, text: str, api_version: str) -> bool:
    """Whether the value at a path of an object of this `apiVersion`, as text, may be shown."""
    if _HARMLESS.fullmatch(text):
        return True
    names = tuple(step for step in path.steps if isinstance(step, str))
    field, parent = names[-1] if names else "", names[-2] if len(names) > 1 else ""
    if not _CLOSED_MAPS.isdisjoint(names[:-1]):
        return False
    if parent in _OPEN_MAPS:
        return SECRET_NAME.search(field) is None
    if field in _OPEN_FIELDS or names in _NAMES:
        return True
    if not _is_of_kubernetes(api_version):
        return False
    is_open = _OPEN_KUBERNETES_FIELDS.fullmatch(field) is not None or names == _RULES
    return is_open or parent in _OPEN_KUBERNETES_MAPS


def _is_of_kubernetes(api_version: str) -> bool:
    group, slash, _ = api_version.partition("/")
    return not slash or "." not in group or group.endswith(".k8s.io")


# --- The attribute `fields` ------------------------------------------------------------------------------------------


def shown_fields(state: AttributeValues, prior: AttributeValues | None) -> CtyValue:
    """The attribute `fields` of a state: of `projection`, what may be shown.

    A hidden value has a version, which is another one whenever the value is another one than in `prior`. Of a set,
    whose members are named by their values, hidden members are shown as one field.
    """
    projection = state.get("projection")
    if not isinstance(projection, Mapping):
        return UNKNOWN if isinstance(projection, UnknownValue) else None
    before = {} if prior is None else prior
    texts = before.get("fields")
    if prior is not None and texts is None and projection == before.get("projection"):
        # From a version without this attribute: the next read adds it.
        return None
    shown = _merged(projection, _api_version(state))
    known = _merged(before.get("projection"), _api_version(before))
    versions = texts if isinstance(texts, Mapping) else {}
    return {
        name: value if isinstance(value, str) else _version(value, known.get(name), versions.get(name))
        for name, value in shown.items()
    }


def _api_version(state: AttributeValues) -> str:
    # Of a patch, the target is given by the same names.
    ref = state.get("object_ref", state.get("target"))
    found = ref.get("api_version") if isinstance(ref, Mapping) else None
    return found if isinstance(found, str) else UNKNOWN_VERSION


def _merged(projection: CtyValue, api_version: str) -> dict[str, str | tuple[str, ...]]:
    """The shown text of each field; of a hidden one its values."""
    found: dict[str, str | tuple[str, ...]] = {}
    for name, text in projection.items() if isinstance(projection, Mapping) else ():
        try:
            path = Path.parse(name)
        except ManifestInvalid:
            # A path of another version of setpoint.
            continue
        value = text if isinstance(text, str) else ""
        if is_shown(path, value, api_version):
            found[name] = value
            continue
        field = str(path.parent) if path.steps[-1:] == (value,) else name
        others = found.get(field, ())
        found[field] = (*(others if isinstance(others, tuple) else ()), value)
    return found


def _version(values: tuple[str, ...], known: str | tuple[str, ...] | None, text: CtyValue) -> str:
    shown = _HIDDEN.fullmatch(text) if isinstance(text, str) else None
    if shown is None:
        return "(hidden, version 1)"
    return shown[0] if values == known else f"(hidden, version {int(shown[1]) + 1})"


# --- Messages --------------------------------------------------------------------------------------------------------


def hidden_texts(values: AttributeValues) -> HiddenTexts:
    """The values of a configuration or a state that no message may repeat."""
    known = nullify_unknown(values) or {}
    found = HiddenTexts()
    for name in _MANIFESTS:
        found |= _texts_of(known.get(name))
    wait_for = known.get("wait_for")
    expected = to_json_tree(wait_for.get("field_value")) if isinstance(wait_for, Mapping) else None
    if isinstance(expected, Mapping):
        texts = {
            text
            for path, one in expected.items()
            for text in leaf_texts(one)
            if not path.startswith("status") and not _HARMLESS.fullmatch(text)
        }
        found |= HiddenTexts(frozenset(texts))
    return found


def _texts_of(manifest: CtyValue) -> HiddenTexts:
    if not isinstance(manifest, str):
        return texts_in(to_json_tree(manifest))
    from setpoint.core.values.yaml_documents import read_documents

    try:
        documents = read_documents(manifest, "")
    except (SetpointError, RecursionError):
        return words_in(manifest)
    found = HiddenTexts()
    for document in documents:
        found |= texts_in(document.value)
    return found


def texts_in(tree: Json) -> HiddenTexts:
    """The texts of an object that may be secret; the names in it may be shown."""
    api_version = text_at(tree, "apiVersion")
    names = [text_at(tree, "metadata", name) for name in ("namespace", "name")]
    shown = HiddenTexts(shown=frozenset({api_version, *names, "/".join(names)} - {""}))
    return texts_below(tree, Path(), api_version) | shown


def texts_below(tree: Json, at: Path, api_version: str) -> HiddenTexts:
    """The same of a part of an object of this `apiVersion`: what is at the path `at`."""
    hidden, shown = set[str](), set[str]()
    for path, value in _leaves(tree, at):
        text = scalar_text(value)
        shown.update(step for step in path.steps if isinstance(step, str))
        if text is not None:
            (shown if is_shown(path, text, api_version) else hidden).add(text)
    return HiddenTexts(frozenset(hidden), frozenset(shown - {""}))


def words_in(text: str) -> HiddenTexts:
    """The same of a text that is no YAML: every word of it but its keys."""
    keys = frozenset(re.findall(r"([\w./-]+):(?=\s|$)", text))
    words = {word for one in re.split(r"""[\s"',{}\[\]]+""", text) for word in (one, one.strip("!&*:"))}
    return HiddenTexts(frozenset({*words, *text.splitlines()} - keys - {""}), keys)


def _leaves(tree: Json, at: Path) -> Iterator[tuple[Path, Json]]:
    if isinstance(tree, Mapping):
        for name, one in tree.items():
            yield from _leaves(one, at / str(name))
    elif isinstance(tree, list | tuple):
        for position, one in enumerate(tree):
            yield from _leaves(one, at / position)
    else:
        yield at, tree


def leaf_texts(tree: Json) -> Iterator[str]:
    """The text of each scalar in a tree."""
    return (text for _, one in _leaves(tree, Path()) if (text := scalar_text(one)) is not None)
