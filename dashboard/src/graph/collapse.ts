/** A graph with all nodes of a kind or of a namespace drawn as one. */
import type { Graph, GraphEdge, GraphNode, Id, State } from "../api/contract";
import { worst } from "../model/states";

export type CollapseBy = "none" | "kind" | "namespace";

export interface ShownNode {
  id: Id;
  title: string;
  subtitle: string;
  state: State;
  exists: boolean;
  /** The nodes that this one stands for; empty for a resource. */
  members: GraphNode[];
}

export interface ShownEdge {
  from: Id;
  to: Id;
  /** More than one if nodes are collapsed. */
  edges: GraphEdge[];
}

export interface ShownGraph {
  nodes: ShownNode[];
  edges: ShownEdge[];
}

export function groupId(by: CollapseBy, name: string): Id {
  return `${by}:${name}`;
}

/** The graph to be drawn. Groups in `expanded` are drawn as their members. */
export function collapse(graph: Graph, by: CollapseBy, expanded: ReadonlySet<Id>): ShownGraph {
  const shownAs = new Map<Id, Id>();
  const groups = new Map<Id, GraphNode[]>();
  const nodes: ShownNode[] = [];
  for (const node of graph.nodes) {
    const group = by === "none" ? "" : groupId(by, by === "kind" ? node.kind : node.namespace);
    if (group === "" || expanded.has(group)) {
      shownAs.set(node.id, node.id);
      nodes.push(single(node));
    } else {
      shownAs.set(node.id, group);
      const members = groups.get(group);
      if (members) members.push(node);
      else groups.set(group, [node]);
    }
  }
  for (const [id, members] of groups) nodes.push(grouped(id, by, members));
  return { nodes, edges: joined(graph.edges, shownAs) };
}

function single(node: GraphNode): ShownNode {
  const subtitle = `${node.kind} · ${node.namespace}`;
  return { id: node.id, title: node.name, subtitle, state: node.state, exists: node.exists !== false, members: [] };
}

function grouped(id: Id, by: CollapseBy, members: GraphNode[]): ShownNode {
  const title = id.slice(by.length + 1);
  const subtitle = `${members.length} ${members.length === 1 ? "resource" : "resources"}`;
  return { id, title, subtitle, state: worst(members.map((one) => one.state)), exists: members.some((one) => one.exists !== false), members };
}

function joined(edges: readonly GraphEdge[], shownAs: ReadonlyMap<Id, Id>): ShownEdge[] {
  const found = new Map<string, ShownEdge>();
  for (const edge of edges) {
    const from = shownAs.get(edge.from);
    const to = shownAs.get(edge.to);
    if (from === undefined || to === undefined || from === to) continue;
    const key = `${from}\n${to}`;
    const known = found.get(key);
    if (known) known.edges.push(edge);
    else found.set(key, { from, to, edges: [edge] });
  }
  return [...found.values()];
}
