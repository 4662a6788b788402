/** Draws a laid-out graph: on a canvas for the screen, as SVG for files. Nothing is drawn while nothing changes. */
import type { Id, State } from "../api/contract";
import { stateName } from "../model/states";
import type { ShownEdge, ShownGraph, ShownNode } from "./collapse";
import { bundlesOf, edgePath, edgesIn, pathOf, type Window } from "./edge_lines";
import { type EdgeTone, labelOf, toneOf } from "./edges";
import { type Layout, NODE_HEIGHT, NODE_WIDTH } from "./layout";

export interface Highlight {
  /** Nodes and edges that stand out; null: all are alike. */
  nodes: ReadonlySet<Id> | null;
  edges: ReadonlySet<ShownEdge> | null;
  causes: ReadonlySet<Id>;
  selected: Id | null;
}

export interface Scene {
  graph: ShownGraph;
  layout: Layout;
  highlight: Highlight;
}

export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

export type Palette = (name: string) => string;

/** The colours of the page, by the names of its custom properties. */
export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) known.set(name, (value = style.getPropertyValue(`--${name}`).trim()));
    return value;
  };
}

const TONES: Record<EdgeTone, { color: string; width: number; dash: number[] }> = {
  plain: { color: "edge", width: 1.3, dash: [] },
  unknown: { color: "dot-blocked", width: 1.6, dash: [6, 4] },
  null: { color: "edge", width: 1.3, dash: [2, 4] },
  missing: { color: "dot-failed", width: 1.6, dash: [6, 4] },
  blocking: { color: "dot-failed", width: 2.4, dash: [] },
};
const FONT = "system-ui, sans-serif";
// Below these zooms a text could not be read, and is not drawn.
const TEXT_FROM = 0.42;
const LABELS_FROM = 0.72;
const FADED = 0.26;
// Lines lie upon each other.
const FADED_LINE = 0.1;

function nodeAt(layout: Layout, index: number): [x: number, y: number] {
  return [layout.nodes[index * 2] ?? 0, layout.nodes[index * 2 + 1] ?? 0];
}

const TITLE_FONT = `600 12.5px ${FONT}`;
const SUBTITLE_FONT = `11px ${FONT}`;
const INNER_WIDTH = NODE_WIDTH - 22;
const MOST_CUT = 20_000;
const cuts = new Map<string, string>();
let ruler: CanvasRenderingContext2D | null = null;

function widthOf(text: string, font: string): number {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (ruler === null) return 0;
  ruler.font = font;
  return ruler.measureText(text).width;
}

function endCut(text: string, kept: number): string {
  return `${text.slice(0, kept)}…`;
}

/** Names often differ at their ends. */
function middleCut(text: string, kept: number): string {
  return `${text.slice(0, Math.ceil(kept / 2))}…${text.slice(text.length - Math.floor(kept / 2))}`;
}

/** As much of a text as has that width, measured once. */
function cut(text: string, font: string, width: number, shortened: (text: string, kept: number) => string): string {
  const key = `${font} ${width} ${text}`;
  let found = cuts.get(key);
  if (found === undefined) {
    if (cuts.size >= MOST_CUT) cuts.clear();
    let [least, most] = [0, text.length];
    while (least < most) {
      const middle = Math.ceil((least + most) / 2);
      if (widthOf(middle < text.length ? shortened(text, middle) : text, font) <= width) least = middle;
      else most = middle - 1;
    }
    cuts.set(key, (found = least < text.length ? shortened(text, least) : text));
  }
  return found;
}

function titleOf(node: ShownNode): string {
  return cut(node.title, TITLE_FONT, INNER_WIDTH, middleCut);
}

function subtitleOf(node: ShownNode): string {
  const taken = hasStateText(node) ? widthOf(stateName(node.state), SUBTITLE_FONT) + 6 : 0;
  return cut(node.subtitle, SUBTITLE_FONT, Math.round(INNER_WIDTH - taken), endCut);
}

function middleOf(points: Float32Array): [x: number, y: number] {
  const at = Math.floor(points.length / 4) * 2;
  return [points[at] ?? 0, points[at + 1] ?? 0];
}

// --- Canvas ------------------------------------------------------------------------------------------------------------

/** Draws what is in the window of the camera; how many nodes and edges that are. */
export function draw(context: CanvasRenderingContext2D, size: { width: number; height: number }, ratio: number, scene: Scene, camera: Camera, color: Palette): number {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, size.width * ratio, size.height * ratio);
  context.setTransform(ratio * camera.zoom, 0, 0, ratio * camera.zoom, -camera.x * ratio * camera.zoom, -camera.y * ratio * camera.zoom);
  const window = { left: camera.x, top: camera.y, right: camera.x + size.width / camera.zoom, bottom: camera.y + size.height / camera.zoom };
  return drawEdges(context, scene, camera, window, color) + drawNodes(context, scene, camera, window, color);
}

function drawEdges(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, window: Window, color: Palette): number {
  if (camera.zoom < TEXT_FROM) return drawBundles(context, scene, camera, color);
  const { graph, layout, highlight } = scene;
  const seen = edgesIn(layout, window);
  for (const index of seen) {
    const edge = graph.edges[index];
    const points = layout.edges[index];
    if (edge === undefined || points === undefined || points.length < 4) continue;
    const tone = TONES[toneOf(edge.edges)];
    const isFaded = highlight.edges !== null && !highlight.edges.has(edge);
    context.globalAlpha = isFaded ? FADED_LINE : 1;
    context.strokeStyle = context.fillStyle = color(tone.color);
    context.lineWidth = tone.width / Math.min(1, camera.zoom * 1.6);
    context.setLineDash(tone.dash);
    context.stroke(pathOf(points));
    context.setLineDash([]);
    drawArrow(context, points);
    if (camera.zoom >= LABELS_FROM && !isFaded) drawLabel(context, labelOf(edge), middleOf(points), color);
  }
  context.globalAlpha = 1;
  return seen.length;
}

/** Edges from afar: their colours are all that can be told apart. */
function drawBundles(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, color: Palette): number {
  for (const { tone, isFaded, path } of bundlesOf(scene)) {
    const isLoud = tone === "blocking" || tone === "missing";
    context.globalAlpha = isFaded ? FADED_LINE : isLoud || scene.highlight.edges !== null ? 1 : 0.55;
    context.strokeStyle = color(TONES[tone].color);
    context.lineWidth = (TONES[tone].width * 0.6) / camera.zoom;
    context.stroke(path);
  }
  context.globalAlpha = 1;
  return scene.graph.edges.length;
}

function drawArrow(context: CanvasRenderingContext2D, points: Float32Array): void {
  const [x, y] = [points[points.length - 2] ?? 0, points[points.length - 1] ?? 0];
  const angle = Math.atan2(y - (points[points.length - 3] ?? 0), x - (points[points.length - 4] ?? 0));
  const side = (turn: number): [number, number] => [x - 7 * Math.cos(angle + turn), y - 7 * Math.sin(angle + turn)];
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(...side(0.45));
  context.lineTo(...side(-0.45));
  context.fill();
}

function drawLabel(context: CanvasRenderingContext2D, text: string, [x, y]: [number, number], color: Palette): void {
  if (text === "") return;
  context.font = `10.5px ${FONT}`;
  const width = context.measureText(text).width + 8;
  context.fillStyle = color("bg");
  context.fillRect(x - width / 2, y - 8, width, 15);
  context.fillStyle = color("muted");
  context.textAlign = "center";
  context.fillText(text, x, y + 3);
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene, camera: Camera, window: Window, color: Palette): number {
  const { graph, layout, highlight } = scene;
  let seen = 0;
  graph.nodes.forEach((node, index) => {
    const [x, y] = nodeAt(layout, index);
    const [left, top] = [x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2];
    if (left > window.right || left + NODE_WIDTH < window.left || top > window.bottom || top + NODE_HEIGHT < window.top) return;
    seen += 1;
    context.globalAlpha = highlight.nodes !== null && !highlight.nodes.has(node.id) ? FADED : 1;
    if (camera.zoom < TEXT_FROM) drawBlock(context, node, left, top, highlight, color);
    else {
      drawBox(context, node, left, top, highlight, color);
      drawText(context, node, left, top, color);
    }
  });
  context.globalAlpha = 1;
  return seen;
}

/** A node from afar: its state is all that can be seen. */
function drawBlock(context: CanvasRenderingContext2D, node: ShownNode, left: number, top: number, highlight: Highlight, color: Palette): void {
  const isMarked = highlight.selected === node.id || highlight.causes.has(node.id);
  const alpha = context.globalAlpha;
  context.globalAlpha = alpha * (node.state === "ready" ? 0.5 : 1);
  context.fillStyle = color(`dot-${node.state}`);
  context.fillRect(left, top, NODE_WIDTH, NODE_HEIGHT);
  context.globalAlpha = alpha;
  if (!isMarked) return;
  context.strokeStyle = highlight.selected === node.id ? color("accent") : color("dot-failed");
  context.lineWidth = 14;
  context.strokeRect(left, top, NODE_WIDTH, NODE_HEIGHT);
}

function drawBox(context: CanvasRenderingContext2D, node: ShownNode, left: number, top: number, highlight: Highlight, color: Palette): void {
  const isSelected = highlight.selected === node.id;
  const isCause = highlight.causes.has(node.id);
  if (node.members.length) {
    context.fillStyle = color("surface-2");
    context.strokeStyle = color("line-strong");
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(left + 4, top + 4, NODE_WIDTH, NODE_HEIGHT, 7);
    context.fill();
    context.stroke();
  }
  context.beginPath();
  context.roundRect(left, top, NODE_WIDTH, NODE_HEIGHT, 7);
  context.fillStyle = color("surface");
  context.fill();
  context.strokeStyle = isSelected ? color("accent") : isCause ? color("dot-failed") : color("line-strong");
  context.lineWidth = isSelected || isCause ? 2.5 : 1;
  if (!node.exists) context.setLineDash([4, 3]);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.roundRect(left, top, 5, NODE_HEIGHT, [7, 0, 0, 7]);
  context.fillStyle = color(`dot-${node.state}`);
  context.fill();
}

function drawText(context: CanvasRenderingContext2D, node: ShownNode, left: number, top: number, color: Palette): void {
  context.textAlign = "left";
  context.fillStyle = color("text");
  context.font = TITLE_FONT;
  context.fillText(titleOf(node), left + 14, top + 19);
  context.fillStyle = color("muted");
  context.font = SUBTITLE_FONT;
  context.fillText(subtitleOf(node), left + 14, top + 34);
  if (!hasStateText(node)) return;
  context.textAlign = "right";
  context.fillStyle = color(`text-${node.state}`);
  context.fillText(stateName(node.state), left + NODE_WIDTH - 8, top + 34);
}

/** What is not well says so in words: a colour alone is not seen by all. */
function hasStateText(node: ShownNode): boolean {
  return node.state !== "ready" && node.exists;
}

// --- SVG -------------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function element(name: string, attributes: Record<string, string | number>, text?: string): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The whole graph as a drawing with texts, whatever part of it is on the screen. */
export function drawSvg(scene: Scene, color: Palette): SVGElement {
  const { graph, layout, highlight } = scene;
  const margin = 20;
  const box = `${-margin} ${-margin} ${layout.width + 2 * margin} ${layout.height + 2 * margin}`;
  const svg = element("svg", { viewBox: box, width: "100%", role: "img", "aria-label": `Graph of ${graph.nodes.length} nodes`, "font-family": FONT });
  graph.edges.forEach((edge, index) => {
    const points = layout.edges[index];
    if (points === undefined || points.length < 4) return;
    const tone = TONES[toneOf(edge.edges)];
    const line = element("path", { d: edgePath(points), fill: "none", stroke: color(tone.color), "stroke-width": tone.width, "stroke-dasharray": tone.dash.join(" ") });
    line.append(element("title", {}, `${edge.to} → ${edge.from}`));
    const [x, y] = middleOf(points);
    // The line ends beside its label, as on the screen.
    svg.append(line, element("text", { x, y, "font-size": 10.5, "text-anchor": "middle", fill: color("muted"), stroke: color("bg"), "stroke-width": 5, "paint-order": "stroke" }, labelOf(edge)));
  });
  graph.nodes.forEach((node, index) => svg.append(svgNode(node, nodeAt(layout, index), highlight, color)));
  return svg;
}

function svgNode(node: ShownNode, [x, y]: [number, number], highlight: Highlight, color: Palette): SVGElement {
  const [left, top] = [x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2];
  const stroke = highlight.causes.has(node.id) ? color("dot-failed") : color("line-strong");
  const group = element("g", {});
  group.append(
    element("title", {}, describe(node)),
    element("rect", { x: left, y: top, width: NODE_WIDTH, height: NODE_HEIGHT, rx: 7, fill: color("surface"), stroke, "stroke-dasharray": node.exists ? "" : "4 3" }),
    element("rect", { x: left, y: top, width: 5, height: NODE_HEIGHT, rx: 2, fill: color(`dot-${node.state}`) }),
    element("text", { x: left + 14, y: top + 19, "font-size": 12.5, "font-weight": 600, fill: color("text") }, titleOf(node)),
    element("text", { x: left + 14, y: top + 34, "font-size": 11, fill: color("muted") }, subtitleOf(node)),
  );
  if (hasStateText(node)) group.append(element("text", { x: left + NODE_WIDTH - 8, y: top + 34, "font-size": 11, "text-anchor": "end", fill: color(`text-${node.state}`) }, stateName(node.state)));
  return group;
}

export function describe(node: { title: string; subtitle: string; state: State; exists: boolean }): string {
  return `${node.title}, ${node.subtitle}, ${node.exists ? stateName(node.state) : "does not exist"}`;
}
