/**
 * Layers for large connected graphs, in time that grows with their size: longest paths, barycentres, and lines that are as
 * straight as the order within the layers lets them be.
 *
 * It is the method of Sugiyama, Tagawa and Toda, each step in its cheapest form. Small graphs are laid out by dagre, whose result is
 * better and whose cost grows faster.
 */

export interface LayerSizes {
  nodeWidth: number;
  nodeHeight: number;
  /** Between nodes of a layer. */
  gap: number;
  layerGap: number;
}

export interface Layered {
  width: number;
  height: number;
  /** x and y of the centre of each node. */
  nodes: Float32Array;
  /** The points of each edge, from left to right. */
  edges: number[][];
}

/** A place in a layer: a node, or where long edges from one node pass through. */
interface Slot {
  layer: number;
  height: number;
  left: number[];
  right: number[];
  y: number;
}

const ORDER_SWEEPS = 12;
const PLACE_SWEEPS = 8;
// The height of a place that a line passes, and the gap between two of them.
const PASS_HEIGHT = 2;
const PASS_GAP = 6;
// Long lines are kept straight: nodes make way.
const PASS_WEIGHT = 8;
// A layer may be this much fuller by nodes that are moved next to what needs them.
const FULLER = 1.4;
// How strongly everything is drawn to the middle, against parts that drift apart from layer to layer.
const PULL = 0.15;
// Width to height.
const SHAPE = 1.6;

/** Nodes are numbers from 0; each edge leads from the left to the right. */
export function layOutLayers(nodeCount: number, edges: readonly (readonly [left: number, right: number])[], sizes: LayerSizes): Layered {
  const forward = withoutCycles(nodeCount, edges);
  const column = (sizes.nodeWidth + sizes.layerGap) / (sizes.nodeHeight + sizes.gap) / SHAPE;
  const layerOf = layersOf(nodeCount, forward, Math.max(12, Math.ceil(Math.sqrt(nodeCount * column))));
  const { slots, passes } = slotsOf(layerOf, forward, sizes);
  const layers = ordered(slots);
  const height = placed(slots, layers, sizes.gap);
  const nodes = new Float32Array(nodeCount * 2);
  const x = (layer: number): number => sizes.nodeWidth / 2 + layer * (sizes.nodeWidth + sizes.layerGap);
  for (let node = 0; node < nodeCount; node += 1) {
    nodes[node * 2] = x(layerOf[node] ?? 0);
    nodes[node * 2 + 1] = slots[node]?.y ?? 0;
  }
  const half = sizes.nodeWidth / 2;
  const pathOf = ([left, right]: readonly [number, number], through: readonly number[]): number[] => {
    const points = [x(layerOf[left] ?? 0) + half, slots[left]?.y ?? 0];
    for (const slot of through) points.push(x(slots[slot]?.layer ?? 0), slots[slot]?.y ?? 0);
    points.push(x(layerOf[right] ?? 0) - half, slots[right]?.y ?? 0);
    return points;
  };
  const lines = forward.map((edge, number) => {
    const points = pathOf(edge, passes[number] ?? []);
    return edge[0] === edges[number]?.[0] ? points : reversed(points);
  });
  return { width: x(layers.length - 1) + half, height, nodes, edges: lines };
}

function reversed(points: readonly number[]): number[] {
  const found: number[] = [];
  for (let at = points.length - 2; at >= 0; at -= 2) found.push(points[at] ?? 0, points[at + 1] ?? 0);
  return found;
}

/** The edges, with those turned round that would close a cycle. */
function withoutCycles(nodeCount: number, edges: readonly (readonly [number, number])[]): [number, number][] {
  const outgoing = neighbours(nodeCount, edges, 0);
  const state = new Uint8Array(nodeCount);
  const isBack = new Uint8Array(edges.length);
  for (let start = 0; start < nodeCount; start += 1) {
    if (state[start] !== 0) continue;
    const stack: [node: number, next: number][] = [[start, 0]];
    state[start] = 1;
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const edge = outgoing[top[0]]?.[top[1]];
      if (edge === undefined) {
        state[top[0]] = 2;
        stack.pop();
        continue;
      }
      top[1] += 1;
      const to = edges[edge]?.[1] ?? 0;
      if (state[to] === 1) isBack[edge] = 1;
      else if (state[to] === 0) {
        state[to] = 1;
        stack.push([to, 0]);
      }
    }
  }
  return edges.map(([left, right], number) => (isBack[number] ? [right, left] : [left, right]));
}

/** For each node the numbers of its edges, by their end `end`. */
function neighbours(nodeCount: number, edges: readonly (readonly [number, number])[], end: 0 | 1): number[][] {
  const found: number[][] = Array.from({ length: nodeCount }, () => []);
  edges.forEach((edge, number) => found[edge[end]]?.push(number));
  return found;
}

/**
 * The layer of each node: right of all that it needs. A layer that is full has the next one take its nodes, so that the whole is about as
 * wide as it is high (the method of Coffman and Graham); what needs little is then moved next to what needs it.
 */
function layersOf(nodeCount: number, edges: readonly (readonly [number, number])[], widest: number): Int32Array {
  const proper = edges.filter(([left, right]) => left !== right);
  const outgoing = neighbours(nodeCount, proper, 0);
  const incoming = neighbours(nodeCount, proper, 1);
  const layer = new Int32Array(nodeCount);
  const open = Int32Array.from(incoming, (numbers) => numbers.length);
  const ready = Array.from(open.keys()).filter((node) => open[node] === 0).reverse();
  const sizes: number[] = [];
  const order: number[] = [];
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    order.push(node);
    let at = layer[node] ?? 0;
    while ((sizes[at] ?? 0) >= widest) at += 1;
    sizes[at] = (sizes[at] ?? 0) + 1;
    layer[node] = at;
    for (const number of outgoing[node] ?? []) {
      const to = proper[number]?.[1] ?? 0;
      layer[to] = Math.max(layer[to] ?? 0, at + 1);
      if ((open[to] = (open[to] ?? 0) - 1) === 0) ready.push(to);
    }
  }
  for (const node of order.reverse()) {
    const next = outgoing[node] ?? [];
    if (next.length <= (incoming[node]?.length ?? 0)) continue;
    const at = layer[node] ?? 0;
    const nearest = Math.min(...next.map((number) => layer[proper[number]?.[1] ?? 0] ?? 0)) - 1;
    let to = nearest;
    while (to > at && (sizes[to] ?? 0) >= widest * FULLER) to -= 1;
    sizes[at] = (sizes[at] ?? 0) - 1;
    sizes[to] = (sizes[to] ?? 0) + 1;
    layer[node] = to;
  }
  return layer;
}

/** Nodes, and where long edges pass layers. Edges from one node pass at one place: fewer lines, and fewer crossings. */
function slotsOf(layerOf: Int32Array, edges: readonly (readonly [number, number])[], sizes: LayerSizes): { slots: Slot[]; passes: number[][] } {
  const slots: Slot[] = Array.from(layerOf, (layer) => ({ layer, height: sizes.nodeHeight, left: [], right: [], y: 0 }));
  const passing = new Map<number, number[]>();
  const link = (left: number, right: number): void => {
    slots[left]?.right.push(right);
    slots[right]?.left.push(left);
  };
  const passes = edges.map(([left, right]) => {
    const through: number[] = [];
    const known = passing.get(left) ?? [];
    passing.set(left, known);
    let before = left;
    for (let layer = (layerOf[left] ?? 0) + 1; layer < (layerOf[right] ?? 0); layer += 1) {
      const place = layer - (layerOf[left] ?? 0) - 1;
      let slot = known[place];
      if (slot === undefined) {
        known[place] = slot = slots.push({ layer, height: PASS_HEIGHT, left: [], right: [], y: 0 }) - 1;
        link(before, slot);
      }
      through.push(slot);
      before = slot;
    }
    if (left !== right) link(before, right);
    return through;
  });
  return { slots, passes };
}

/** The slots of each layer from top to bottom, in the order with the fewest crossings that the sweeps came by. */
function ordered(slots: Slot[]): number[][] {
  const layers: number[][] = [];
  const position = new Float64Array(slots.length);
  const seen = new Uint8Array(slots.length);
  const add = (slot: number): void => {
    seen[slot] = 1;
    const layer = (layers[slots[slot]?.layer ?? 0] ??= []);
    position[slot] = layer.push(slot) - 1;
  };
  // Depth first: what is connected begins near each other.
  for (let start = 0; start < slots.length; start += 1) {
    const stack = seen[start] ? [] : [start];
    for (let slot = stack.pop(); slot !== undefined; slot = stack.pop()) {
      if (seen[slot]) continue;
      add(slot);
      for (const next of [...(slots[slot]?.left ?? []), ...(slots[slot]?.right ?? [])]) if (!seen[next]) stack.push(next);
    }
  }
  let best = layers.map((layer) => [...layer]);
  let fewest = crossings(slots, layers, position);
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest > 0; sweep += 1) {
    const side = sweep % 2 === 0 ? "left" : "right";
    for (const layer of sweep % 2 === 0 ? layers : layers.toReversed()) reorder(slots, layer, position, side);
    const found = crossings(slots, layers, position);
    if (found >= fewest) continue;
    fewest = found;
    best = layers.map((layer) => [...layer]);
  }
  return best;
}

function reorder(slots: readonly Slot[], layer: number[], position: Float64Array, side: "left" | "right"): void {
  const wanted = new Map<number, number>();
  for (const slot of layer) wanted.set(slot, meanOf(slots[slot]?.[side] ?? [], position) ?? position[slot] ?? 0);
  layer.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0) || (position[a] ?? 0) - (position[b] ?? 0));
  layer.forEach((slot, place) => (position[slot] = place));
}

function meanOf(slots: readonly number[], values: Float64Array): number | null {
  let sum = 0;
  for (const slot of slots) sum += values[slot] ?? 0;
  return slots.length ? sum / slots.length : null;
}

/** How many pairs of lines cross, by a tree of counts for each layer. */
function crossings(slots: readonly Slot[], layers: readonly number[][], position: Float64Array): number {
  let found = 0;
  layers.forEach((layer, number) => {
    const width = layers[number + 1]?.length ?? 0;
    const tree = new Int32Array(width + 1);
    let total = 0;
    for (const slot of layer) {
      const ends = (slots[slot]?.right ?? []).map((right) => position[right] ?? 0).sort((a, b) => a - b);
      for (const end of ends) {
        let before = 0;
        for (let at = end + 1; at > 0; at -= at & -at) before += tree[at] ?? 0;
        found += total - before;
      }
      for (const end of ends) {
        total += 1;
        for (let at = end + 1; at <= width; at += at & -at) tree[at] = (tree[at] ?? 0) + 1;
      }
    }
  });
  return found;
}

/** Moves the slots of all layers to the mean of their neighbours, without changing their order; the height of all. */
function placed(slots: Slot[], layers: readonly number[][], gap: number): number {
  const y = new Float64Array(slots.length);
  for (const layer of layers) {
    let top = 0;
    for (const slot of layer) {
      const height = slots[slot]?.height ?? 0;
      y[slot] = top + height / 2;
      top += height + PASS_GAP;
    }
    for (const slot of layer) y[slot] = (y[slot] ?? 0) - top / 2;
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep += 1) {
    const side = sweep % 2 === 0 ? "left" : "right";
    for (const layer of sweep % 2 === 0 ? layers : layers.toReversed()) {
      const wanted = layer.map((slot) => (1 - PULL) * (meanOf(slots[slot]?.[side] ?? [], y) ?? y[slot] ?? 0));
      separate(slots, layer, wanted, gap).forEach((value, place) => (y[layer[place] ?? 0] = value));
    }
  }
  let [top, bottom] = [Infinity, -Infinity];
  slots.forEach(({ height }, slot) => {
    top = Math.min(top, (y[slot] ?? 0) - height / 2);
    bottom = Math.max(bottom, (y[slot] ?? 0) + height / 2);
  });
  slots.forEach((slot, number) => (slot.y = (y[number] ?? 0) - top));
  return bottom - top;
}

/** The places nearest to the wanted ones (by least squares) at which no two slots overlap: blocks that push each other are pooled. */
function separate(slots: readonly Slot[], layer: readonly number[], wanted: readonly number[], gap: number): number[] {
  const offsets: number[] = [];
  let offset = 0;
  layer.forEach((slot, place) => {
    const before = slots[layer[place - 1] ?? -1];
    const height = slots[slot]?.height ?? 0;
    const isPassed = height === PASS_HEIGHT || before?.height === PASS_HEIGHT;
    if (before) offset += (before.height + height) / 2 + (isPassed ? PASS_GAP : gap);
    offsets.push(offset);
  });
  const blocks: { sum: number; weight: number; size: number }[] = [];
  wanted.forEach((value, place) => {
    const weight = slots[layer[place] ?? 0]?.height === PASS_HEIGHT ? PASS_WEIGHT : 1;
    let block = { sum: weight * (value - (offsets[place] ?? 0)), weight, size: 1 };
    for (let last = blocks.at(-1); last !== undefined && last.sum / last.weight > block.sum / block.weight; last = blocks.at(-1)) {
      block = { sum: block.sum + last.sum, weight: block.weight + last.weight, size: block.size + last.size };
      blocks.pop();
    }
    blocks.push(block);
  });
  return blocks.flatMap(({ sum, weight, size }) => Array.from({ length: size }, () => sum / weight)).map((value, place) => value + (offsets[place] ?? 0));
}
