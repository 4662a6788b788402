/** Small drawings, of 16 by 16. They say nothing that the text beside them does not. */
import type { State } from "../api/contract";

const PATHS = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4.5 4.5l7 7m0-7l-7 7",
  swap: "M3 6h9l-2.5-2.5M13 10H4l2.5 2.5",
  notEqual: "M3.5 6.2h9m-9 3.6h9M10 3L6 13",
  stop: "M8 2.8a5.2 5.2 0 110 10.4A5.2 5.2 0 018 2.8zM4.5 4.5l7 7",
  clock: "M8 2.8a5.2 5.2 0 110 10.4A5.2 5.2 0 018 2.8zM8 5v3.2l2 1.3",
  arrows: "M12.8 8a4.8 4.8 0 01-8.6 2.9M3.2 8a4.8 4.8 0 018.6-2.9M12 2.6v2.7H9.3M4 13.4v-2.7h2.7",
  eye: "M1.8 8S4 4 8 4s6.2 4 6.2 4S12 12 8 12 1.8 8 1.8 8zM8 6.3a1.7 1.7 0 110 3.4 1.7 1.7 0 010-3.4z",
  pause: "M5.5 4v8m5-8v8",
  play: "M5.5 3.8v8.4L12 8z",
  trash: "M3 4.5h10M6.2 4.3V3h3.6v1.3M4.5 4.8l.6 8h5.8l.6-8",
  question: "M6 6.1a2 2 0 113 1.7c-.7.4-1 .8-1 1.6M8 11.9v.1",
  search: "M7 2.8a4.2 4.2 0 110 8.4 4.2 4.2 0 010-8.4zM10.2 10.2l3.2 3.2",
  sun: "M8 5.4a2.6 2.6 0 110 5.2 2.6 2.6 0 010-5.2zM8 1.8v1.4m0 9.6v1.4M1.8 8h1.4m9.6 0h1.4M3.6 3.6l1 1m6.8 6.8l1 1m0-8.8l-1 1m-6.8 6.8l-1 1",
  moon: "M13 9.4A5.4 5.4 0 016.6 3a5.4 5.4 0 106.4 6.4z",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.1m2.3 0h.1m2.3 0h.1m2.2 0h.1M5 9.3h6",
  download: "M8 2.8v7m0 0L5.2 7M8 9.8L10.8 7M3 13h10",
  print: "M4.5 6V2.8h7V6M4.5 11H3V6h10v5h-1.5M4.5 9.2h7v4h-7z",
  list: "M5.5 4.2H13M5.5 8H13m-7.5 3.8H13M3 4.2h.1M3 8h.1M3 11.8h.1",
  graph: "M3.6 2.6h3.2v3.2H3.6zM9.4 10.2h3.2v3.2H9.4zM9.4 2.6h3.2v3.2H9.4zM6.8 4.2h2.6M5.2 5.8v6h4.2",
  plan: "M4 2.5h8v11H4zM6.2 5.5h3.6M6.2 8h3.6m-3.6 2.5h2",
  upgrade: "M8 12.5v-9m0 0L4.5 7M8 3.5L11.5 7",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  fit: "M3 6V3h3m4 0h3v3m0 4v3h-3m-4 0H3v-3",
  target: "M8 4a4 4 0 110 8 4 4 0 010-8zM8 1.8V5m0 6v3.2M1.8 8H5m6 0h3.2",
  out: "M9.5 4.5L13 8l-3.5 3.5M13 8H6M6.5 3H3v10h3.5",
  pencil: "M3 13l.6-2.8 7-7 2.2 2.2-7 7z",
  bolt: "M8.8 2L4 9h3.4L7 14l5-7.2H8.5z",
  chevron: "M6 4l4 4-4 4",
} as const;

export type IconName = keyof typeof PATHS;

export const STATE_ICONS: Record<State, IconName> = {
  ready: "check", failed: "cross", contested: "swap", notConverged: "notEqual", blocked: "stop", waiting: "clock",
  progressing: "arrows", observed: "eye", paused: "pause", deleting: "trash", unknown: "question",
};

export function iconPath(name: IconName): string {
  return PATHS[name];
}

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
