/** Keys that work everywhere on the page, unless text is being typed. */
import { signal } from "@preact/signals";
import { graphHash, overviewHash } from "../model/route";
import { exportView } from "./export";
import { session } from "./state";
import { hasShortcuts, toggleTheme } from "./settings";

export const isHelpOpen = signal(false);

export const KEYS: [keys: string[], meaning: string][] = [
  [["/"], "Search resources"],
  [["?"], "Show or hide this list"],
  [["g", "o"], "Overview"],
  [["g", "g"], "Graph"],
  [["g", "p"], "Plan"],
  [["g", "u"], "Upgrade report"],
  [["↑", "↓", "j", "k"], "Previous or next row"],
  [["Page Up", "Page Down", "Home", "End"], "Move through the list in large steps"],
  [["Enter"], "Open what is selected"],
  [["←", "→", "↑", "↓"], "In the graph: to what is needed, to a dependant, within a layer"],
  [["+", "−", "0"], "In the graph: zoom in, zoom out, fit"],
  [["f"], "In the graph: focus on the selected resource"],
  [["t"], "Light or dark"],
  [["x"], "Export this view as one HTML file"],
  [["Esc"], "Close a dialog, leave the search"],
];

let isAfterG = false;
let timer: ReturnType<typeof setTimeout> | undefined;

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function go(hash: string): void {
  location.hash = hash;
}

function second(key: string): void {
  if (key === "o") go(overviewHash());
  else if (key === "g") go(graphHash());
  else if (key === "p" && session.peek()?.hasPlan) go("#/plan");
  else if (key === "u" && session.peek()?.hasUpgradeReport) go("#/upgrade");
}

const COMMANDS: Record<string, () => void> = {
  "/": () => focusSearch(),
  "?": () => (isHelpOpen.value = !isHelpOpen.value),
  t: toggleTheme,
  x: () => void exportView(),
  g: () => {
    isAfterG = true;
    timer = setTimeout(() => (isAfterG = false), 1500);
  },
};

function focusSearch(): void {
  const found = document.querySelector<HTMLInputElement>("[data-search]");
  if (found) return found.focus();
  go(overviewHash());
  requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector<HTMLInputElement>("[data-search]")?.focus()));
}

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") && event.key !== "?") return;
  if (!hasShortcuts.value && event.key !== "?") return;
  if (isAfterG) {
    isAfterG = false;
    clearTimeout(timer);
    event.preventDefault();
    return second(event.key);
  }
  const command = COMMANDS[event.key];
  if (command === undefined) return;
  event.preventDefault();
  command();
}
