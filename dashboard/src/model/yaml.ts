/** JSON as YAML, to be read: what cannot be mistaken for another type is not quoted. */
import type { Json } from "../api/contract";

const PLAIN = /^[A-Za-z_/$][\w ./$@+()-]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|~)$/i;

export function toYaml(value: Json): string {
  return lines(value).join("\n");
}

function lines(value: Json): string[] {
  if (Array.isArray(value)) return value.length ? value.flatMap((one) => hang("- ", lines(one))) : ["[]"];
  if (value !== null && typeof value === "object") {
    const pairs = Object.entries(value);
    return pairs.length ? pairs.flatMap(([name, one]) => pair(text(name), one)) : ["{}"];
  }
  return [typeof value === "string" ? text(value) : JSON.stringify(value)];
}

function pair(name: string, value: Json): string[] {
  if (typeof value === "string" && /\n/.test(value) && !/[^\S\n]\n|[\0-\x08\x0b-\x1f]|^\s/.test(value))
    return [`${name}: |${value.endsWith("\n") ? "" : "-"}`, ...value.replace(/\n$/, "").split("\n").map((line) => `  ${line}`)];
  const below = lines(value);
  const isBlock = value !== null && typeof value === "object" && Object.keys(value).length > 0;
  if (!isBlock) return [`${name}: ${below[0] ?? ""}`];
  return [`${name}:`, ...(Array.isArray(value) ? below : below.map((line) => `  ${line}`))];
}

function hang(mark: string, below: string[]): string[] {
  return below.map((line, index) => (index === 0 ? mark : "  ") + line);
}

function text(value: string): string {
  return PLAIN.test(value) && !WORDS.test(value) && !value.endsWith(" ") ? value : JSON.stringify(value);
}
