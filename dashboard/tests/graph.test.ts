import { describe, expect, it } from "vitest";
import type { Graph, GraphEdge, GraphNode } from "../src/api/contract";
import { blockedPaths } from "../src/graph/blocked";
import { collapse } from "../src/graph/collapse";
import { flowOf, toneOf } from "../src/graph/edges";
import { layOut, NODE_HEIGHT, NODE_WIDTH } from "../src/graph/layout";
import { nextNode } from "../src/graph/navigation";

function edge(from: string, to: string, changed: Partial<GraphEdge> = {}): GraphEdge {
  return { from, to, type: "reference", path: null, output: null, state: "ready", value: null, isBlocking: false, ...changed };
}

function node(id: string, kind = "A", namespace = "n"): GraphNode {
  return { id, kind, namespace, name: id, state: "ready", exists: true };
}

const chain: Graph = { nodes: [node("a"), node("b", "B"), node("c", "B")], edges: [edge("b", "a"), edge("c", "b")] };

describe("what blocks", () => {
  it("is followed back to where it ends", () => {
    const edges = [edge("c", "b", { isBlocking: true }), edge("b", "a", { isBlocking: true }), edge("d", "a")];

    const found = blockedPaths(edges);

    expect([...found.causes]).toEqual(["a"]);
    expect([...found.nodes].sort()).toEqual(["a", "b", "c"]);
    expect(found.edges.size).toBe(2);
  });

  it("is only what blocks the one that was asked for", () => {
    const edges = [edge("x", "y", { isBlocking: true }), edge("c", "b", { isBlocking: true })];

    expect([...blockedPaths(edges, "c").causes]).toEqual(["b"]);
    expect(blockedPaths(edges, "free").causes.size).toBe(0);
  });

  it("ends in a circle, too", () => {
    expect(blockedPaths([edge("a", "b", { isBlocking: true }), edge("b", "a", { isBlocking: true })]).nodes.size).toBe(2);
  });
});

describe("a collapsed graph", () => {
  it("has one node for each kind, and no edge within one", () => {
    const shown = collapse(chain, "kind", new Set());

    expect(shown.nodes.map((one) => [one.title, one.members.length])).toEqual([["A", 1], ["B", 2]]);
    expect(shown.edges.map((one) => [one.from, one.to, one.edges.length])).toEqual([["kind:B", "kind:A", 1]]);
  });

  it("shows the members of a group that is expanded", () => {
    expect(collapse(chain, "kind", new Set(["kind:B"])).nodes.map((one) => one.id)).toEqual(["b", "c", "kind:A"]);
  });
});

describe("a layout", () => {
  const request = { nodes: ["a", "b", "c", "alone", "d", "e"], edges: [["b", "a"], ["c", "a"], ["e", "d"]] as [string, string][] };
  const found = layOut(request);
  const at = (id: string): [number, number] => [found.nodes[request.nodes.indexOf(id) * 2] ?? NaN, found.nodes[request.nodes.indexOf(id) * 2 + 1] ?? NaN];

  it("puts what is needed to the left", () => {
    expect(at("a")[0]).toBeLessThan(at("b")[0]);
    expect(at("d")[0]).toBeLessThan(at("e")[0]);
  });

  it("lets no two nodes overlap", () => {
    for (const one of request.nodes)
      for (const other of request.nodes)
        if (one < other) {
          const [x, y] = [Math.abs(at(one)[0] - at(other)[0]), Math.abs(at(one)[1] - at(other)[1])];
          expect(x >= NODE_WIDTH || y >= NODE_HEIGHT).toBe(true);
        }
  });

  it("leads every edge from what is needed to the dependant", () => {
    request.edges.forEach(([from, to], index) => {
      const points = found.edges[index] ?? new Float32Array();
      expect(Math.abs((points[0] ?? 0) - at(to)[0])).toBeLessThanOrEqual(NODE_WIDTH / 2 + 1);
      expect(Math.abs((points[points.length - 2] ?? 0) - at(from)[0])).toBeLessThanOrEqual(NODE_WIDTH / 2 + 1);
    });
  });

  it("of parts that are connected alike is alike", () => {
    const many = layOut({ nodes: ["a", "b", "c", "d"], edges: [["b", "a"], ["d", "c"]] });

    expect((many.nodes[2] ?? 0) - (many.nodes[0] ?? 0)).toBe((many.nodes[6] ?? 0) - (many.nodes[4] ?? 0));
  });

  it("is walked along its edges", () => {
    const shown = collapse(chain, "none", new Set());
    const walked = layOut({ nodes: ["a", "b", "c"], edges: [["b", "a"], ["c", "b"]] });

    expect(nextNode(shown, walked, "b", "left")).toBe("a");
    expect(nextNode(shown, walked, "b", "right")).toBe("c");
    expect(nextNode(shown, walked, "a", "left")).toBe(null);
    expect(nextNode(shown, walked, null, "down")).toBe("a");
  });
});

describe("an edge", () => {
  it("says what flows along it", () => {
    expect(flowOf(edge("a", "b", { state: "known", value: "10.0.0.1", type: "value" }))).toBe("10.0.0.1");
    expect(flowOf(edge("a", "b", { state: "unknown", type: "value" }))).toBe("unknown");
    expect(flowOf(edge("a", "b", { type: "order" }))).toBe("after");
  });

  it("has the worst tone of those it stands for", () => {
    expect(toneOf([edge("a", "b"), edge("a", "b", { state: "unknown" })])).toBe("unknown");
    expect(toneOf([edge("a", "b", { state: "unknown" }), edge("a", "b", { isBlocking: true })])).toBe("blocking");
    expect(toneOf([edge("a", "b", { isInCycle: true })])).toBe("blocking");
  });
});
