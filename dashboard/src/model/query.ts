/**
 * What is typed into the search: words, and terms such as `state:failed,blocked kind:SQL ns:prod label:app=web`.
 *
 * A word looks into names, kinds, namespaces, labels and reasons. Terms narrow down; a minus before a term turns it around.
 * `field:` is answered by the server, which looks into specs and statuses.
 */
import type { Id, Row } from "../api/contract";

export const TERM_NAMES = ["state", "kind", "ns", "name", "label", "reason", "field", "is"] as const;
export type TermName = (typeof TERM_NAMES)[number];

const ALIASES: Record<string, TermName> = {
  state: "state", s: "state", kind: "kind", k: "kind", ns: "ns", namespace: "ns", n: "ns", name: "name",
  label: "label", l: "label", reason: "reason", field: "field", f: "field", is: "is",
};

export interface Term {
  name: TermName | "word";
  values: string[];
  isNegated: boolean;
}

const TOKEN = /(-)?(?:([a-z]+):)?(?:"([^"]*)"?|(\S+))/giy;

/** The terms of a text. A name that is none is part of a word: `urn:x` is searched for as it stands. */
export function parseQuery(text: string): Term[] {
  const terms: Term[] = [];
  TOKEN.lastIndex = 0;
  let rest = 0;
  while (rest < text.length) {
    if (/\s/.test(text[rest] ?? "")) {
      rest += 1;
      continue;
    }
    TOKEN.lastIndex = rest;
    const match = TOKEN.exec(text);
    if (match === null) break;
    rest = TOKEN.lastIndex;
    const [whole, minus, key, quoted, bare] = match;
    const name = key === undefined ? undefined : ALIASES[key.toLowerCase()];
    const value = quoted ?? bare ?? "";
    if (name === undefined) {
      terms.push({ name: "word", values: [(key === undefined ? value : whole).toLowerCase()], isNegated: minus !== undefined && key === undefined });
    } else {
      const values = (quoted === undefined ? value.split(",") : [value]).map((one) => one.toLowerCase()).filter(Boolean);
      if (values.length) terms.push({ name, values, isNegated: minus !== undefined });
    }
  }
  return terms;
}

/** The text of terms: `parseQuery` of it gives the same terms. */
export function formatQuery(terms: readonly Term[]): string {
  return terms
    .map(({ name, values, isNegated }) => {
      const value = values.join(",");
      const isQuoted = /[\s"]/.test(value) || (name === "word" && /^-|:/.test(value));
      return `${isNegated ? "-" : ""}${name === "word" ? "" : `${name}:`}${isQuoted ? `"${value}"` : value}`;
    })
    .join(" ");
}

/** The text with a value added to a term, or taken out if it is there. */
export function toggleValue(text: string, name: TermName, value: string): string {
  const wanted = value.toLowerCase();
  const terms = parseQuery(text);
  const found = terms.find((term) => term.name === name && !term.isNegated);
  if (found === undefined) return formatQuery([...terms, { name, values: [wanted], isNegated: false }]);
  const values = found.values.includes(wanted) ? found.values.filter((one) => one !== wanted) : [...found.values, wanted];
  return formatQuery(terms.flatMap((term) => (term !== found ? [term] : values.length ? [{ ...term, values }] : [])));
}

export function hasValue(text: string, name: TermName, value: string): boolean {
  const wanted = value.toLowerCase();
  return parseQuery(text).some((term) => term.name === name && !term.isNegated && term.values.includes(wanted));
}

/** The texts that the server is asked for. */
export function fieldTexts(terms: readonly Term[]): string[] {
  return terms.filter((term) => term.name === "field").flatMap((term) => term.values);
}

const haystacks = new WeakMap<Row, string>();

function haystack(row: Row): string {
  let text = haystacks.get(row);
  if (text === undefined) {
    const labels = Object.entries(row.labels).map(([name, value]) => `${name}=${value}`);
    text = [row.name, row.kind, row.namespace, row.reason, ...labels].join("\n").toLowerCase();
    haystacks.set(row, text);
  }
  return text;
}

/** Whether a row satisfies all terms; `found` has the ids that the server found for a text of `field:`. */
export function matches(row: Row, terms: readonly Term[], found: ReadonlyMap<string, ReadonlySet<Id>>): boolean {
  return terms.every((term) => term.isNegated !== term.values.some((value) => hasTerm(row, term.name, value, found)));
}

function hasTerm(row: Row, name: Term["name"], value: string, found: ReadonlyMap<string, ReadonlySet<Id>>): boolean {
  switch (name) {
    case "word":
      return haystack(row).includes(value);
    case "state":
      return row.state.toLowerCase() === value;
    case "kind":
      return row.kind.toLowerCase().includes(value) || `${row.kind}.${row.group}`.toLowerCase() === value;
    case "ns":
      return row.namespace.toLowerCase() === value;
    case "name":
      return row.name.toLowerCase().includes(value);
    case "reason":
      return row.reason.toLowerCase().includes(value);
    case "is":
      return value === "drifted" ? row.drifted : row.state.toLowerCase() === value;
    case "label":
      return hasLabel(row.labels, value);
    case "field":
      return found.get(value)?.has(row.id) ?? false;
  }
}

function hasLabel(labels: Record<string, string>, wanted: string): boolean {
  const [name = "", value] = wanted.split("=", 2);
  return Object.entries(labels).some(
    ([key, text]) => key.toLowerCase() === name && (value === undefined || text.toLowerCase() === value),
  );
}
