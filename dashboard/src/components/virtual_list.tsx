/** A list of any length: only the rows on the screen are in the document. */
import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { now } from "../page/clock";
import { rescheduled } from "../page/state";
import { type ListContent, ListWindow, type RowPainter } from "./list_window";

interface Props<T> extends ListContent<T> {
  label: string;
  header: ComponentChildren;
  painter: RowPainter<T>;
}

export function VirtualList<T>(props: Props<T>) {
  const body = useRef<HTMLDivElement>(null);
  const list = useRef<ListWindow<T> | null>(null);
  useLayoutEffect(() => {
    if (body.current === null) return;
    list.current = new ListWindow(body.current, props.painter);
    return () => list.current?.end();
  }, []);
  useLayoutEffect(() => list.current?.update(props));
  useSignalEffect(() => {
    now.value;
    rescheduled.value;
    list.current?.refill();
  });
  return (
    <div class="list" role="grid" aria-label={props.label} aria-rowcount={props.items.length + 1} data-export="list">
      {props.header}
      <div ref={body} class="list-body" role="rowgroup" />
    </div>
  );
}
