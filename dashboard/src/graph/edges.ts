/** What an edge says: the value that flows along it, and whether it is there. */
import type { GraphEdge } from "../api/contract";
import { oneLine } from "../model/format";
import type { ShownEdge } from "./collapse";

export type EdgeTone = "plain" | "unknown" | "null" | "missing" | "blocking";

const MOST_CHARACTERS = 26;

export function toneOf(edges: readonly GraphEdge[]): EdgeTone {
  if (edges.some((edge) => edge.isBlocking || edge.isInCycle)) return "blocking";
  if (edges.some((edge) => edge.state === "missing")) return "missing";
  if (edges.some((edge) => edge.state === "unknown" || edge.state === "notReady")) return "unknown";
  if (edges.every((edge) => edge.state === "null")) return "null";
  return "plain";
}

/** The text beside an edge. */
export function labelOf(edge: ShownEdge): string {
  const [first] = edge.edges;
  if (first === undefined) return "";
  if (edge.edges.length > 1) return `${edge.edges.length} edges`;
  const text = flowOf(first);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}

/** What flows along one edge, in words. */
export function flowOf(edge: GraphEdge): string {
  if (edge.state === "known" && edge.value !== null) return oneLine(edge.value);
  if (edge.type === "order") return edge.state === "notReady" ? "after, not ready" : "after";
  if (edge.type === "owner") return "owns";
  return edge.state === "notReady" ? "not ready" : edge.state;
}
