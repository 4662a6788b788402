/**
 * Where nodes and edges are drawn: layers from left to right, what is needed on the left.
 *
 * Parts of the graph that nothing connects are laid out one by one and packed into rows: the cost of layers grows faster than
 * the number of nodes.
 */
import { Graph as LayerGraph, layout as layers } from "@dagrejs/dagre";
import { layOutLayers } from "./layers";

export const NODE_WIDTH = 184;
export const NODE_HEIGHT = 44;
const GAP = 22;
// An edge with its label, and some of the line before and after it.
const LAYER_GAP = 136;
const PART_GAP = 48;
// Above so many edges dagre takes seconds.
const LARGE_FROM = 150;
const SMALL = 60;

export interface LayoutRequest {
  nodes: string[];
  edges: [from: string, to: string][];
}

export interface Layout {
  width: number;
  height: number;
  /** x and y of the centre of each node, in the order of the request. */
  nodes: Float32Array;
  /** The points of each edge, in the order of the request, from what is needed to the dependant. */
  edges: Float32Array[];
}

export function layOut(request: LayoutRequest): Layout {
  const index = new Map(request.nodes.map((id, position) => [id, position]));
  const nodes = new Float32Array(request.nodes.length * 2);
  const edges: Float32Array[] = request.edges.map(() => new Float32Array());
  const known = new Map<string, PlacedPart>();
  const parts = connectedParts(request, index).map((part) => layOutOnce(request, part, known));
  const { width, height, places } = pack(parts);
  parts.forEach((part, number) => {
    const [left, top] = places[number] ?? [0, 0];
    for (const { position, x, y } of part.nodes) {
      nodes[position * 2] = left + x;
      nodes[position * 2 + 1] = top + y;
    }
    for (const { position, points } of part.edges) {
      edges[position] = Float32Array.from(points, (value, at) => value + (at % 2 ? top : left));
    }
  });
  return { width, height, nodes, edges };
}

interface Part {
  nodes: number[];
  edges: number[];
}

interface PlacedPart {
  width: number;
  height: number;
  nodes: { position: number; x: number; y: number }[];
  edges: { position: number; points: number[] }[];
}

/** Connected parts, the largest first; all nodes without an edge are one part. */
function connectedParts(request: LayoutRequest, index: ReadonlyMap<string, number>): Part[] {
  const root = request.nodes.map((_, position) => position);
  const find = (at: number): number => {
    let top = at;
    while (root[top] !== top) top = root[top] = root[root[top] ?? top] ?? top;
    return top;
  };
  const ends = request.edges.map(([from, to]) => [index.get(from) ?? -1, index.get(to) ?? -1] as const);
  for (const [from, to] of ends) if (from >= 0 && to >= 0) root[find(from)] = find(to);
  const parts = new Map<number, Part>();
  const at = (position: number): Part => {
    const top = find(position);
    let part = parts.get(top);
    if (part === undefined) parts.set(top, (part = { nodes: [], edges: [] }));
    return part;
  };
  request.nodes.forEach((_, position) => at(position).nodes.push(position));
  ends.forEach(([from, to], position) => from >= 0 && to >= 0 && at(from).edges.push(position));
  const all = [...parts.values()];
  const alone = all.filter((part) => part.nodes.length === 1);
  const linked = all.filter((part) => part.nodes.length > 1).sort((a, b) => b.nodes.length - a.nodes.length);
  return alone.length ? [...linked, { nodes: alone.flatMap((part) => part.nodes), edges: [] }] : linked;
}

/** Fleets repeat themselves: parts that are connected alike are laid out once. */
function layOutOnce(request: LayoutRequest, part: Part, known: Map<string, PlacedPart>): PlacedPart {
  if (part.nodes.length > SMALL) return layOutPart(request, part);
  const index = new Map(part.nodes.map((position, number) => [request.nodes[position] ?? "", number]));
  const shape = part.edges.map((position) => request.edges[position]?.map((id) => index.get(id)).join(">")).join();
  const key = `${part.nodes.length}:${shape}`;
  let first = known.get(key);
  if (first === undefined) {
    first = layOutPart(request, part);
    known.set(key, { ...first, ...numbered(first, (position) => part.nodes.indexOf(position), (position) => part.edges.indexOf(position)) });
    return first;
  }
  return { ...first, ...numbered(first, (number) => part.nodes[number] ?? 0, (number) => part.edges[number] ?? 0) };
}

function numbered(part: PlacedPart, node: (at: number) => number, edge: (at: number) => number): Pick<PlacedPart, "nodes" | "edges"> {
  return {
    nodes: part.nodes.map((one) => ({ ...one, position: node(one.position) })),
    edges: part.edges.map((one) => ({ ...one, position: edge(one.position) })),
  };
}

function layOutPart(request: LayoutRequest, part: Part): PlacedPart {
  if (part.edges.length === 0) return layOutGrid(part);
  if (part.edges.length > LARGE_FROM) return layOutLarge(request, part);
  const graph = new LayerGraph();
  graph.setGraph({ rankdir: "LR", nodesep: GAP, ranksep: LAYER_GAP, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const position of part.nodes) graph.setNode(String(position), { width: NODE_WIDTH, height: NODE_HEIGHT });
  const index = new Map(part.nodes.map((position) => [request.nodes[position] ?? "", position]));
  for (const position of part.edges) {
    const [from, to] = request.edges[position] ?? ["", ""];
    // What is needed comes first: values flow from it to the dependant.
    graph.setEdge(String(index.get(to)), String(index.get(from)), { position });
  }
  layers(graph);
  const size = graph.graph() as { width?: number; height?: number };
  return {
    width: size.width ?? 0,
    height: size.height ?? 0,
    nodes: part.nodes.map((position) => {
      const { x, y } = graph.node(String(position)) as { x: number; y: number };
      return { position, x, y };
    }),
    edges: graph.edges().map((edge) => {
      const { position, points } = graph.edge(edge) as { position: number; points: { x: number; y: number }[] };
      return { position, points: points.flatMap(({ x, y }) => [x, y]) };
    }),
  };
}

function layOutLarge(request: LayoutRequest, part: Part): PlacedPart {
  const index = new Map(part.nodes.map((position, number) => [request.nodes[position] ?? "", number]));
  const ends = part.edges.map((position) => {
    const [from, to] = request.edges[position] ?? ["", ""];
    return [index.get(to) ?? 0, index.get(from) ?? 0] as const;
  });
  const { width, height, nodes, edges } = layOutLayers(part.nodes.length, ends, { nodeWidth: NODE_WIDTH, nodeHeight: NODE_HEIGHT, gap: GAP, layerGap: LAYER_GAP });
  return {
    width,
    height,
    nodes: part.nodes.map((position, number) => ({ position, x: nodes[number * 2] ?? 0, y: nodes[number * 2 + 1] ?? 0 })),
    edges: part.edges.map((position, number) => ({ position, points: edges[number] ?? [] })),
  };
}

function layOutGrid(part: Part): PlacedPart {
  const columns = Math.max(1, Math.ceil(Math.sqrt(part.nodes.length / 3)));
  const nodes = part.nodes.map((position, number) => ({
    position,
    x: (number % columns) * (NODE_WIDTH + GAP) + NODE_WIDTH / 2,
    y: Math.floor(number / columns) * (NODE_HEIGHT + GAP) + NODE_HEIGHT / 2,
  }));
  const rows = Math.ceil(part.nodes.length / columns);
  return { width: Math.min(columns, part.nodes.length) * (NODE_WIDTH + GAP) - GAP, height: rows * (NODE_HEIGHT + GAP) - GAP, nodes, edges: [] };
}

/** Parts side by side, in rows of about the width that makes the whole as wide as a screen is. */
function pack(parts: readonly PlacedPart[]): { width: number; height: number; places: [number, number][] } {
  const area = parts.reduce((sum, part) => sum + (part.width + PART_GAP) * (part.height + PART_GAP), 0);
  const target = Math.max(Math.sqrt(area * 1.7), ...parts.map((part) => part.width));
  const places: [number, number][] = [];
  let [x, y, rowHeight, width] = [0, 0, 0, 0];
  for (const part of parts) {
    if (x > 0 && x + part.width > target) {
      x = 0;
      y += rowHeight + PART_GAP;
      rowHeight = 0;
    }
    places.push([x, y]);
    x += part.width + PART_GAP;
    width = Math.max(width, x - PART_GAP);
    rowHeight = Math.max(rowHeight, part.height);
  }
  return { width, height: y + rowHeight, places };
}
