/** Who needs whom, what flows along each edge, and what blocks whom. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Graph, GraphEdge, Id } from "../api/contract";
import { type GraphControl, GraphCanvas } from "../components/graph_canvas";
import { Button, Card, Empty, ExportButton, Failure, Path, ResourceLink, Skeleton, StateBadge, useLoaded } from "../components/parts";
import { blockedPaths } from "../graph/blocked";
import { collapse, type CollapseBy, groupId, type ShownGraph, type ShownNode } from "../graph/collapse";
import { drawSvg, type Highlight, readPalette, type Scene } from "../graph/drawing";
import { flowOf } from "../graph/edges";
import type { Layout } from "../graph/layout";
import { LayoutClient } from "../graph/layout_client";
import { plural } from "../model/format";
import { titleOf } from "../model/ids";
import { graphHash, resourceHash } from "../model/route";
import { replaceInExport } from "../page/export";
import { fleet, revision, session, summary } from "../page/state";
import { tell } from "../page/toasts";

// A drawing of more nodes than this is of no use as a whole.
const COLLAPSE_FROM = 300;
const RELOAD_AFTER = 1500;

/** A number that follows `revision`, at most once in a while. */
function useCalmRevision(): number {
  const [calm, setCalm] = useState(revision.peek());
  const newest = revision.value;
  useEffect(() => {
    if (newest === calm) return;
    const timer = setTimeout(() => setCalm(revision.peek()), RELOAD_AFTER);
    return () => clearTimeout(timer);
  }, [newest === calm]);
  return calm;
}

export function GraphView({ values }: { values: URLSearchParams }) {
  const [namespace, focus, depth] = [values.get("namespace") ?? "", values.get("focus") ?? "", Number(values.get("depth") ?? 2)];
  const [loaded, again] = useLoaded((signal) => api.graph(focus ? { focus, depth } : { namespace }, signal), `${namespace} ${focus} ${depth}`, useCalmRevision());
  const graph = loaded.value;
  const by = (values.get("by") as CollapseBy | null) ?? (graph && !focus && graph.nodes.length > COLLAPSE_FROM ? "kind" : "none");
  const go = (changed: Record<string, string>): void => {
    location.hash = graphHash({ namespace, focus, depth: focus ? String(depth) : "", by: values.get("by") ?? "", ...changed });
  };
  return (
    <div class="view graph" data-view="graph">
      <header class="view-head">
        <div class="view-title">
          <h1>Graph</h1>
          <p class="muted">{focus ? <>Around {titleOf(focus)}</> : "What is needed is on the left; values flow to the right."}</p>
        </div>
        <div class="view-actions" data-skip-export>
          {focus ? (
            <>
              <Select label="Depth" value={String(depth)} options={[["1", "1 step"], ["2", "2 steps"], ["3", "3 steps"], ["6", "6 steps"]]} onChange={(value) => go({ depth: value })} />
              <Button icon="fit" onClick={() => go({ focus: "", depth: "" })}>Whole graph</Button>
            </>
          ) : (
            <>
              <Select label="Namespace" value={namespace} options={[["", "All namespaces"], ...(summary.value?.byNamespace ?? []).map((one): [string, string] => [one.namespace, one.namespace])]} onChange={(value) => go({ namespace: value })} />
              <Select label="Collapse" value={by} options={[["none", "Every resource"], ["kind", "Collapse by kind"], ["namespace", "Collapse by namespace"]]} onChange={(value) => go({ by: value })} />
            </>
          )}
          <ExportButton />
        </div>
      </header>
      {graph?.cycle && <p class="notice">These need each other: {graph.cycle}</p>}
      {graph?.isCut && <p class="notice">There are more resources than are drawn: choose a namespace, or focus on one of them.</p>}
      {loaded.state === "failed" && <Failure error={loaded.error} retry={again} />}
      {graph === null ? loaded.state !== "failed" && <Skeleton rows={10} /> : graph.nodes.length === 0 ? <Empty title="Nothing to draw">{session.value?.user ? "There is no resource here that you may see." : "There is no resource here yet."}</Empty> : (
        <GraphBody graph={graph} by={by} focus={focus} onFocus={(id) => go({ focus: id, depth: "2" })} />
      )}
    </div>
  );
}

function Select(props: { label: string; value: string; options: [value: string, title: string][]; onChange: (value: string) => void }) {
  return (
    <label class="select"><span class="visually-hidden">{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.options.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
      </select>
    </label>
  );
}

function GraphBody({ graph, by, focus, onFocus }: { graph: Graph; by: CollapseBy; focus: Id; onFocus: (id: Id) => void }) {
  const [expanded, setExpanded] = useState<ReadonlySet<Id>>(new Set());
  const [selected, setSelected] = useState<Id | null>(focus || null);
  const control = useRef<GraphControl>(null);
  useEffect(() => {
    setExpanded(new Set());
    setSelected(focus || null);
  }, [by, focus]);
  const shown = useMemo(() => collapse(graph, by, expanded), [graph, by, expanded]);
  const [layout, error] = useLayout(shown);
  const highlight = useMemo(() => highlightOf(graph, shown, selected), [graph, shown, selected]);
  const openNode = (id: Id): void => {
    const node = shown.nodes.find((one) => one.id === id);
    if (node?.members.length) setExpanded(new Set([...expanded, id]));
    else location.hash = resourceHash(id);
  };
  const node = shown.nodes.find((one) => one.id === selected) ?? null;
  const isCurrent = layout !== null && layout.nodes.length === shown.nodes.length * 2;
  const scene = useMemo<Scene | null>(() => (layout && isCurrent ? { graph: shown, layout, highlight } : null), [shown, layout, highlight, isCurrent]);
  useEffect(() => replaceInExport("graph", () => (scene ? drawSvg(scene, readPalette(document.body)) : document.createElement("p"))), [scene]);
  return (
    <div class="graph-body">
      <div class="graph-frame">
        {error && <Failure error={new Error(`The layout failed: ${error}`)} />}
        {scene ? (
          <GraphCanvas scene={scene} fitKey={`${by} ${focus} ${[...expanded].join()} ${shown.nodes.length}`} control={control} onSelect={setSelected} onOpen={openNode} onFocusKey={() => node && !node.members.length && onFocus(node.id)} />
        ) : <div class="graph-canvas is-waiting" role="status">Laying out {plural(shown.nodes.length, "node")}…</div>}
        <div class="graph-tools" data-skip-export>
          <Button icon="plus" label="Zoom in" onClick={() => control.current?.zoom(1.3)}>{null}</Button>
          <Button icon="minus" label="Zoom out" onClick={() => control.current?.zoom(1 / 1.3)}>{null}</Button>
          <Button icon="fit" label="Fit" onClick={() => control.current?.fit()}>{null}</Button>
        </div>
        <FindNode shown={shown} onFound={(id) => { setSelected(id); control.current?.center(id); }} />
      </div>
      <aside class="graph-panel" aria-label="Details">
        {node === null ? <Legend graph={graph} onSelect={(id) => { setSelected(visibleAs(shown, id)); control.current?.center(visibleAs(shown, id)); }} /> :
          node.members.length ? <GroupPanel node={node} onExpand={() => openNode(node.id)} /> :
          <NodePanel node={node} edges={graph.edges} isFocus={node.id === focus} onFocus={() => onFocus(node.id)} onClose={() => setSelected(null)} />}
        {expanded.size > 0 && <Button onClick={() => setExpanded(new Set())}>Collapse all again</Button>}
      </aside>
    </div>
  );
}

/** The node that a resource is drawn as: itself, or its group. */
function visibleAs(shown: ShownGraph, id: Id): Id {
  return shown.nodes.find((node) => node.id === id || node.members.some((one) => one.id === id))?.id ?? id;
}

/** The layout of the newest graph. States may change without a new layout. */
function useLayout(shown: ShownGraph): [Layout | null, string | null] {
  const [layout, setLayout] = useState<Layout | null>(null);
  const [error, setError] = useState<string | null>(null);
  const client = useRef<LayoutClient | null>(null);
  const shape = useMemo(() => JSON.stringify([shown.nodes.map((node) => node.id), shown.edges.map((edge) => [edge.from, edge.to])]), [shown]);
  useEffect(() => {
    client.current = new LayoutClient((found) => { setLayout(found); setError(null); }, setError);
    return () => client.current?.end();
  }, []);
  useEffect(() => {
    client.current?.ask({ nodes: shown.nodes.map((node) => node.id), edges: shown.edges.map((edge) => [edge.from, edge.to]) });
  }, [shape]);
  return [layout, error];
}

/** What stands out: around the selected node its edges and the way back to what blocks it; else nothing. */
function highlightOf(graph: Graph, shown: ShownGraph, selected: Id | null): Highlight {
  const all = blockedPaths(graph.edges);
  const causes = new Set([...all.causes].map((id) => visibleAs(shown, id)));
  if (selected === null) return { nodes: null, edges: null, causes, selected };
  const blocked = blockedPaths(graph.edges, selected);
  const edges = new Set(shown.edges.filter((edge) => edge.from === selected || edge.to === selected || edge.edges.some((one) => blocked.edges.has(one))));
  const nodes = new Set<Id>([selected, ...[...edges].flatMap((edge) => [edge.from, edge.to])]);
  return { nodes, edges, causes, selected };
}

function FindNode({ shown, onFound }: { shown: ShownGraph; onFound: (id: Id) => void }) {
  const [text, setText] = useState("");
  const find = (): void => {
    const wanted = text.trim().toLowerCase();
    const has = (node: ShownNode): boolean => node.title.toLowerCase().includes(wanted) || node.members.some((one) => one.name.toLowerCase().includes(wanted));
    const node = wanted === "" ? undefined : shown.nodes.find((one) => one.title.toLowerCase() === wanted) ?? shown.nodes.find(has);
    if (node) onFound(node.id);
    else if (wanted !== "") tell(`Nothing in the graph is called ${text.trim()}`, true);
  };
  return (
    <label class="search graph-search" data-skip-export><span class="visually-hidden">Find in the graph</span>
      <input data-search type="search" placeholder="Find in the graph" value={text} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" ? find() : event.key === "Escape" && event.currentTarget.blur()} />
    </label>
  );
}

// --- The panel beside the drawing --------------------------------------------------------------------------------------

function Legend({ graph, onSelect }: { graph: Graph; onSelect: (id: Id) => void }) {
  const blocked = useMemo(() => blockedPaths(graph.edges), [graph]);
  const causes = [...blocked.causes];
  return (
    <>
      {causes.length > 0 && (
        <Card title="What blocks" count={causes.length}>
          <p class="card-line muted">{plural(blocked.nodes.size - causes.length, "resource is", "resources are")} blocked by:</p>
          <ul class="links">{causes.slice(0, 30).map((id) => <li key={id}>{fleet.get(id) && <StateBadge state={fleet.get(id)?.state ?? "unknown"} />}<button type="button" class="link-button" onClick={() => onSelect(id)}>{titleOf(id)}</button></li>)}</ul>
        </Card>
      )}
      <Card title="Legend">
        <ul class="legend">
          <li><span class="line line-plain" aria-hidden="true" />known, ready</li>
          <li><span class="line line-unknown" aria-hidden="true" />unknown, not ready</li>
          <li><span class="line line-null" aria-hidden="true" />null: not tracked</li>
          <li><span class="line line-missing" aria-hidden="true" />missing</li>
          <li><span class="line line-blocking" aria-hidden="true" />blocks</li>
        </ul>
        <p class="card-line muted">{plural(graph.nodes.length, "node")}, {plural(graph.edges.length, "edge")}. <span data-skip-export>Drag to move, wheel to zoom, double-click to open.</span></p>
      </Card>
    </>
  );
}

function GroupPanel({ node, onExpand }: { node: ShownNode; onExpand: () => void }) {
  return (
    <Card title={node.title} count={node.members.length} actions={<Button onClick={onExpand}>Expand</Button>}>
      <ul class="links">{node.members.slice(0, 100).map((one) => <li key={one.id}><StateBadge state={one.state} /><ResourceLink id={one.id} withKind={!node.id.startsWith(groupId("kind", ""))} /></li>)}</ul>
      {node.members.length > 100 && <p class="card-line muted">and {node.members.length - 100} more</p>}
    </Card>
  );
}

function NodePanel(props: { node: ShownNode; edges: GraphEdge[]; isFocus: boolean; onFocus: () => void; onClose: () => void }) {
  const { node, edges } = props;
  const needs = edges.filter((edge) => edge.from === node.id);
  const neededBy = edges.filter((edge) => edge.to === node.id);
  const causes = [...blockedPaths(edges, node.id).causes];
  return (
    <>
      <Card title={node.title} actions={<Button icon="cross" label="Close" onClick={props.onClose}>{null}</Button>}>
        <p class="card-line"><StateBadge state={node.state} /> <span class="muted">{node.subtitle}{!node.exists && ", does not exist"}</span></p>
        {causes.length > 0 && <p class="card-line cause">Blocked by {causes.map((id, number) => <span key={id}>{number > 0 && ", "}<ResourceLink id={id} /></span>)}</p>}
        <p class="card-line button-row" data-skip-export>
          <a class="button" href={resourceHash(node.id)}>Open</a>
          {!props.isFocus && <Button icon="target" onClick={props.onFocus}>Focus</Button>}
        </p>
      </Card>
      <Card title="Needs" count={needs.length}><EdgeList edges={needs} other="to" /></Card>
      <Card title="Needed by" count={neededBy.length}><EdgeList edges={neededBy} other="from" /></Card>
    </>
  );
}

function EdgeList({ edges, other }: { edges: GraphEdge[]; other: "from" | "to" }) {
  if (edges.length === 0) return <p class="card-line muted">Nothing.</p>;
  return (
    <ul class="edge-list">
      {edges.slice(0, 100).map((edge, number) => (
        <li key={number} class={edge.isBlocking || edge.isInCycle ? "is-blocking" : undefined}>
          <ResourceLink id={edge[other]} />
          <span class="edge-facts"><span class="tag">{edge.type}</span><span class={`tag output-${edge.state}`}>{edge.state}</span>{edge.isInCycle && <span class="tag output-missing">cycle</span>}{edge.state === "known" && edge.value !== null && <code class="value">{flowOf(edge)}</code>}</span>
          {(edge.output || edge.path) && <span class="edge-fields">{edge.output && <Path path={edge.output} />}{edge.output && edge.path && <span class="muted" title="flows to"> → </span>}{edge.path && <Path path={edge.path} />}</span>}
        </li>
      ))}
    </ul>
  );
}
