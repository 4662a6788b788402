/** Why something is blocked: the edges that block, followed back to where they end. */
import type { GraphEdge, Id } from "../api/contract";

export interface BlockedPaths {
  /** Where the paths end: what has to change first. */
  causes: Set<Id>;
  /** All that is blocked on the way, with the causes. */
  nodes: Set<Id>;
  edges: Set<GraphEdge>;
}

/** The blocking paths from `start`, or from everything that is blocked. */
export function blockedPaths(edges: readonly GraphEdge[], start?: Id): BlockedPaths {
  const blocking = new Map<Id, GraphEdge[]>();
  for (const edge of edges) if (edge.isBlocking) (blocking.get(edge.from) ?? setIn(blocking, edge.from)).push(edge);
  const found: BlockedPaths = { causes: new Set(), nodes: new Set(), edges: new Set() };
  const open = start === undefined ? [...blocking.keys()] : [start];
  const seen = new Set<Id>(open);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const next = blocking.get(id);
    if (next === undefined) {
      if (id !== start) found.causes.add(id);
      continue;
    }
    found.nodes.add(id);
    for (const edge of next) {
      found.edges.add(edge);
      found.nodes.add(edge.to);
      if (!seen.has(edge.to)) {
        seen.add(edge.to);
        open.push(edge.to);
      }
    }
  }
  return found;
}

function setIn(map: Map<Id, GraphEdge[]>, id: Id): GraphEdge[] {
  const edges: GraphEdge[] = [];
  map.set(id, edges);
  return edges;
}
