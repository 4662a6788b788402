import { describe, expect, it } from "vitest";
import type { Row } from "../src/api/contract";
import { Fleet, sorted } from "../src/model/fleet";
import { absolute, due, duration, oneLine, rate, relative, splitPath } from "../src/model/format";
import { parseId } from "../src/model/ids";
import { graphHash, overviewHash, parseRoute, resourceHash } from "../src/model/route";
import { toYaml } from "../src/model/yaml";

describe("a rate", () => {
  it("says of little that it is not nothing", () => {
    expect([0, 0.01, 0.049, 0.05, 9.94, 12.4, 1234].map(rate)).toEqual(["0", "<0.1", "<0.1", "0.1", "9.9", "12", "1,234"]);
  });
});

describe("a time", () => {
  const now = Date.parse("2026-03-01T12:00:00Z");

  it("is said as a person would", () => {
    expect(relative("2026-03-01T11:57:00Z", now)).toBe("3 min ago");
    expect(relative("2026-03-01T12:00:20Z", now)).toBe("in 20 s");
    expect(relative("2026-03-01T12:00:00Z", now)).toBe("now");
    expect(relative("no time", now)).toBe("no time");
  });

  it("has an exact form", () => {
    expect(absolute("2026-03-01T12:00:00.5Z")).toBe("2026-03-01 12:00:00 UTC");
    expect([0.2, 59, 60, 7_300, 90_000].map(duration)).toEqual(["0 s", "59 s", "1 min", "2 h", "1 d"]);
  });
});

describe("a value", () => {
  it("keeps its type to be seen", () => {
    expect([null, true, 1, "1", "true", "", "plain", [1]].map((value) => oneLine(value))).toEqual(["null", "true", "1", '"1"', '"true"', '""', "plain", "[1]"]);
  });

  it("has a path that ends in what differs", () => {
    expect(splitPath("spec.settings.tier")).toEqual(["spec.settings.", "tier"]);
    expect(splitPath("spec.rules[0]")).toEqual(["spec.rules", "[0]"]);
    expect(splitPath("name")).toEqual(["", "name"]);
  });

  it("is readable as YAML", () => {
    expect(toYaml({ a: { b: [1, { c: "yes", d: "x: y" }], e: [], f: {} }, g: "two\nlines", h: "" })).toBe(
      ['a:', '  b:', '  - 1', '  - c: "yes"', '    d: "x: y"', '  e: []', '  f: {}', 'g: |-', '  two', '  lines', 'h: ""'].join("\n"),
    );
  });
});

describe("an address", () => {
  it("is what it was made from", () => {
    for (const id of ["A.b.c/n/x", "Secret/n/x", "A.b//cluster-wide", "A.b/n/a b%"])
      expect(parseRoute(resourceHash(id, "fields"))).toEqual({ view: "resource", id, tab: "fields" });
    const unsorted = { key: "default", isDescending: false };
    expect(parseRoute(overviewHash("state:failed & more"))).toEqual({ view: "overview", query: "state:failed & more", sorting: unsorted });
    for (const key of ["name", "drift", "lastStep"] as const)
      for (const isDescending of [true, false])
        expect(parseRoute(overviewHash("x", { key, isDescending }))).toEqual({ view: "overview", query: "x", sorting: { key, isDescending } });
    expect(parseRoute("#/?sort=nonsense")).toEqual({ view: "overview", query: "", sorting: unsorted });
    expect(parseRoute(graphHash({ focus: "A.b/n/x" }))).toMatchObject({ view: "graph" });
    expect(parseRoute("")).toEqual({ view: "overview", query: "", sorting: unsorted });
    expect(parseRoute("#/nonsense").view).toBe("unknown");
  });

  it("says of a time that is waited for when it is due", () => {
    expect(due("2026-01-01T00:00:30Z", Date.parse("2026-01-01T00:00:00Z"))).toBe("in 30 s");
    expect(due("2026-01-01T00:00:30Z", Date.parse("2026-01-01T00:10:00Z"))).toBe("due");
  });

  it("has the parts of an id", () => {
    expect(parseId("A.b.c/n/x")).toEqual({ kind: "A", group: "b.c", namespace: "n", name: "x" });
    expect(parseId("Secret//x")).toEqual({ kind: "Secret", group: "", namespace: "", name: "x" });
  });
});

describe("the rows", () => {
  const row = (name: string, changed: Partial<Row> = {}): Row => ({
    id: `K.g/n/${name}`, kind: "K", group: "g", namespace: "n", name, labels: {}, state: "ready", reason: "", message: "", drifted: false, drift: "", since: null,
    lastStep: null, nextStep: null, generation: 1, observedGeneration: 1, ...changed,
  });

  it("stay in order whatever comes and goes", () => {
    const fleet = new Fleet();
    fleet.add([row("c"), row("a")]);
    fleet.apply({ revision: "2", changed: [row("b"), row("a", { state: "failed" })], deleted: ["K.g/n/c"] });

    expect(fleet.all().map((one) => [one.name, one.state])).toEqual([["a", "failed"], ["b", "ready"]]);
    expect(fleet.apply({ revision: "3", changed: [], deleted: ["K.g/n/none"] })).toBe(false);
  });

  it("have the time of their next step without a change of the order", () => {
    const fleet = new Fleet();
    fleet.add([row("b"), row("a", { nextStep: "2026-01-01T00:00:05Z" }), row("c")]);
    const before = fleet.all();
    fleet.reschedule({ "K.g/n/b": "2026-01-01T00:00:02Z", "K.g/n/gone": "2026-01-01T00:00:01Z" });

    expect(fleet.all()).toBe(before);
    expect(sorted(before, { key: "nextStep", isDescending: false }).map((one) => one.name)).toEqual(["b", "a", "c"]);
  });

  it("are sorted by severity", () => {
    const rows = [row("a"), row("b", { state: "failed" }), row("c", { state: "blocked" })];

    expect(sorted(rows, { key: "state", isDescending: false }).map((one) => one.name)).toEqual(["b", "c", "a"]);
  });
});
