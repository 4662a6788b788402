/** Times, numbers and values as text. */
import type { Json } from "../api/contract";

const STEPS: [seconds: number, unit: string][] = [
  [86_400 * 365, "y"], [86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"],
];

/** A length of time in its largest unit: `3 min`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  for (const [length, unit] of STEPS) if (whole >= length) return `${Math.floor(whole / length)} ${unit}`;
  return "0 s";
}

/** `3 min ago`, `in 20 s`, `now`. */
export function relative(time: string, now: number): string {
  const seconds = (now - Date.parse(time)) / 1000;
  if (Number.isNaN(seconds)) return time;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

/** `in 20 s`, or `due`: of a time that something waits for. */
export function due(time: string, now: number): string {
  return Date.parse(time) - now < 1000 ? "due" : relative(time, now);
}

/** `2026-03-01 12:30:05 UTC`: the same for every reader of a report. */
export function absolute(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

export function rate(value: number): string {
  return value === 0 ? "0" : value < 0.05 ? "<0.1" : value < 10 ? value.toFixed(1) : count(Math.round(value));
}

/** A value on one line, as JSON; a text without quotes unless they tell it from another type. */
export function oneLine(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value === "string") return /^$|^(true|false|null|-?\d+(\.\d+)?([eE][+-]?\d+)?)$|^\s|\s$/.test(value) ? JSON.stringify(value) : value;
  // With a space after each comma and colon, where a line may break; all line feeds are those of the indentation.
  return JSON.stringify(value, null, 1).replace(/([[{]?)\n\s*([\]}]?)/g, (_, open: string, close: string) => open + close || " ");
}

/** An error message as a sentence of its own. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `spec.settings.tier` as `spec.settings.` and `tier`: the last part is what differs from row to row. */
export function splitPath(path: string): [before: string, last: string] {
  const cut = Math.max(path.lastIndexOf("."), path.lastIndexOf("["));
  return cut <= 0 ? ["", path] : path[cut] === "[" ? [path.slice(0, cut), path.slice(cut)] : [path.slice(0, cut + 1), path.slice(cut + 1)];
}
