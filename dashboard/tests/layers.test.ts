import { describe, expect, it } from "vitest";
import { layOutLayers } from "../src/graph/layers";

const SIZES = { nodeWidth: 100, nodeHeight: 40, gap: 20, layerGap: 50 };
type Edge = [left: number, right: number];

/** Numbers that are the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16807) % 2147483647) / 2147483647;
}

function randomGraph(seed: number): { count: number; edges: Edge[] } {
  const random = numbers(seed);
  const count = 1 + Math.floor(random() * 60);
  const edges = Array.from({ length: Math.floor(random() * 3 * count) }, (): Edge => [Math.floor(random() * count), Math.floor(random() * count)]);
  return { count, edges };
}

const graphs = Array.from({ length: 60 }, (_, seed) => randomGraph(seed + 1));

/** The same edges, all of them from a smaller number to a larger one. */
function acyclic(edges: readonly Edge[]): Edge[] {
  return edges.filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
}

describe("layers of any graph", () => {
  it("have a place for each node, and no two overlap", () => {
    for (const { count, edges } of graphs) {
      const { nodes, width, height } = layOutLayers(count, edges, SIZES);
      const at = (node: number): [number, number] => [nodes[node * 2] ?? NaN, nodes[node * 2 + 1] ?? NaN];
      for (let one = 0; one < count; one += 1) {
        const [x, y] = at(one);
        expect(x >= 50 && x <= width - 50 + 0.1 && y >= 19.9 && y <= height - 19.9).toBe(true);
        for (let other = 0; other < one; other += 1) {
          const [dx, dy] = [Math.abs(x - at(other)[0]), Math.abs(y - at(other)[1])];
          expect(dx >= 100 || dy >= 59.9).toBe(true);
        }
      }
    }
  });

  it("lead every edge from its left node to its right one", () => {
    for (const { count, edges } of graphs) {
      const found = layOutLayers(count, edges, SIZES);
      edges.forEach(([left, right], edge) => {
        const points = found.edges[edge] ?? [];
        if (left === right) return;
        expect([points[1], points.at(-1)]).toEqual([found.nodes[left * 2 + 1], found.nodes[right * 2 + 1]]);
        expect(Math.abs((points[0] ?? 0) - (found.nodes[left * 2] ?? 0))).toBe(50);
        expect(Math.abs((points.at(-2) ?? 0) - (found.nodes[right * 2] ?? 0))).toBe(50);
      });
    }
  });

  it("have what is needed on the left, unless there is a cycle", () => {
    for (const { count, edges } of graphs) {
      const known = acyclic(edges);
      const { nodes } = layOutLayers(count, known, SIZES);
      for (const [left, right] of known) expect(nodes[left * 2] ?? NaN).toBeLessThan(nodes[right * 2] ?? NaN);
    }
  });

  it("are about as wide as they are high, even for one node with 2,000 dependants", () => {
    const star = Array.from({ length: 2000 }, (_, node): Edge => [0, node + 1]);
    const { width, height } = layOutLayers(2001, star, SIZES);

    expect(width / height).toBeGreaterThan(0.5);
    expect(width / height).toBeLessThan(4);
  });
});
