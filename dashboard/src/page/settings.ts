/** What a reader chose, kept in this browser. */
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

function read(name: string): string | null {
  try {
    return localStorage.getItem(`setpoint.${name}`);
  } catch {
    return null;
  }
}

function write(name: string, value: string): void {
  try {
    localStorage.setItem(`setpoint.${name}`, value);
  } catch {
    // Storage is blocked: the choice holds until the page is closed.
  }
}

const stored = read("theme");
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "system");
export const hasShortcuts = signal(read("shortcuts") !== "off");
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
/** Whether the page is dark now; what is drawn on a canvas depends on it. */
export const isDark = signal(darkNow());

function darkNow(): boolean {
  return theme.peek() === "dark" || (theme.peek() === "system" && darkSystem.matches);
}

export function setTheme(value: Theme): void {
  theme.value = value;
  if (value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
  write("theme", value);
  isDark.value = darkNow();
}

export function toggleTheme(): void {
  setTheme(isDark.value ? "light" : "dark");
}

export function setShortcuts(isOn: boolean): void {
  hasShortcuts.value = isOn;
  write("shortcuts", isOn ? "on" : "off");
}

darkSystem.addEventListener("change", () => (isDark.value = darkNow()));
