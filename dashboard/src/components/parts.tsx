/** What all views are made of: states, times, values, links, and how it looks when there is nothing to show. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import type { Id, Json, State } from "../api/contract";
import { absolute, due, oneLine, relative, splitPath } from "../model/format";
import { parseId } from "../model/ids";
import { resourceHash } from "../model/route";
import { STATE_MEANINGS, stateName } from "../model/states";
import { now } from "../page/clock";
import { exportView } from "../page/export";
import { signedOut } from "../page/state";
import { tell } from "../page/toasts";
import { Icon, type IconName, STATE_ICONS } from "./icon";

export function StateBadge({ state }: { state: State }) {
  return (
    <span class={`state state-${state}`} title={STATE_MEANINGS[state]}>
      <Icon name={STATE_ICONS[state] ?? "question"} />
      {stateName(state)}
    </span>
  );
}

/** A time as a person would say it; the exact one is in its title. */
export function Ago({ time, none = "–", isDue = false }: { time: string | null | undefined; none?: string; isDue?: boolean }) {
  if (!time) return <span class="muted">{none}</span>;
  return <time dateTime={time} title={absolute(time)}>{(isDue ? due : relative)(time, Math.max(now.value, Date.now() - 1000))}</time>;
}

/** A value on one line; what is not there is told from what is null. */
export function Value({ value, isSecret = false }: { value: Json | undefined; isSecret?: boolean }) {
  if (value === undefined) return <span class="absent" title="absent">–</span>;
  const text = oneLine(value);
  if (isSecret) return <code class="value secret" title="A secret: its value never leaves the process">{text || "hidden"}</code>;
  return <code class={`value value-${value === null ? "null" : typeof value}`} title={text.length > 40 ? text : undefined}>{text}</code>;
}

export function Path({ path }: { path: string }) {
  const [before, last] = splitPath(path);
  return <code class="path" title={path}><span class="path-before">{before}</span><wbr />{last}</code>;
}

export function ResourceLink({ id, withKind = true }: { id: Id; withKind?: boolean }) {
  const { kind, namespace, name } = parseId(id);
  return (
    <a class="resource-link" href={resourceHash(id)}>
      {withKind && <span class="muted">{kind} </span>}
      <span class="muted">{namespace}/</span>{name}
    </a>
  );
}

export function Button(props: {
  onClick: () => void; children: ComponentChildren; icon?: IconName; isPrimary?: boolean; isDisabled?: boolean; label?: string; title?: string; isPressed?: boolean;
}) {
  const { onClick, children, icon, isPrimary, isDisabled, label, title, isPressed } = props;
  return (
    <button type="button" class={`button${isPrimary ? " primary" : ""}`} onClick={onClick} disabled={isDisabled ?? false} aria-label={label} title={title ?? label} aria-pressed={isPressed}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Copies a text; with an icon alone, beside what it copies. */
export function CopyButton({ text, title, isIcon = false }: { text: string; title: string; isIcon?: boolean }) {
  const copy = (): void => void navigator.clipboard.writeText(text).then(() => tell(`Copied: ${title}`), () => tell("The browser did not allow it", true));
  return (
    <button type="button" class={isIcon ? "icon-button" : "link-button"} onClick={copy} aria-label={`Copy ${title}`} title={`Copy ${title}`} data-skip-export>
      {isIcon ? <Icon name="copy" /> : "Copy"}
    </button>
  );
}

export function ExportButton() {
  return <Button icon="download" onClick={exportView} title="Save this view as one HTML file without scripts (x)">Export</Button>;
}

export function Card(props: { title: string; count?: string | number; children: ComponentChildren; actions?: ComponentChildren; class?: string }) {
  const id = `card-${props.title.replace(/\W+/g, "-").toLowerCase()}`;
  return (
    <section class={`card ${props.class ?? ""}`} aria-labelledby={id}>
      <header class="card-head">
        <h2 id={id}>{props.title}{props.count !== undefined && <span class="count">{props.count}</span>}</h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><p class="empty-title">{title}</p>{children && <p>{children}</p>}</div>;
}

export function Failure({ error, retry }: { error: ApiError | Error; retry?: () => void }) {
  const hint = "hint" in error ? error.hint : null;
  return (
    <div class="failure" role="alert">
      <Icon name="cross" />
      <div><p class="failure-title">{error.message}</p>{hint && <p>{hint}</p>}</div>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Grey bars of about the size of what is loading: nothing moves when it arrives. */
export function Skeleton({ rows }: { rows: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, number) => <div key={number} class={`bar bar-${number % 4}`} />)}
    </div>
  );
}

// While the server does not answer at all.
const RETRY_AFTER = 3_000;

export type Loaded<T> = { state: "loading"; value: T | null } | { state: "failed"; error: Error; value: T | null } | { state: "done"; value: T };

/** What `load` gives, again when `keys` change. The value of before stays until the next is there, unless `identity` changed. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, identity: string, version: unknown): [Loaded<T>, () => void] {
  const [found, setFound] = useState<{ identity: string; loaded: Loaded<T> }>({ identity, loaded: { state: "loading", value: null } });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then(
      (value) => !abort.signal.aborted && setFound({ identity, loaded: { state: "done", value } }),
      (error: Error) => {
        if (abort.signal.aborted) return;
        signedOut(error);
        setFound((old) => ({ identity, loaded: { state: "failed", error, value: old.identity === identity ? old.loaded.value : null } }));
      },
    );
    return () => abort.abort();
  }, [identity, version, tries]);
  const current: Loaded<T> = found.identity === identity ? found.loaded : { state: "loading", value: null };
  const isUnanswered = current.state === "failed" && current.error instanceof ApiError && current.error.status === 0;
  useEffect(() => {
    if (!isUnanswered) return;
    const timer = setTimeout(() => setTries((number) => number + 1), RETRY_AFTER);
    return () => clearTimeout(timer);
  }, [found]);
  return [current, () => setTries((number) => number + 1)];
}

export function useMedia(text: string): boolean {
  const [is, setIs] = useState(() => matchMedia(text).matches);
  useEffect(() => {
    const media = matchMedia(text);
    const heard = (): void => setIs(media.matches);
    media.addEventListener("change", heard);
    heard();
    return () => media.removeEventListener("change", heard);
  }, [text]);
  return is;
}
