/** The stream of changes: server-sent events, taken up again after a failure. */
import { streamAddress } from "./client";
import type { NextStepsEvent, ResourcesEvent, Summary } from "./contract";

export type StreamState = "connecting" | "live" | "reconnecting" | "off";

export interface StreamListener {
  state(state: StreamState): void;
  resources(event: ResourcesEvent): void;
  nextSteps(event: NextStepsEvent): void;
  summary(summary: Summary): void;
  plan(progress: { done: number; total: number } | null): void;
  /** Why the server cannot read the store, so that what it sends may be old. */
  trouble(message: string | null): void;
  /** What was loaded is out of date. */
  reset(): void;
  /** The server refused the stream: the session may have ended. */
  refused(): void;
}

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;

/** Follows the stream from a revision on, until the function that it returns is called. */
export function followStream(since: number | string | null, listener: StreamListener): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delay = FIRST_DELAY;
  let isEnded = false;
  // The browser's own retry sends it as Last-Event-ID; a new stream has to be told.
  let last = since;

  function open(): void {
    source = new EventSource(last === null ? streamAddress : `${streamAddress}?since=${encodeURIComponent(last)}`);
    source.onopen = () => {
      delay = FIRST_DELAY;
      // A new stream tells it again.
      listener.trouble(null);
      listener.state("live");
    };
    source.onerror = () => {
      listener.state("reconnecting");
      if (source?.readyState !== EventSource.CLOSED || isEnded) return;
      listener.refused();
      timer = setTimeout(open, delay);
      delay = Math.min(delay * 2, LONGEST_DELAY);
    };
    on<ResourcesEvent>("resources", (data) => listener.resources(data));
    on<NextStepsEvent>("nextSteps", (data) => listener.nextSteps(data));
    on<Summary>("summary", (data) => listener.summary(data));
    on<{ done: number; total: number } | null>("plan", (data) => listener.plan(data));
    on<{ message: string | null }>("trouble", (data) => listener.trouble(data.message));
    source.addEventListener("reset", (event) => {
      remember(event);
      listener.reset();
    });
  }

  function on<T>(name: string, heard: (data: T) => void): void {
    source?.addEventListener(name, (event) => {
      remember(event);
      heard(JSON.parse((event as MessageEvent<string>).data) as T);
    });
  }

  function remember(event: Event): void {
    const id = (event as MessageEvent<string>).lastEventId;
    if (id !== "") last = id;
  }

  listener.state("connecting");
  open();
  return () => {
    isEnded = true;
    clearTimeout(timer);
    source?.close();
    listener.state("off");
  };
}
