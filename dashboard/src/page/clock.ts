/** The time that relative times are relative to: it moves every few seconds, and not while the page is hidden. */
import { signal } from "@preact/signals";

export const now = signal(Date.now());
const INTERVAL = 5_000;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, INTERVAL);
addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = Date.now();
});
