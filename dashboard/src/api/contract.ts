/** The shapes of `/api/v1`, as docs/dashboard-api.json describes them. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Id = string;
export type Time = string;

export const STATES = [
  "failed", "contested", "notConverged", "blocked", "deleting", "waiting", "progressing", "unknown", "paused",
  "observed", "ready",
] as const;
export type State = (typeof STATES)[number];

export type ActionName = "reconcile" | "pause" | "resume";

export interface Session {
  version: string;
  apiVersion: string;
  source: { type: "store" | "cluster" | "recording"; name: string };
  user: string | null;
  isLive: boolean;
  recordedAt: Time | null;
  actions: ActionName[];
  hasPlan: boolean;
  hasUpgradeReport: boolean;
}

export interface Row {
  id: Id;
  kind: string;
  group: string;
  namespace: string;
  name: string;
  labels: Record<string, string>;
  state: State;
  reason: string;
  message: string;
  drifted: boolean;
  /** What became of it. */
  drift: "" | "corrected" | "withheld" | "contested";
  since: Time | null;
  lastStep: Time | null;
  /** Changes of it alone come with the event of next steps. */
  nextStep: Time | null;
  generation: number;
  observedGeneration: number | null;
}

export interface ResourcePage {
  revision: number | string;
  total: number;
  next: string | null;
  resources: Row[];
}

export interface KindCount {
  kind: string;
  group: string;
  total: number;
  byState: Partial<Record<State, number>>;
}

export interface AttentionItem {
  id: Id;
  state: State;
  reason: string;
  message: string;
  since: Time | null;
}

export interface ProcessSummary {
  phase: string;
  uptimeSeconds: number;
  rates: { steps: number; writes: number; requests: number; errors: number };
  queue: { kind: string; depth: number; oldestSeconds: number }[];
  budgets: { service: string; used: number; limit: number; isOpen: boolean }[];
}

export interface Summary {
  total: number;
  byState: Partial<Record<State, number>>;
  byKind: KindCount[];
  byNamespace: { namespace: string; total: number }[];
  attention: AttentionItem[];
  process: ProcessSummary | null;
  /** Each with what it does, where it says so. */
  processes: { identity: string; shards: number[]; isThis: boolean; renewed: Time; state?: ProcessSummary | null }[];
}

export interface ResourcesEvent {
  revision: number | string;
  changed: Row[];
  deleted: Id[];
}

export interface NextStepsEvent {
  revision: string;
  times: Record<Id, Time | null>;
}

export interface GraphNode {
  id: Id;
  kind: string;
  namespace: string;
  name: string;
  state: State;
  /** Null where that may not be told. */
  exists: boolean | null;
}

export type EdgeType = "reference" | "value" | "order" | "owner" | "secret";
export type EdgeState = "known" | "unknown" | "null" | "ready" | "notReady" | "missing";

export interface GraphEdge {
  from: Id;
  to: Id;
  type: EdgeType;
  path: string | null;
  output: string | null;
  state: EdgeState;
  value: Json;
  isBlocking: boolean;
  /** It is part of a cycle: of what is in one, nothing comes first. */
  isInCycle?: boolean;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** The resources that need each other, if there are some. */
  cycle?: string | null;
  /** There is more than the server hands out at once. */
  isCut?: boolean;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime: Time;
}

export interface EventRecord {
  at: Time | null;
  severity: string;
  reason: string;
  message: string;
  count: number;
}

export interface Output {
  path: string;
  state: "null" | "unknown" | "known";
  value?: Json;
  reason?: string | null;
}

export interface StepWrite {
  action: string;
  name: string;
  fields: ChangedField[];
  more: number;
}

export interface StepRecord {
  time: Time | null;
  trigger: string;
  decision: string;
  moved: string[];
  writes: StepWrite[];
  kept?: ChangedField[];
  withheld?: ChangedField[];
  note: string | null;
}

export interface Contest {
  path: string;
  ours?: Json;
  theirs?: Json;
  count: number | null;
  since: Time | null;
}

export interface ResourceDetail {
  row: Row;
  manifest: Json;
  status: Json;
  live: Json;
  conditions: Condition[];
  events: EventRecord[];
  outputs: Output[];
  cookie: { intent: string; live: string } | null;
  digests: { intent: string | null; live: string | null } | null;
  isFast: boolean | null;
  location: string | null;
  // The same to be read by a person.
  locationText: string | null;
  owner: Id | null;
  children: Id[];
  dependsOn: Id[];
  dependants: Id[];
  lastStep: StepRecord | null;
  nextStep: { time: Time | null; why: string | null } | null;
  contests: Contest[];
}

export interface FieldRow {
  path: string;
  spec?: Json;
  live?: Json;
  desired?: Json;
  rule: string;
  reason: string;
  differs: boolean;
  isSecret: boolean;
}

export interface Fields {
  observedAt: Time | null;
  isFresh: boolean;
  /** Why the live object was not read. */
  trouble?: string;
  digests?: { intent: string; live: string } | null;
  liveObject?: Json;
  fields: FieldRow[];
}

export interface ChangedField {
  path: string;
  before?: Json;
  after?: Json;
  why?: string;
}

export interface Request {
  method: string;
  url: string;
  status: number | null;
  seconds: number | null;
}

export interface Entry {
  time: Time;
  type: "step" | "write" | "request" | "drift" | "event" | "specChanged" | "refused" | "contested";
  who: string;
  text: string;
  decision?: string | null;
  fields?: ChangedField[] | null;
  requests?: Request[] | null;
}

export interface Timeline {
  entries: Entry[];
  next: string | null;
  heat: { path: string; buckets: number[] }[];
  bucketSeconds: number;
  bucketStart: Time | null;
}

export interface PlannedResource {
  id: Id;
  action: string;
  decision: string;
  fields: ChangedField[];
  error: string | null;
  finding?: string;
}

export interface Plan {
  madeAt: Time | null;
  isRunning: boolean;
  done: number;
  total: number;
  counts: Record<string, number>;
  resources: PlannedResource[];
  error?: string | null;
  isCancelled?: boolean;
}

export interface UpgradeReport {
  baseline?: string;
  candidate?: string;
  verdict: string;
  summary: Record<string, number>;
  oneTime: number;
  resources: {
    group: string;
    kind: string;
    namespace: string;
    name: string;
    verdict: string;
    fields: Json[];
    baseline: Json;
    candidate: Json;
    error?: string;
  }[];
  blocked: string[];
  missed: string[];
}
