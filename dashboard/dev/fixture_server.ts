/** Answers of the API with generated data, for work on the page without a server: `npx vite --mode fixtures`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";
import type { Graph, GraphEdge, Json, Plan, ResourceDetail, Row, State, Summary, Timeline } from "../src/api/contract";

const TOTAL = Number(process.env["SETPOINT_FIXTURES"] ?? 10_000);
const NOW = Date.now();
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();

let seed = 11;
const random = (): number => (seed = (seed * 16807) % 2147483647) / 2147483647;
const pick = <T,>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;

const KINDS: [string, string][] = [
  ["ComputeNetwork", "compute.cnrm.cloud.google.com"], ["ComputeSubnetwork", "compute.cnrm.cloud.google.com"],
  ["IAMServiceAccount", "iam.cnrm.cloud.google.com"], ["KubernetesObject", "setpoint.dev"],
  ["PubSubTopic", "pubsub.cnrm.cloud.google.com"], ["SQLDatabase", "sql.cnrm.cloud.google.com"],
  ["SQLInstance", "sql.cnrm.cloud.google.com"], ["SQLUser", "sql.cnrm.cloud.google.com"],
  ["StorageBucket", "storage.cnrm.cloud.google.com"], ["TrusteeConfig", "confidentialcontainers.org"],
];
const NAMESPACES = ["billing", "checkout", "data-platform", "identity", "payments", "search", "team-mobile"];
const WORDS = ["orders", "ledger", "events", "sessions", "catalog", "invoices", "metrics", "archive", "media", "audit"];
const REASONS: Partial<Record<State, [string, string]>> = {
  failed: ["UpdateFailed", "PATCH https://sqladmin.googleapis.com/v1/projects/demo/instances/ledger: 403 The caller does not have permission"],
  contested: ["Contested", "spec.settings.tier: another writer sets db-n1-standard-4 again and again"],
  notConverged: ["NotConverged", "spec.settings.diskSize still differs after a write that was accepted"],
  blocked: ["Blocked", "waits for KubernetesObject gateway: status.loadBalancer.ingress[0].ip is unknown"],
  waiting: ["Waiting", "Cloud SQL operation CREATE is running"],
  observed: ["Observed", "management: observe; spec.versioning.enabled differs"],
  paused: ["Paused", "management: paused"],
};

function state(): State {
  const dice = random();
  if (dice < 0.003) return "failed";
  if (dice < 0.005) return "contested";
  if (dice < 0.007) return "notConverged";
  if (dice < 0.012) return "blocked";
  if (dice < 0.02) return "waiting";
  if (dice < 0.03) return "progressing";
  if (dice < 0.04) return "observed";
  if (dice < 0.045) return "paused";
  return "ready";
}

function makeRow(number: number): Row {
  const [kind, group] = pick(KINDS);
  const namespace = pick(NAMESPACES);
  const name = `${pick(WORDS)}-${number.toString(36)}`;
  const is = state();
  const [reason, message] = REASONS[is] ?? ["UpToDate", "The resource is up to date"];
  return {
    id: `${kind}.${group}/${namespace}/${name}`, kind, group, namespace, name,
    labels: { app: pick(WORDS), tier: pick(["gold", "silver"]) }, state: is, reason, message,
    drifted: is === "observed", drift: is === "observed" ? ("withheld" as const) : ("" as const), since: ago(random() * 9e5), lastStep: ago(random() * 900),
    nextStep: new Date(NOW + random() * 9e5).toISOString(), generation: 3, observedGeneration: 3,
  };
}

const order = (a: Row, b: Row): number => (a.id < b.id ? -1 : 1);
const rows = Array.from({ length: TOTAL }, (_, number) => makeRow(number)).sort(order);

function tally(): Summary {
  const byState: Partial<Record<State, number>> = {};
  const kinds = new Map<string, { kind: string; group: string; total: number; byState: Partial<Record<State, number>> }>();
  const spaces = new Map<string, number>();
  for (const row of rows) {
    byState[row.state] = (byState[row.state] ?? 0) + 1;
    const one = kinds.get(row.kind) ?? { kind: row.kind, group: row.group, total: 0, byState: {} };
    one.total += 1;
    one.byState[row.state] = (one.byState[row.state] ?? 0) + 1;
    kinds.set(row.kind, one);
    spaces.set(row.namespace, (spaces.get(row.namespace) ?? 0) + 1);
  }
  const severe: State[] = ["failed", "contested", "notConverged", "blocked"];
  const attention = severe.flatMap((is) => rows.filter((row) => row.state === is)).concat(rows.filter((row) => row.drifted));
  return {
    total: rows.length, byState, byKind: [...kinds.values()].sort((a, b) => (a.kind < b.kind ? -1 : 1)),
    byNamespace: [...spaces].sort().map(([namespace, total]) => ({ namespace, total })), attention: attention.slice(0, 50),
    process: {
      phase: "running", uptimeSeconds: 93_784, rates: { steps: 31.2 + random(), writes: 0.4, requests: 33.7, errors: 0.1 },
      queue: [{ kind: "SQLInstance", depth: 12, oldestSeconds: 3.2 }, { kind: "StorageBucket", depth: 2, oldestSeconds: 0.4 }],
      budgets: [
        { service: "sqladmin.googleapis.com", used: 41, limit: 60, isOpen: false },
        { service: "storage.googleapis.com", used: 12, limit: 200, isOpen: false },
        { service: "pubsub.googleapis.com", used: 0, limit: 20, isOpen: true },
      ],
    },
    processes: [
      { identity: "setpoint-7d9f6-abcde", shards: [0, 1, 4, 5], isThis: true, renewed: ago(2) },
      { identity: "setpoint-7d9f6-fghij", shards: [2, 3, 6, 7], isThis: false, renewed: ago(5) },
    ],
  };
}

function makeGraph(): Graph {
  const shown = rows.slice(0, 2000);
  const edges: GraphEdge[] = [];
  shown.forEach((row, index) => {
    if (index % 10 === 0) return;
    const to = shown[index - (index % 10) + Math.floor((index % 10) / 3)];
    if (!to || to === row) return;
    const isBlocking = row.state === "blocked";
    edges.push({
      from: row.id, to: to.id, type: pick(["reference", "value", "order", "owner"] as const), path: "spec.instanceRef", output: "status.uri",
      state: isBlocking ? "unknown" : pick(["known", "ready", "null"] as const), value: isBlocking ? null : `projects/demo/${to.name}`, isBlocking,
    });
  });
  return { nodes: shown.map((row) => ({ id: row.id, kind: row.kind, namespace: row.namespace, name: row.name, state: row.state, exists: true })), edges };
}

function detail(row: Row): ResourceDetail {
  const spec = { location: "EU", storageClass: "STANDARD", versioning: { enabled: true }, lifecycleRule: [{ action: { type: "Delete" }, condition: { age: 30 } }] };
  const manifest: Json = { apiVersion: `${row.group}/v1beta1`, kind: row.kind, metadata: { name: row.name, namespace: row.namespace, labels: row.labels, generation: 3 }, spec };
  const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
  const other = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";
  return {
    row, manifest, status: { observedGeneration: 3, lastModifiedCookie: `${digest}/${other}`, selfLink: "https://example.invalid" }, live: { ...spec, versioning: { enabled: false } },
    conditions: [{ type: "Ready", status: row.state === "ready" ? "True" : "False", reason: row.reason, message: row.message, lastTransitionTime: row.since ?? "" }],
    events: [{ severity: "Normal", reason: "Updated", message: "spec.versioning.enabled: false → true", at: ago(300), count: 3 }],
    outputs: [{ path: "status.loadBalancer.ingress[0].ip", state: "known", value: "10.1.2.3" }, { path: "status.uri", state: "unknown", reason: "not there yet" }],
    cookie: { intent: digest, live: other }, digests: { intent: digest, live: digest }, isFast: false, location: "storage/v1/b/logs", locationText: "storage/v1/b/logs",
    owner: null, children: [], dependsOn: [rows[0]?.id ?? ""], dependants: [rows[1]?.id ?? "", rows[2]?.id ?? ""],
    lastStep: { time: row.lastStep, trigger: "resync", decision: "drifted", moved: ["live"], writes: [{ action: "update", name: "bucket", fields: [{ path: "spec.versioning.enabled", before: false, after: true, why: "spec" }], more: 0 }], note: "back to the spec" },
    nextStep: { time: row.nextStep, why: "resync" }, contests: row.state === "contested" ? [{ path: "spec.settings.tier", ours: "db-f1-micro", theirs: "db-n1-standard-4", count: 7, since: ago(4000) }] : [],
  };
}

function timeline(): Timeline {
  return {
    entries: Array.from({ length: 30 }, (_, number) => ({
      time: ago(number * 700 + 30), type: pick(["step", "write", "drift", "event", "specChanged"] as const), who: pick(["resync", "ops@example.com", "watch"]),
      text: "drifted: spec.versioning.enabled is put back", decision: "drifted",
      fields: [{ path: "spec.versioning.enabled", before: false, after: true }],
      requests: [{ method: "PATCH", url: "https://storage.googleapis.com/storage/v1/b/logs", status: 200, seconds: 0.12 }],
    })),
    next: null, heat: ["spec.versioning.enabled", "spec.labels.team", "spec.lifecycleRule"].map((path) => ({ path, buckets: Array.from({ length: 48 }, () => Math.max(0, Math.floor(random() * 9 - 5))) })),
    bucketSeconds: 1800, bucketStart: ago(86_400),
  };
}

function plan(): Plan {
  const some = rows.slice(0, 60);
  const actions = ["create", "update", "update", "delete", "failed"];
  return {
    madeAt: ago(120), isRunning: false, done: rows.length, total: rows.length, counts: { create: 12, update: 24, delete: 12, nothing: rows.length - 60, failed: 12 },
    resources: some.map((row, index) => ({
      id: row.id, action: actions[index % 5] ?? "update", decision: "drifted", error: index % 5 === 4 ? row.message : null,
      fields: [{ path: "spec.versioning.enabled", before: false, after: true, why: "the spec says so" }, { path: "spec.labels.team", before: "a", why: "pruned" }],
    })),
  };
}

const upgrade = {
  baseline: "0.1.0", candidate: "this (0.2.0)", verdict: "new writes", summary: { same: 9_990, "fewer writes": 4, "new writes": 6 }, oneTime: 12, blocked: [], missed: [],
  resources: rows.slice(0, 6).map((row) => ({ group: row.group, kind: row.kind, namespace: row.namespace, name: row.name, verdict: "new writes", fields: ["spec.settings.tier"], baseline: "in sync", candidate: "writes" })),
};

function answer(path: string, values: URLSearchParams): Json | object | undefined {
  if (path === "/session") return { version: "0.1.0", apiVersion: "v1", source: { type: "cluster", name: "prod-eu" }, user: "ada@example.com", isLive: true, recordedAt: null, actions: ["reconcile", "pause", "resume"], hasPlan: true, hasUpgradeReport: true };
  if (path === "/summary") return tally();
  if (path === "/plan") return plan();
  if (path === "/upgrade") return upgrade;
  if (path === "/graph") return makeGraph();
  if (path === "/search") return { ids: rows.filter((_, index) => index % 3 === 0).map((row) => row.id) };
  if (path === "/resources") {
    const start = Number(values.get("cursor") ?? 0);
    const end = start + Number(values.get("limit") ?? 1000);
    return { revision: 1, total: rows.length, next: end < rows.length ? String(end) : null, resources: rows.slice(start, end) };
  }
  const match = /^\/resources\/([^/]+\/[^/]+\/[^/]+)(?:\/(.*))?$/.exec(path);
  const row = match && rows.find((one) => one.id === decodeURIComponent(match[1] ?? ""));
  if (!match || !row) return undefined;
  if (match[2] === "timeline") return timeline();
  if (match[2] === "fields")
    return { observedAt: ago(0), isFresh: true, fields: [
      { path: "spec.location", spec: "EU", live: "EU", desired: "EU", rule: "spec", reason: "in the spec", differs: false, isSecret: false },
      { path: "spec.versioning.enabled", spec: true, live: false, desired: true, rule: "spec", reason: "in the spec", differs: true, isSecret: false },
      { path: "spec.softDeletePolicy.retentionDurationSeconds", live: 604800, desired: 604800, rule: "protected", reason: "kept (protected)", differs: false, isSecret: false },
      { path: "spec.labels.team", live: "a", rule: "pruned", reason: "not in the spec", differs: true, isSecret: false },
    ] };
  if (match[2]?.startsWith("actions/")) return { row };
  return detail(row);
}

function stream(response: ServerResponse): void {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  response.write(": hello\n\n");
  const timer = setInterval(() => {
    const index = Math.floor(random() * 40);
    const row = rows[index];
    if (!row) return;
    rows[index] = { ...row, state: row.state === "ready" ? "progressing" : "ready", lastStep: new Date().toISOString() };
    response.write(`event: resources\ndata: ${JSON.stringify({ revision: 2, changed: [rows[index]], deleted: [] })}\n\n`);
  }, 3000);
  response.on("close", () => clearInterval(timer));
}

export function fixtureServer(): Plugin {
  return {
    name: "setpoint-fixtures",
    configureServer(server) {
      server.middlewares.use("/api/v1", (request: IncomingMessage, response: ServerResponse) => {
        const address = new URL(request.url ?? "/", "http://fixtures");
        if (address.pathname === "/stream") return stream(response);
        const found = answer(address.pathname, address.searchParams);
        response.writeHead(found === undefined ? 404 : 200, { "Content-Type": "application/json" });
        response.end(JSON.stringify(found ?? { error: { code: "notFound", message: "There is no such resource." } }));
      });
    },
  };
}
