import { describe, expect, it } from "vitest";
import type { Row } from "../src/api/contract";
import { fieldTexts, formatQuery, hasValue, matches, parseQuery, toggleValue } from "../src/model/query";

function row(changed: Partial<Row>): Row {
  return {
    id: "StorageBucket.storage/default/logs", kind: "StorageBucket", group: "storage", namespace: "default", name: "logs", labels: {}, state: "ready",
    reason: "UpToDate", message: "", drifted: false, drift: "", since: null, lastStep: null, nextStep: null, generation: 1, observedGeneration: 1, ...changed,
  };
}

const finds = (text: string, changed: Partial<Row>, found = new Map<string, ReadonlySet<string>>()): boolean => matches(row(changed), parseQuery(text), found);

describe("a search", () => {
  it("looks for words in names, kinds, namespaces, labels and reasons", () => {
    expect(finds("LOG", {})).toBe(true);
    expect(finds("bucket", {})).toBe(true);
    expect(finds("app=web", { labels: { app: "web" } })).toBe(true);
    expect(finds("orders", {})).toBe(false);
  });

  it("takes all terms together, and the values of a term as alternatives", () => {
    expect(finds("state:failed,ready ns:default", {})).toBe(true);
    expect(finds("state:failed ns:default", {})).toBe(false);
  });

  it("turns a term around by a minus", () => {
    expect(finds("-state:ready", {})).toBe(false);
    expect(finds("-state:ready", { state: "failed" })).toBe(true);
  });

  it("finds labels by name, and by name and value", () => {
    expect(finds("label:app", { labels: { app: "web" } })).toBe(true);
    expect(finds("label:app=api", { labels: { app: "web" } })).toBe(false);
  });

  it("leaves fields to the server", () => {
    expect(fieldTexts(parseQuery("field:tier logs"))).toEqual(["tier"]);
    expect(finds("field:tier", {}, new Map([["tier", new Set([row({}).id])]]))).toBe(true);
    expect(finds("field:tier", {})).toBe(false);
  });

  it("searches for what looks like a term and is none as it stands", () => {
    expect(parseQuery("urn:x")).toEqual([{ name: "word", values: ["urn:x"], isNegated: false }]);
  });

  it("is the same after it is written and read again", () => {
    for (const text of ["", "logs", "state:failed,blocked -kind:sql", 'name:"two words"', "a b c", '"urn:x" label:a=b'])
      expect(parseQuery(formatQuery(parseQuery(text)))).toEqual(parseQuery(text));
  });

  it("gets and loses a value by a filter", () => {
    const once = toggleValue("logs", "state", "failed");
    const twice = toggleValue(once, "state", "blocked");
    expect(twice).toBe("logs state:failed,blocked");
    expect(hasValue(twice, "state", "blocked")).toBe(true);
    expect(toggleValue(toggleValue(twice, "state", "failed"), "state", "blocked")).toBe("logs");
  });
});
