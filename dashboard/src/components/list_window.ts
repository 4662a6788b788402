/**
 * The rows of a long list that are in the document, in the scroll of the window.
 *
 * A row that leaves the screen is used again for an item that enters it: a scroll makes no elements, and reads the layout once
 * a frame, before it writes.
 */

// Rows beyond the screen; the range moves in steps of as many, so that most frames of a slow scroll change nothing.
const MARGIN = 8;
// In a fast scroll all rows change in each frame, and those beyond the screen would be wasted.
const FAST_MARGIN = 1;
const REST_AFTER = 120;

/** How rows look. */
export interface RowPainter<T> {
  make(): HTMLElement;
  /** Shows an item in an element that may have shown another. */
  fill(element: HTMLElement, item: T): void;
  /** Adds what is needed only under the pointer. */
  explain(element: HTMLElement, item: T): void;
}

export interface ListContent<T> {
  items: readonly T[];
  rowHeight: number;
  /** The height of what sticks to the top of the window over the rows. */
  covered: number;
  onOpen: (item: T) => void;
}

export class ListWindow<T> {
  private readonly shown = new Map<number, HTMLElement>();
  private readonly spare: HTMLElement[] = [];
  private content: ListContent<T> = { items: [], rowHeight: 1, covered: 0, onOpen: () => undefined };
  private active = 0;
  private lastTop = 0;
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly body: HTMLElement,
    private readonly painter: RowPainter<T>,
  ) {
    addEventListener("scroll", this.later, { passive: true });
    addEventListener("resize", this.later);
    body.addEventListener("keydown", this.onKeyDown);
    body.addEventListener("click", this.onClick);
    body.addEventListener("focusin", this.onFocus);
    body.addEventListener("pointerover", this.onPointerOver, { passive: true });
  }

  end(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    removeEventListener("scroll", this.later);
    removeEventListener("resize", this.later);
  }

  /** Shows other items, or the same ones as they are now. */
  update(content: ListContent<T>): void {
    this.content = content;
    this.body.style.height = `${content.items.length * content.rowHeight}px`;
    this.active = this.clamped(this.active);
    this.show(MARGIN);
    this.refill();
  }

  /** Fills all rows anew: times have moved on. */
  refill(): void {
    for (const [index, element] of this.shown) this.fill(element, index);
  }

  private readonly later = (): void => {
    if (this.frame === 0) this.frame = requestAnimationFrame(this.measure);
    clearTimeout(this.timer);
    this.timer = setTimeout(this.rest, REST_AFTER);
  };

  private readonly measure = (): void => {
    this.frame = 0;
    this.show(undefined);
  };

  /** After a scroll: all rows of the margin, in their order, so that they are read in it. */
  private readonly rest = (): void => {
    this.show(MARGIN);
    this.spare.length = 0;
    const focused = document.activeElement;
    const inOrder = [...this.shown].sort(([a], [b]) => a - b).map(([, element]) => element);
    if (inOrder.every((element, place) => this.body.children[place] === element)) return;
    // An element that is moved loses the focus: the others are put around it.
    const fixed = inOrder.findIndex((element) => element.contains(focused));
    inOrder.forEach((element, place) => {
      if (place < fixed) inOrder[fixed]?.before(element);
      else if (place > fixed) this.body.append(element);
    });
  };

  private show(wanted: number | undefined): void {
    const { items, rowHeight } = this.content;
    const top = Math.max(0, Math.floor(-this.body.getBoundingClientRect().top / rowHeight));
    const screen = Math.ceil(innerHeight / rowHeight) + 1;
    const margin = wanted ?? (Math.abs(top - this.lastTop) > screen / 2 ? FAST_MARGIN : MARGIN);
    this.lastTop = top;
    const first = Math.max(0, Math.floor(top / margin) * margin - margin);
    const last = Math.min(items.length, (Math.ceil((top + screen) / margin) + 1) * margin);
    this.place(first, last);
  }

  /** Has the rows from `first` to `last` in the document, and the one with the focus, or the focus would be lost. */
  private place(first: number, last: number): void {
    const { items, rowHeight } = this.content;
    const isWanted = (index: number): boolean => (index >= first && index < last) || (index === this.active && index < items.length);
    const free: HTMLElement[] = [];
    for (const [index, element] of this.shown) {
      if (isWanted(index)) continue;
      this.shown.delete(index);
      free.push(element);
    }
    const enter = (index: number): void => {
      if (index >= items.length || this.shown.has(index)) return;
      const known = free.shift() ?? this.spare.pop();
      const element = known ?? this.painter.make();
      element.style.top = `${index * rowHeight}px`;
      this.shown.set(index, element);
      this.fill(element, index);
      if (!element.isConnected) this.body.append(element);
    };
    for (let index = first; index < last; index += 1) enter(index);
    enter(this.active);
    for (const element of free) element.remove();
    this.spare.push(...free);
  }

  private fill(element: HTMLElement, index: number): void {
    const item = this.content.items[index];
    if (item === undefined) return;
    element.style.height = `${this.content.rowHeight}px`;
    element.dataset["index"] = String(index);
    element.ariaRowIndex = String(index + 2);
    element.tabIndex = index === this.active ? 0 : -1;
    this.painter.fill(element, item);
  }

  private clamped(index: number): number {
    return Math.max(0, Math.min(this.content.items.length - 1, index));
  }

  private activate(index: number): void {
    const before = this.shown.get(this.active);
    this.active = index;
    if (before) before.tabIndex = -1;
    const now = this.shown.get(index);
    if (now) now.tabIndex = 0;
  }

  private moveTo(wanted: number): void {
    const { rowHeight, covered } = this.content;
    const index = this.clamped(wanted);
    const top = this.body.getBoundingClientRect().top + index * rowHeight;
    if (top < covered) scrollBy(0, top - covered);
    else if (top + rowHeight > innerHeight) scrollBy(0, top + rowHeight - innerHeight + rowHeight / 2);
    this.activate(index);
    this.show(MARGIN);
    this.shown.get(index)?.focus({ preventScroll: true });
  }

  private itemAt(target: EventTarget | null): [index: number, element: HTMLElement, item: T] | null {
    const element = target instanceof Element ? target.closest<HTMLElement>("[data-index]") : null;
    const index = Number(element?.dataset["index"]);
    const item = this.content.items[index];
    return element === null || item === undefined ? null : [index, element, item];
  }

  private readonly onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.active;
    const screen = Math.max(1, Math.floor((innerHeight - this.content.covered) / this.content.rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + screen, PageUp: at - screen, Home: 0, End: Infinity,
    };
    const next = steps[event.key];
    const item = this.content.items[at];
    if (next !== undefined) this.moveTo(next);
    else if (event.key === "Enter" && item !== undefined) this.content.onOpen(item);
    else return;
    event.preventDefault();
  };

  private readonly onClick = (event: MouseEvent): void => {
    // Text is selected to be copied, and a link opens by itself.
    if ((event.target as Element).closest("a") || !(getSelection()?.isCollapsed ?? true)) return;
    const found = this.itemAt(event.target);
    if (found) this.content.onOpen(found[2]);
  };

  private readonly onFocus = (event: FocusEvent): void => {
    const found = this.itemAt(event.target);
    if (found) this.activate(found[0]);
  };

  private readonly onPointerOver = (event: PointerEvent): void => {
    const found = this.itemAt(event.target);
    if (found) this.painter.explain(found[1], found[2]);
  };
}
