/** A list of any length in the scroll of the window: only the rows on the screen are in the document. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// Rows beyond the screen; ranges move in steps of as many, so that most frames of a scroll render nothing.
const MARGIN = 12;

interface Props<T> {
  items: readonly T[];
  rowHeight: number;
  label: string;
  keyOf: (item: T) => string;
  rowClass: (item: T) => string;
  row: (item: T) => ComponentChildren;
  header: ComponentChildren;
  onOpen: (item: T) => void;
  /** The height of what sticks to the top of the window over the rows. */
  covered: number;
}

export function VirtualList<T>(props: Props<T>) {
  const { items, rowHeight, covered } = props;
  const body = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 40]);
  const [active, setActive] = useState(0);
  const isMoving = useRef(false);

  useLayoutEffect(() => {
    let frame = 0;
    const measure = (): void => {
      frame = 0;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const first = Math.floor(Math.max(0, -top) / rowHeight / MARGIN) * MARGIN - MARGIN;
      const last = first + Math.ceil(innerHeight / rowHeight / MARGIN) * MARGIN + 3 * MARGIN;
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    };
    const later = (): void => {
      if (frame === 0) frame = requestAnimationFrame(measure);
    };
    measure();
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", later);
      removeEventListener("resize", later);
    };
  }, [rowHeight, items.length]);

  const focused = Math.min(active, Math.max(0, items.length - 1));

  useEffect(() => {
    if (!isMoving.current) return;
    isMoving.current = false;
    body.current?.querySelector<HTMLElement>(`[data-index="${focused}"]`)?.focus({ preventScroll: true });
  }, [focused, range]);

  function moveTo(index: number): void {
    const next = Math.max(0, Math.min(items.length - 1, index));
    const top = (body.current?.getBoundingClientRect().top ?? 0) + next * rowHeight;
    if (top < covered) scrollBy(0, top - covered);
    else if (top + rowHeight > innerHeight) scrollBy(0, top + rowHeight - innerHeight + rowHeight / 2);
    isMoving.current = true;
    setActive(next);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const screen = Math.max(1, Math.floor((innerHeight - covered) / rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: focused + 1, j: focused + 1, ArrowUp: focused - 1, k: focused - 1, PageDown: focused + screen, PageUp: focused - screen,
      Home: 0, End: items.length - 1,
    };
    const next = steps[event.key];
    const item = items[focused];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (next !== undefined) moveTo(next);
    else if (event.key === "Enter" && item !== undefined) props.onOpen(item);
    else return;
    event.preventDefault();
  }

  const [first, last] = [Math.max(0, range[0]), Math.min(items.length, range[1])];
  const shown: number[] = [];
  // The row with the focus stays in the document, or the focus would be lost.
  if (focused < first && items.length > 0) shown.push(focused);
  for (let index = first; index < last; index += 1) shown.push(index);
  if (focused >= last && focused < items.length) shown.push(focused);

  return (
    <div class="list" role="grid" aria-label={props.label} aria-rowcount={items.length + 1} data-export="list">
      {props.header}
      <div ref={body} class="list-body" role="rowgroup" style={{ height: `${items.length * rowHeight}px` }} onKeyDown={onKeyDown}>
        {shown.map((index) => {
          const item = items[index] as T;
          return (
            <div
              key={props.keyOf(item)}
              class={`list-row ${props.rowClass(item)}`}
              role="row"
              aria-rowindex={index + 2}
              data-index={index}
              tabIndex={index === focused ? 0 : -1}
              style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}
              onFocus={() => setActive(index)}
              onClick={(event) => !(event.target as HTMLElement).closest("a") && props.onOpen(item)}
            >
              {props.row(item)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
