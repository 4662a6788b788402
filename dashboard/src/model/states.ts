/** States in words, in the order of their severity. */
import type { Row, State } from "../api/contract";
import { STATES } from "../api/contract";

export const STATE_NAMES: Record<State, string> = {
  failed: "Failed",
  contested: "Contested",
  notConverged: "Not converged",
  blocked: "Blocked",
  deleting: "Deleting",
  waiting: "Waiting",
  progressing: "Progressing",
  unknown: "Unknown",
  paused: "Paused",
  observed: "Observed",
  ready: "Ready",
};

/** What a state means, for its tooltip. */
export const STATE_MEANINGS: Record<State, string> = {
  failed: "The last step failed, and is tried again or waits for its author",
  contested: "Another writer keeps changing fields that are reverted",
  notConverged: "The service accepted a write, and fields still differ",
  blocked: "Something that it needs is not there",
  deleting: "It is being deleted",
  waiting: "It waits for an operation or a condition",
  progressing: "A step is under way, or is due",
  unknown: "No step has been taken yet",
  paused: "Its author paused it: nothing is read or written",
  observed: "It is read, and never written",
  ready: "It is as declared",
};

/** The drift of a row in one word; drift that was corrected is over. */
export function driftName({ drifted, drift }: Row): string {
  return drift === "corrected" ? "corrected" : drifted ? "drifted" : "";
}

export const DRIFT_MEANINGS: Record<Row["drift"], string> = {
  "": "",
  corrected: "Another writer had changed the live object, and the last step that wrote put it back",
  withheld: "The live object differs, and is not corrected: it is only observed, or the correction waits",
  contested: "Another writer keeps changing the live object",
};

const SEVERITY = new Map<string, number>(STATES.map((state, index) => [state, index]));

/** Lower is more severe. A state of a newer server comes last. */
export function severity(state: State): number {
  return SEVERITY.get(state) ?? STATES.length;
}

export function stateName(state: State): string {
  return STATE_NAMES[state] ?? state;
}

export function worst(states: Iterable<State>): State {
  let found: State = "ready";
  for (const state of states) if (severity(state) < severity(found)) found = state;
  return found;
}
