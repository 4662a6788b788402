/** Moving through a graph with the keys: along edges, and within a layer. */
import type { Id } from "../api/contract";
import type { ShownGraph } from "./collapse";
import type { Layout } from "./layout";

export type Direction = "left" | "right" | "up" | "down";

/** The next node from `current`; the first one if there is none. Left is what is needed, right what needs it. */
export function nextNode(graph: ShownGraph, layout: Layout, current: Id | null, direction: Direction): Id | null {
  const at = graph.nodes.findIndex((node) => node.id === current);
  if (at < 0) return graph.nodes[0]?.id ?? null;
  const x = (index: number): number => layout.nodes[index * 2] ?? 0;
  const y = (index: number): number => layout.nodes[index * 2 + 1] ?? 0;
  const indexOf = new Map(graph.nodes.map((node, index) => [node.id, index]));
  let candidates: number[];
  if (direction === "left" || direction === "right") {
    const [mine, other] = direction === "left" ? (["from", "to"] as const) : (["to", "from"] as const);
    candidates = graph.edges.filter((edge) => edge[mine] === current).map((edge) => indexOf.get(edge[other]) ?? -1).filter((index) => index >= 0);
  } else {
    const sign = direction === "down" ? 1 : -1;
    const layer = graph.nodes.map((_, index) => index).filter((index) => Math.abs(x(index) - x(at)) < 2);
    candidates = layer.filter((index) => (y(index) - y(at)) * sign > 0);
  }
  const distance = (index: number): number => Math.abs(y(index) - y(at));
  const best = candidates.reduce((found, index) => (found < 0 || distance(index) < distance(found) ? index : found), -1);
  return best < 0 ? null : (graph.nodes[best]?.id ?? null);
}

/** The node at a point of the drawing. */
export function nodeAt(graph: ShownGraph, layout: Layout, x: number, y: number, width: number, height: number): Id | null {
  for (let index = graph.nodes.length - 1; index >= 0; index -= 1) {
    const dx = Math.abs((layout.nodes[index * 2] ?? 0) - x);
    const dy = Math.abs((layout.nodes[index * 2 + 1] ?? 0) - y);
    if (dx <= width / 2 && dy <= height / 2) return graph.nodes[index]?.id ?? null;
  }
  return null;
}
