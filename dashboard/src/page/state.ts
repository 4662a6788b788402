/** What the whole page shares: the session, the rows, the summary, the state of the stream, the address. */
import { batch, computed, signal } from "@preact/signals";
import { api, ApiError } from "../api/client";
import type { Id, Row, Session, Summary, Time } from "../api/contract";
import { followStream, type StreamState } from "../api/stream";
import { Fleet, type Sorting, sorted } from "../model/fleet";
import { sentence } from "../model/format";
import { fieldTexts, matches, parseQuery } from "../model/query";
import { parseRoute } from "../model/route";
import { tell } from "./toasts";

const FIRST_PAGE = 500;
const PAGE = 5000;

export type SignIn = "unknown" | "needed" | "done";

export const signIn = signal<SignIn>("unknown");
export const signInError = signal<string | null>(null);
export const session = signal<Session | null>(null);
export const summary = signal<Summary | null>(null);
export const streamState = signal<StreamState>("off");
export const loadError = signal<ApiError | null>(null);
export const planProgress = signal<{ done: number; total: number } | null>(null);
/** Why the server cannot read the store; null while it can. */
export const storeTrouble = signal<string | null>(null);
/** Counts up when rows changed. */
export const revision = signal(0);
/** Counts up when next steps were set anew, and nothing else. */
export const rescheduled = signal(0);
/** The number of rows that the server has, as far as it is known. */
export const expected = signal<number | null>(null);
export const route = signal(parseRoute(location.hash));
/** Ids that the server found, by the text of a `field:` term. */
export const foundByField = signal<ReadonlyMap<string, ReadonlySet<Id>>>(new Map());

export const fleet = new Fleet();
/** When the stream last changed a row, of the page's own clock: the row is marked for a moment. */
export const changedAt = new Map<Id, number>();

export const query = computed(() => (route.value.view === "overview" ? route.value.query : ""));
export const sorting = computed<Sorting>(() => (route.value.view === "overview" ? route.value.sorting : { key: "default", isDescending: false }));

/** The rows that the search leaves, in the order that was asked for. */
export const shownRows = computed<readonly Row[]>(() => {
  revision.value;
  const terms = parseQuery(query.value);
  const all = fleet.all();
  const found = foundByField.value;
  return sorted(terms.length ? all.filter((row) => matches(row, terms, found)) : all, sorting.value);
});

/** When the next step of a resource is due, as of now. */
export function nextStepOf(id: Id): Time | null {
  revision.value;
  rescheduled.value;
  return fleet.get(id)?.nextStep ?? null;
}

/** The row of one resource, as of now. */
export function rowOf(id: Id): Row | undefined {
  revision.value;
  return fleet.get(id);
}

let toldTrouble: string | null = null;
let endStream: (() => void) | null = null;
let loadedRevision: number | string | null = null;

/** Signs in with the token of the address, if there is one, and loads everything. */
export async function start(): Promise<void> {
  const token = takeToken();
  if (token !== null) await tryToken(token);
  await open();
}

/** The one-time token of the address; it does not stay there. */
function takeToken(): string | null {
  const match = /[#&?]token=([^&]+)/.exec(location.hash);
  if (match === null) return null;
  history.replaceState(null, "", `${location.pathname}#/`);
  route.value = parseRoute("#/");
  return decodeURIComponent(match[1] ?? "");
}

export async function tryToken(token: string): Promise<boolean> {
  try {
    await api.login(token);
    signInError.value = null;
    return true;
  } catch (error) {
    signInError.value = sentence(error instanceof ApiError ? error.message : String(error));
    return false;
  }
}

export async function open(): Promise<void> {
  try {
    // Asked first: the browser would report a refused request for the session in its console.
    if (!(await api.signIn()).isSignedIn) {
      signIn.value = "needed";
      return;
    }
    session.value = await api.session();
    signIn.value = "done";
    loadError.value = null;
  } catch (error) {
    return failed(error);
  }
  await load();
  if (session.value.isLive) follow();
}

export async function leave(): Promise<void> {
  endStream?.();
  endStream = null;
  await api.logout().catch(() => undefined);
  batch(() => {
    fleet.clear();
    signInError.value = null;
    session.value = null;
    summary.value = null;
    expected.value = null;
    revision.value += 1;
    signIn.value = "needed";
  });
}

function failed(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) {
    endStream?.();
    endStream = null;
    if (signIn.peek() === "done") signInError.value = "Your session has ended: it is older than twelve hours, its token has expired, or the process was started anew.";
    signIn.value = "needed";
  } else if (error instanceof ApiError) loadError.value = error;
  else throw error;
}

/** Asks for a token where an error says that the session has ended; any other is left to its view. */
export function signedOut(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) failed(error);
}

/** Loads summary and rows; the first rows are there before the others. */
async function load(): Promise<void> {
  try {
    const counted = api.summary().then((found) => (summary.value = found));
    await Promise.all([counted, loadRows()]);
    loadError.value = null;
  } catch (error) {
    failed(error);
  }
}

async function loadRows(): Promise<void> {
  const seen = new Set<Id>();
  let cursor: string | null = null;
  loadedRevision = null;
  do {
    const page = await api.resources(cursor, cursor === null ? FIRST_PAGE : PAGE);
    for (const row of page.resources) seen.add(row.id);
    // What changed while later pages were loaded comes with the stream.
    loadedRevision ??= page.revision;
    batch(() => {
      fleet.add(page.resources);
      expected.value = page.total;
      revision.value += 1;
    });
    cursor = page.next;
  } while (cursor !== null);
  fleet.retain(seen);
  batch(() => {
    expected.value = fleet.size;
    revision.value += 1;
  });
}

function follow(): void {
  endStream?.();
  endStream = followStream(loadedRevision, {
    state: (state) => (streamState.value = state),
    resources: (event) => {
      if (!fleet.apply(event)) return;
      const time = Date.now();
      for (const [id, before] of changedAt) if (time - before > 5_000) changedAt.delete(id);
      for (const row of event.changed) changedAt.set(row.id, time);
      expected.value = Math.max(expected.value ?? 0, fleet.size);
      revision.value += 1;
    },
    nextSteps: (event) => {
      fleet.reschedule(event.times);
      // The order of the list changes only if it is by these times.
      if (sorting.peek().key === "nextStep") revision.value += 1;
      else rescheduled.value += 1;
    },
    summary: (found) => (summary.value = found),
    plan: (progress) => (planProgress.value = progress),
    trouble: (message) => {
      // While it is tried again, the same comes and goes.
      if (message !== null && message !== toldTrouble) tell(sentence(`The store cannot be read, and what is shown may be old: ${message}`), true);
      storeTrouble.value = message;
      toldTrouble = message ?? toldTrouble;
    },
    reset: () => void load(),
    refused: () => void api.session().catch(signedOut),
  });
}

/** Asks the server for the `field:` terms of a text that it was not asked for yet. */
export async function searchFields(text: string, abort: AbortSignal): Promise<void> {
  for (const wanted of fieldTexts(parseQuery(text))) {
    const { ids } = await api.search(wanted, abort);
    foundByField.value = new Map([...foundByField.value, [wanted, new Set(ids)]]);
  }
}

addEventListener("hashchange", () => {
  if (location.hash.includes("token=")) void start();
  else route.value = parseRoute(location.hash);
});
