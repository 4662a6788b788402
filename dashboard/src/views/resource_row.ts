/** A row of the list of resources, as elements that are filled again and again. */
import type { Row } from "../api/contract";
import { STATE_ICONS, iconPath } from "../components/icon";
import type { RowPainter } from "../components/list_window";
import { absolute, due, relative } from "../model/format";
import { resourceHash } from "../model/route";
import { DRIFT_MEANINGS, driftName, STATE_MEANINGS, stateName } from "../model/states";
import { now } from "../page/clock";
import { changedAt } from "../page/state";

const SVG = "http://www.w3.org/2000/svg";
const MARKED = 2500;

interface Parts {
  /** What the element shows, and as of when. */
  row: Row | null;
  time: number;
  state: HTMLElement;
  icon: SVGPathElement;
  stateText: Text;
  drift: HTMLElement;
  link: HTMLAnchorElement;
  name: Text;
  kind: HTMLElement;
  kindText: Text;
  namespace: Text;
  message: HTMLElement;
  messageText: Text;
  last: HTMLElement;
  lastText: Text;
  next: HTMLElement;
  nextText: Text;
  /** The time that it shows. */
  nextStep: string | null;
}

const known = new WeakMap<HTMLElement, Parts>();

function make(): HTMLElement {
  const element = document.createElement("div");
  element.className = "list-row";
  element.role = "row";
  const cell = (name: string): HTMLElement => {
    const made = document.createElement("span");
    made.className = `cell-${name}`;
    made.role = "gridcell";
    element.append(made);
    return made;
  };
  const [state, drift, name, kind, namespace, message, last, next] = (["state", "drift", "name", "kind", "namespace", "message", "time", "next"] as const).map(cell) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];
  const badge = document.createElement("span");
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of [["class", "icon"], ["viewBox", "0 0 16 16"], ["aria-hidden", "true"]] as const) svg.setAttribute(key, value);
  const icon = document.createElementNS(SVG, "path");
  svg.append(icon);
  badge.append(svg);
  state.append(badge);
  const link = document.createElement("a");
  link.tabIndex = -1;
  name.append(link);
  const text = (parent: Node): Text => parent.appendChild(document.createTextNode(""));
  known.set(element, {
    row: null, time: 0, state: badge, icon, stateText: text(badge), drift, link, name: text(link), kind, kindText: text(kind), namespace: text(namespace),
    message, messageText: text(message), last, lastText: text(last), next, nextText: text(next), nextStep: null,
  });
  return element;
}

function put(text: Text, value: string): void {
  if (text.data !== value) text.data = value;
}

function fill(element: HTMLElement, row: Row): void {
  const parts = known.get(element);
  if (parts === undefined) return;
  const changed = changedAt.get(row.id);
  element.classList.toggle("is-changed", changed !== undefined && Date.now() - changed < MARKED);
  if (parts.row !== row) fillRow(element, parts, row);
  else if (parts.time === now.peek() && parts.nextStep === row.nextStep) return;
  const time = Math.max(now.peek(), Date.now() - 1000);
  parts.row = row;
  parts.time = now.peek();
  put(parts.lastText, row.lastStep ? relative(row.lastStep, time) : "–");
  if (parts.nextStep !== row.nextStep && parts.next.title) parts.next.title = "";
  parts.nextStep = row.nextStep;
  put(parts.nextText, row.nextStep ? due(row.nextStep, time) : "–");
}

function fillRow(element: HTMLElement, parts: Parts, row: Row): void {
  const before = parts.row;
  if (before?.state !== row.state) {
    parts.state.className = `state state-${row.state}`;
    parts.icon.setAttribute("d", iconPath(STATE_ICONS[row.state] ?? "question"));
    put(parts.stateText, stateName(row.state));
  }
  if (before?.drift !== row.drift) {
    parts.drift.textContent = driftName(row);
    element.classList.toggle("is-drifted", row.drifted);
    element.classList.toggle("is-corrected", row.drift === "corrected");
  }
  parts.link.href = resourceHash(row.id);
  put(parts.name, row.name);
  put(parts.kindText, row.kind);
  if (before?.namespace !== row.namespace) parts.kind.dataset["namespace"] = row.namespace;
  put(parts.namespace, row.namespace);
  put(parts.messageText, row.state === "ready" && row.reason === "UpToDate" ? "" : row.message || row.reason);
  // Those of another row.
  for (const part of [parts.state, parts.drift, parts.link, parts.kind, parts.message, parts.last, parts.next]) if (part.title) part.title = "";
}

function explain(element: HTMLElement, row: Row): void {
  const parts = known.get(element);
  if (parts === undefined) return;
  parts.state.title = STATE_MEANINGS[row.state] ?? "";
  parts.drift.title = DRIFT_MEANINGS[row.drift];
  parts.link.title = row.name;
  parts.kind.title = `${row.kind}.${row.group}`;
  parts.message.title = row.message;
  parts.last.title = row.lastStep ? absolute(row.lastStep) : "";
  parts.next.title = row.nextStep ? absolute(row.nextStep) : "No process says when it takes the next step";
}

export const resourceRow: RowPainter<Row> = { make, fill, explain };
