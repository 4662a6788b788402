/** All rows that the page has loaded, kept in the order of the server, and what the stream changed in them. */
import type { Id, NextStepsEvent, ResourcesEvent, Row } from "../api/contract";
import { severity } from "./states";

export const SORT_KEYS = ["default", "state", "drift", "name", "kind", "namespace", "lastStep", "nextStep"] as const;
export type SortKey = (typeof SORT_KEYS)[number];
export interface Sorting {
  key: SortKey;
  isDescending: boolean;
}

export class Fleet {
  private readonly rows = new Map<Id, Row>();
  private order: Row[] | null = null;

  get size(): number {
    return this.rows.size;
  }

  get(id: Id): Row | undefined {
    return this.rows.get(id);
  }

  add(rows: readonly Row[]): void {
    for (const row of rows) this.rows.set(row.id, row);
    this.order = null;
  }

  clear(): void {
    this.rows.clear();
    this.order = null;
  }

  /** Takes over a change; false if it changes nothing that is loaded. */
  apply(event: ResourcesEvent): boolean {
    let isChanged = event.changed.length > 0;
    for (const row of event.changed) this.rows.set(row.id, row);
    for (const id of event.deleted) isChanged = this.rows.delete(id) || isChanged;
    if (isChanged) this.order = null;
    return isChanged;
  }

  /** Takes over when the next steps are due. Rows stay the same objects, in their order. */
  reschedule(times: NextStepsEvent["times"]): void {
    for (const [id, time] of Object.entries(times)) {
      const row = this.rows.get(id);
      if (row !== undefined) row.nextStep = time;
    }
  }

  /** Leaves only these: the others went while the page was not connected. */
  retain(ids: ReadonlySet<Id>): void {
    for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id);
    this.order = null;
  }

  /** All rows by kind, namespace and name. */
  all(): readonly Row[] {
    this.order ??= [...this.rows.values()].sort(byName);
    return this.order;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function byName(a: Row, b: Row): number {
  return compare(a.kind, b.kind) || compare(a.group, b.group) || compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

const DRIFTS: Row["drift"][] = ["contested", "withheld", "corrected", ""];
const COMPARE: Record<Exclude<SortKey, "default">, (a: Row, b: Row) => number> = {
  state: (a, b) => severity(a.state) - severity(b.state),
  // What differs now comes first, and what was corrected next.
  drift: (a, b) => DRIFTS.indexOf(a.drift) - DRIFTS.indexOf(b.drift),
  name: (a, b) => compare(a.name, b.name),
  kind: byName,
  namespace: (a, b) => compare(a.namespace, b.namespace),
  lastStep: (a, b) => compare(a.lastStep ?? "", b.lastStep ?? ""),
  // What has none comes after all times.
  nextStep: (a, b) => compare(a.nextStep ?? "~", b.nextStep ?? "~"),
};

/** Rows in another order; among equals the order stays. */
export function sorted(rows: readonly Row[], sorting: Sorting): readonly Row[] {
  if (sorting.key === "default") return rows;
  const by = COMPARE[sorting.key];
  const direction = sorting.isDescending ? -1 : 1;
  return rows.toSorted((a, b) => direction * by(a, b));
}
