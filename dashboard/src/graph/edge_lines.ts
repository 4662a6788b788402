/** The lines of edges: their paths, what is on the screen of them, and few strokes for all of them from afar. */
import { type EdgeTone, toneOf } from "./edges";
import type { Scene } from "./drawing";
import type { Layout } from "./layout";

export interface Window {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** A smooth line through the points of an edge, as the commands of an SVG path; the arrow is at its end. */
export function edgePath(points: Float32Array): string {
  const at = (index: number): [number, number] => [points[index * 2] ?? 0, points[index * 2 + 1] ?? 0];
  const last = points.length / 2 - 1;
  if (last < 1) return "";
  const [x, y] = at(0);
  let path = `M${x} ${y}`;
  for (let index = 1; index < last; index += 1) {
    const [cx, cy] = at(index);
    const [nx, ny] = at(index + 1);
    const isEnd = index + 1 === last;
    path += `Q${cx} ${cy} ${isEnd ? nx : (cx + nx) / 2} ${isEnd ? ny : (cy + ny) / 2}`;
  }
  if (last === 1) path += `L${at(1)[0]} ${at(1)[1]}`;
  return path;
}

const paths = new WeakMap<Float32Array, Path2D>();

export function pathOf(points: Float32Array): Path2D {
  let path = paths.get(points);
  if (path === undefined) paths.set(points, (path = new Path2D(edgePath(points))));
  return path;
}

const bounds = new WeakMap<Layout, Float32Array>();

/** For each edge its left, top, right and bottom. */
function boundsOf(layout: Layout): Float32Array {
  const known = bounds.get(layout);
  if (known) return known;
  const found = new Float32Array(layout.edges.length * 4);
  layout.edges.forEach((points, edge) => {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let index = 0; index < points.length; index += 2) {
      const [x, y] = [points[index] ?? 0, points[index + 1] ?? 0];
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
    found.set([left, top, right, bottom], edge * 4);
  });
  bounds.set(layout, found);
  return found;
}

/** The numbers of the edges that may be seen in a window. */
export function edgesIn(layout: Layout, window: Window): number[] {
  const box = boundsOf(layout);
  const found: number[] = [];
  for (let edge = 0; edge < layout.edges.length; edge += 1) {
    const [left, top, right, bottom] = box.subarray(edge * 4, edge * 4 + 4) as unknown as [number, number, number, number];
    if (right >= window.left && left <= window.right && bottom >= window.top && top <= window.bottom) found.push(edge);
  }
  return found;
}

export interface Bundle {
  tone: EdgeTone;
  isFaded: boolean;
  path: Path2D;
}

// What stands out is drawn last.
const TONES: readonly EdgeTone[] = ["null", "plain", "unknown", "missing", "blocking"];
const bundles = new WeakMap<Scene, Bundle[]>();

/** All edges of a scene, those that look alike as one path of straight lines. */
export function bundlesOf(scene: Scene): Bundle[] {
  const known = bundles.get(scene);
  if (known) return known;
  const found = new Map<string, Bundle>();
  for (const isFaded of [true, false]) for (const tone of TONES) found.set(`${tone} ${isFaded}`, { tone, isFaded, path: new Path2D() });
  const { edges } = scene.highlight;
  scene.graph.edges.forEach((edge, index) => {
    const points = scene.layout.edges[index];
    const path = found.get(`${toneOf(edge.edges)} ${edges !== null && !edges.has(edge)}`)?.path;
    if (points === undefined || points.length < 4 || path === undefined) return;
    path.moveTo(points[0] ?? 0, points[1] ?? 0);
    for (let at = 2; at < points.length; at += 2) path.lineTo(points[at] ?? 0, points[at + 1] ?? 0);
  });
  const all = [...found.values()];
  bundles.set(scene, all);
  return all;
}
