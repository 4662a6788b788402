"""Manifests with what is hard to plan: defaults, quantities, numbers as strings, secrets, nulls."""

from typing import Final

from tests.terraform.objects.workspace import A, declared, valued

_POD: Final = """
metadata: {labels: {app: web}}
spec:
  containers:
  - name: web
    image: web:1
    ports: [{containerPort: 80}]
    env: [{name: A, value: "1"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: "0.5", memory: 1Gi, ephemeral-storage: 1e3}}
    readinessProbe: {httpGet: {port: 80}}
    livenessProbe: {httpGet: {port: http}}
  - {name: side, image: "side:1", command: [sh, -c, "sleep 1"]}
"""


def _named(api_version: str, kind: str, name: str, rest: str) -> str:
    head = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: NAMESPACE}}\n"
    return declared(name, head + rest)


def _indented(text: str, by: int) -> str:
    return text.strip().replace("\n", "\n" + " " * by)


ALONE: Final = {
    "deployment": _named(
        "apps/v1",
        "Deployment",
        "deployment",
        f"spec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    {_indented(_POD, 4)}\n",
    ),
    "cronjob": _named(
        "batch/v1",
        "CronJob",
        "cronjob",
        "spec:\n  schedule: '*/5 * * * *'\n  jobTemplate:\n    spec:\n      template:\n        spec:\n"
        "          restartPolicy: OnFailure\n          containers: [{name: one, image: one}]\n",
    ),
    "service": _named(
        "v1",
        "Service",
        "service",
        "spec:\n  selector: {app: web}\n  ports:\n  - {name: a, port: 80, targetPort: http}\n"
        "  - {name: b, port: 81, targetPort: 8081, protocol: UDP}\n  - {name: c, port: 82}\n",
    ),
    "nodeport": _named(
        "v1", "Service", "nodeport", "spec: {type: NodePort, ports: [{port: 80}, {port: 81, name: x}]}"
    ).replace("{port: 80}", "{port: 80, name: y}"),
    "secret": _named("v1", "Secret", "secret", "stringData: {password: s3cret}\ndata: {other: czNjcmV0}\n"),
    "account": _named("v1", "ServiceAccount", "account", "automountServiceAccountToken: false\n"),
    "role": _named(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "role",
        "rules:\n- {apiGroups: [''], resources: [pods], verbs: [get, list]}\n",
    ),
    "binding": _named(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "binding",
        "roleRef: {kind: Role, name: role, apiGroup: rbac.authorization.k8s.io}\n"
        "subjects:\n- {kind: ServiceAccount, name: account}\n- {kind: User, name: alice}\n",
    ),
    "claim": _named(
        "v1",
        "PersistentVolumeClaim",
        "claim",
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}\n",
    ),
    "quota": _named("v1", "ResourceQuota", "quota", "spec: {hard: {cpu: 1000m, memory: 1024Mi, pods: '010'}}\n"),
    "lines": _named(
        "v1",
        "ConfigMap",
        "lines",
        "data:\n  a: |\n    one\n      two\n\n    three\n  b: >-\n    four\n    five\n  c: ''\n",
    ),
    "nothing": _named("v1", "ConfigMap", "nothing", "data: {}\n").replace("NAMESPACE}", "NAMESPACE, annotations: {}}"),
    "empty": _named(
        "networking.k8s.io/v1", "NetworkPolicy", "empty", "spec: {podSelector: {}, ingress: [], egress: [{}]}\n"
    ),
    "budget": _named(
        "policy/v1",
        "PodDisruptionBudget",
        "budget",
        "spec: {maxUnavailable: 25%, selector: {matchExpressions: [{key: a, operator: Exists}]}}\n",
    ),
    "nulls": valued(
        "nulls",
        """{
    apiVersion = "v1"
    kind       = "Service"
    metadata   = { name = "nulls", namespace = "NAMESPACE", labels = null, annotations = { a = null, "b.c/d" = "e" } }
    spec       = { ports = [{ port = 80, targetPort = "http", name = null }], clusterIP = "None", selector = {} }
  }""",
    ),
    "numbers": valued(
        "numbers",
        """{
    apiVersion = "autoscaling/v2"
    kind       = "HorizontalPodAutoscaler"
    metadata   = { name = "numbers", namespace = "NAMESPACE" }
    spec = {
      maxReplicas    = 3
      scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "deployment" }
      metrics        = [{ type = "Resource", resource = { name = "cpu", target = {
        type               = "Utilization"
        averageUtilization = 50
      } } }]
    }
  }""",
    ),
}

DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: records.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Record, plural: records, singular: record}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {host: {type: string}, ttl: {type: integer, default: 60}}
"""
CUSTOM: Final = """
apiVersion: GROUP/v1
kind: Record
metadata: {name: www, namespace: NAMESPACE}
spec: {host: www}
"""
IN_ITS_NAMESPACE: Final = declared(
    "a", "{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-more}}"
) + declared(
    "b",
    """
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: NAMESPACE-more}
    data: {colour: blue}
    """,
    f"depends_on = [{A}]",
)
