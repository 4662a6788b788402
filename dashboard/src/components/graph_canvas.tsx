/** The drawing of a graph on the screen: pan, zoom, selection by pointer and keys. */
import { useEffect, useImperativeHandle, useRef } from "preact/hooks";
import type { Ref } from "preact";
import type { Id } from "../api/contract";
import { type Camera, describe, draw, readPalette, type Scene } from "../graph/drawing";
import { NODE_HEIGHT, NODE_WIDTH } from "../graph/layout";
import { type Direction, nextNode, nodeAt } from "../graph/navigation";
import { isDark } from "../page/settings";

const SMALLEST = 0.03;
// So many nodes and edges cannot be drawn in each frame: while they are moved the drawing of before is, and drawn anew at rest.
const HEAVY_FROM = 80;
const REST_AFTER = 90;
const LARGEST = 2.5;
const DIRECTIONS: Record<string, Direction> = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };

export interface GraphControl {
  zoom(factor: number): void;
  fit(): void;
  center(id: Id): void;
}

interface Props {
  scene: Scene;
  /** The drawing is fitted into the window anew when it changes. */
  fitKey: string;
  onSelect: (id: Id | null) => void;
  onOpen: (id: Id) => void;
  onFocusKey: () => void;
  control: Ref<GraphControl>;
}

export function GraphCanvas(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const camera = useRef<Camera>({ x: 0, y: 0, zoom: 1 });
  const frame = useRef(0);
  // What the canvas holds: from where it was drawn, and how much.
  const drawn = useRef<{ camera: Camera; count: number } | null>(null);
  const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const current = useRef(props);
  current.current = props;

  const size = (): { width: number; height: number } => ({ width: box.current?.clientWidth ?? 1, height: box.current?.clientHeight ?? 1 });

  function paint(): void {
    if (frame.current === 0) frame.current = requestAnimationFrame(paintNow);
  }

  /** After a movement of the camera. */
  function move(): void {
    const before = drawn.current;
    if (before === null || before.count < HEAVY_FROM || canvas.current === null) return paint();
    const { x, y, zoom } = camera.current;
    const scale = zoom / before.camera.zoom;
    const moved = Math.max(Math.abs(before.camera.x - x), Math.abs(before.camera.y - y)) * zoom;
    if (moved > size().height / 2 || scale > 3 || scale < 1 / 3) return paint();
    canvas.current.style.transform = `translate(${(before.camera.x - x) * zoom}px, ${(before.camera.y - y) * zoom}px) scale(${scale})`;
    clearTimeout(rest.current);
    rest.current = setTimeout(paint, REST_AFTER);
  }

  function paintNow(): void {
    frame.current = 0;
    clearTimeout(rest.current);
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const { width, height } = size();
    const ratio = devicePixelRatio;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(height * ratio);
    }
    const count = draw(context, { width, height }, ratio, current.current.scene, camera.current, readPalette(element));
    drawn.current = { camera: camera.current, count };
    element.style.transform = "";
    element.dataset["zoom"] = camera.current.zoom.toFixed(3);
    element.dataset["drawn"] = String(count);
  }

  function fit(): void {
    const { width, height } = size();
    const { layout } = current.current.scene;
    // The search lies over the top.
    const covered = 36;
    const zoom = Math.min(1.15, (width - 40) / layout.width, (height - covered - 40) / layout.height);
    camera.current = { zoom, x: layout.width / 2 - width / zoom / 2, y: layout.height / 2 - (height + covered) / zoom / 2 };
    paint();
  }

  function zoomAt(factor: number, x: number, y: number): void {
    const { zoom } = camera.current;
    const next = Math.max(Math.min(SMALLEST, zoom), Math.min(LARGEST, zoom * factor));
    camera.current = { zoom: next, x: camera.current.x + x / zoom - x / next, y: camera.current.y + y / zoom - y / next };
    move();
  }

  function center(id: Id, isOnlyIfHidden = false): void {
    const { graph, layout } = current.current.scene;
    const at = graph.nodes.findIndex((node) => node.id === id);
    if (at < 0) return;
    const { width, height } = size();
    const [x, y] = [layout.nodes[at * 2] ?? 0, layout.nodes[at * 2 + 1] ?? 0];
    const zoom = isOnlyIfHidden ? camera.current.zoom : Math.max(camera.current.zoom, 0.8);
    const [left, top] = [(x - camera.current.x) * zoom, (y - camera.current.y) * zoom];
    if (isOnlyIfHidden && left > 100 && left < width - 100 && top > 40 && top < height - 40) return paint();
    camera.current = { zoom, x: x - width / zoom / 2, y: y - height / zoom / 2 };
    paint();
  }

  useImperativeHandle(props.control, () => ({ fit, center, zoom: (factor) => zoomAt(factor, size().width / 2, size().height / 2) }), []);
  useEffect(fit, [props.fitKey]);
  useEffect(paint, [props.scene, isDark.value]);
  useEffect(() => {
    const watched = new ResizeObserver(paint);
    if (box.current) watched.observe(box.current);
    return () => {
      watched.disconnect();
      clearTimeout(rest.current);
      cancelAnimationFrame(frame.current);
    };
  }, []);
  useEffect(() => {
    // Not passive: the wheel zooms instead of scrolling the page.
    const element = box.current;
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault();
      const bounds = element?.getBoundingClientRect();
      zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - (bounds?.left ?? 0), event.clientY - (bounds?.top ?? 0));
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  }, []);

  const pointers = useRef(new Map<number, [number, number]>());
  const travelled = useRef(0);

  function onPointerDown(event: PointerEvent): void {
    pointers.current.set(event.pointerId, [event.clientX, event.clientY]);
    travelled.current = 0;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  }

  function onPointerMove(event: PointerEvent): void {
    const last = pointers.current.get(event.pointerId);
    if (!last) return;
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    const others = [...pointers.current].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    pointers.current.set(event.pointerId, [event.clientX, event.clientY]);
    travelled.current += Math.abs(dx) + Math.abs(dy);
    const [other] = others;
    if (other) {
      const before = Math.hypot(last[0] - other[0], last[1] - other[1]);
      const after = Math.hypot(event.clientX - other[0], event.clientY - other[1]);
      const bounds = box.current?.getBoundingClientRect();
      zoomAt(after / Math.max(1, before), (event.clientX + other[0]) / 2 - (bounds?.left ?? 0), (event.clientY + other[1]) / 2 - (bounds?.top ?? 0));
    } else {
      camera.current = { ...camera.current, x: camera.current.x - dx / camera.current.zoom, y: camera.current.y - dy / camera.current.zoom };
      move();
    }
  }

  function hit(event: { clientX: number; clientY: number }): Id | null {
    const bounds = box.current?.getBoundingClientRect();
    const x = camera.current.x + (event.clientX - (bounds?.left ?? 0)) / camera.current.zoom;
    const y = camera.current.y + (event.clientY - (bounds?.top ?? 0)) / camera.current.zoom;
    const { graph, layout } = current.current.scene;
    return nodeAt(graph, layout, x, y, NODE_WIDTH, NODE_HEIGHT);
  }

  function onPointerUp(event: PointerEvent): void {
    if (!pointers.current.delete(event.pointerId)) return;
    if (travelled.current < 5) props.onSelect(hit(event));
  }

  function onKeyDown(event: KeyboardEvent): void {
    const { graph, layout, highlight } = props.scene;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    if (direction) {
      const next = nextNode(graph, layout, highlight.selected, direction);
      if (next) {
        props.onSelect(next);
        center(next, true);
      }
    } else if (event.key === "Enter" && highlight.selected) props.onOpen(highlight.selected);
    else if (event.key === "+" || event.key === "=") zoomAt(1.3, size().width / 2, size().height / 2);
    else if (event.key === "-") zoomAt(1 / 1.3, size().width / 2, size().height / 2);
    else if (event.key === "0") fit();
    else if (event.key === "f") props.onFocusKey();
    else if (event.key === "Escape") props.onSelect(null);
    else return;
    event.preventDefault();
  }

  const selected = props.scene.graph.nodes.find((node) => node.id === props.scene.highlight.selected);
  return (
    <div
      ref={box}
      class="graph-canvas"
      role="application"
      aria-roledescription="graph"
      aria-label={`Graph of ${props.scene.graph.nodes.length} nodes. Arrow keys move, Enter opens, f focuses.`}
      tabIndex={0}
      data-export="graph"
      data-nodes={props.scene.graph.nodes.length}
      onKeyDown={onKeyDown}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={onPointerUp}
      onPointerCancel={(event) => pointers.current.delete(event.pointerId)}
      onDblClick={(event) => {
        const id = hit(event);
        if (id) props.onOpen(id);
      }}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <span class="visually-hidden" role="status">{selected ? describe(selected) : ""}</span>
    </div>
  );
}
