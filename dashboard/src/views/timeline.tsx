/** What happened to a resource: its steps and writes, drift by field over time, and contested fields. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Contest, Entry, Id, Json, Timeline } from "../api/contract";
import { Changes } from "../components/changes";
import { Icon, type IconName } from "../components/icon";
import { Ago, Button, Card, Empty, Failure, Path, Skeleton, useLoaded, Value } from "../components/parts";
import { absolute, duration, plural } from "../model/format";

const TYPES: Record<Entry["type"], [name: string, icon: IconName]> = {
  step: ["Step", "arrows"], write: ["Write", "pencil"], request: ["Request", "bolt"], drift: ["Drift", "notEqual"], event: ["Event", "list"],
  specChanged: ["Spec changed", "plan"], refused: ["Refused", "stop"], contested: ["Contested", "swap"],
};

export function TimelineTab({ id, version, contests }: { id: Id; version: string; contests: Contest[] }) {
  const [loaded, again] = useLoaded(() => api.timeline(id, null), id, version);
  const [older, setOlder] = useState<{ entries: Entry[]; next: string | null } | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setOlder(null), [id, version]);
  const found = loaded.value;
  if (loaded.state === "failed" && !found) return <Failure error={loaded.error} retry={again} />;
  if (!found) return <Skeleton rows={12} />;
  const entries = [...found.entries, ...(older?.entries ?? [])];
  const next = older ? older.next : found.next;
  const types = [...new Set(entries.map((one) => one.type))];
  const more = async (): Promise<void> => {
    const page = await api.timeline(id, next);
    setOlder({ entries: [...(older?.entries ?? []), ...page.entries], next: page.next });
  };
  const flip = (type: string): void => setHidden(new Set(hidden.has(type) ? [...hidden].filter((one) => one !== type) : [...hidden, type]));
  return (
    <>
      {contests.length > 0 && <Card title={contestsTitle(contests)} count={contests.length}><Contests contests={contests} /></Card>}
      <Card title="Drift by field"><Heatmap timeline={found} /></Card>
      <Card
        title="What happened"
        count={entries.length}
        actions={types.length > 1 && (
          <div class="chips" data-skip-export>{types.map((type) => <button key={type} type="button" class="chip" aria-pressed={!hidden.has(type)} onClick={() => flip(type)}>{TYPES[type]?.[0] ?? type}</button>)}</div>
        )}
      >
        {entries.length === 0 ? <Empty title="Nothing on record">Steps and writes appear here as they happen.</Empty> : (
          <ol class="timeline">{entries.filter((one) => !hidden.has(one.type)).map((one, number) => <EntryRow key={`${one.time} ${one.type} ${number}`} entry={one} />)}</ol>
        )}
        {next !== null && <div class="card-line" data-skip-export><Button onClick={() => void more()}>Show older</Button></div>}
      </Card>
    </>
  );
}

function EntryRow({ entry }: { entry: Entry }) {
  const [name, icon] = TYPES[entry.type] ?? [entry.type, "list"];
  const fields = entry.fields ?? [];
  const requests = entry.requests ?? [];
  return (
    <li class={`entry entry-${entry.type}`}>
      <span class="entry-mark"><Icon name={icon} /></span>
      <div class="entry-body">
        <p class="entry-head">
          <strong>{name}</strong>
          {entry.decision && <span class="tag">{entry.decision}</span>}
          {entry.who && <span class="muted">{entry.who}</span>}
          <Ago time={entry.time} />
        </p>
        {entry.text && <p class="entry-text">{entry.text}</p>}
        {fields.length > 0 && <Changes fields={fields} />}
        {requests.length > 0 && (
          <details><summary>{plural(requests.length, "request")}</summary>
            <ul class="requests">
              {requests.map((one, number) => (
                <li key={number}><code>{one.method}</code> <code class="url">{one.url}</code> <span class={one.status !== null && one.status >= 400 ? "state-failed" : "muted"}>{one.status ?? ""}</span> {one.seconds !== null && <span class="muted">{Math.round(one.seconds * 1000)} ms</span>}</li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </li>
  );
}

function Heatmap({ timeline }: { timeline: Timeline }) {
  const { heat, bucketSeconds, bucketStart } = timeline;
  const most = Math.max(0, ...heat.flatMap((one) => one.buckets));
  if (most === 0) return <p class="card-line muted">No drift is on record.</p>;
  const start = bucketStart ? Date.parse(bucketStart) : Date.now();
  const at = (bucket: number): string => absolute(new Date(start + bucket * bucketSeconds * 1000).toISOString());
  const columns = heat[0]?.buckets.length ?? 0;
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Drift by field over time">
      <table class="heatmap">
        <caption class="visually-hidden">How often each field drifted, by {duration(bucketSeconds)}</caption>
        <tbody>
          {heat.map((one) => (
            <tr key={one.path}>
              <th scope="row"><Path path={one.path} /></th>
              {one.buckets.map((number, bucket) => (
                <td key={bucket} class={`heat heat-${number === 0 ? 0 : Math.max(1, Math.ceil((number / most) * 4))}`} title={`${at(bucket)}: ${plural(number, "time")}`}>
                  {number > 0 && <span class="visually-hidden">{number}</span>}
                </td>
              ))}
              <td class="heat-sum">{one.buckets.reduce((sum, number) => sum + number, 0)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot><tr><th scope="row"><span class="visually-hidden">From and to</span></th><td colSpan={columns / 2}>{at(0)}</td><td class="heat-end" colSpan={columns / 2}>{at(columns)}</td><td /></tr></tfoot>
      </table>
    </div>
  );
}

/** The values of the other writer: one, or several as texts of JSON. */
function theirsOf(theirs: Json | undefined): (Json | undefined)[] {
  if (!Array.isArray(theirs)) return [theirs];
  return theirs.map((text) => {
    try {
      return typeof text === "string" ? (JSON.parse(text) as Json) : text;
    } catch {
      return text;
    }
  });
}

/** How often a field is put back before the resource counts as contested. */
const CONTESTED_AFTER = 3;

export function contestsTitle(contests: Contest[]): string {
  return contests.some((one) => (one.count ?? 0) >= CONTESTED_AFTER) ? "Contested fields" : "Fields that were put back";
}

export function Contests({ contests }: { contests: Contest[] }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={contestsTitle(contests)}>
      <table class="table contests">
        <thead><tr><th scope="col">Field</th><th scope="col">Ours</th><th scope="col">The other writer's</th><th scope="col" class="right">Times</th><th scope="col">Since</th></tr></thead>
        <tbody>
          {contests.map((one) => (
            <tr key={one.path}><th scope="row"><Path path={one.path} /></th><td><Value value={one.ours} /></td><td>{theirsOf(one.theirs).map((value, number) => <span key={number}>{number > 0 && ", "}<Value value={value} /></span>)}</td><td class="right">{one.count ?? "–"}</td><td><Ago time={one.since} /></td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
