/** Asks the worker for layouts; only the newest answer counts. */
import type { Layout, LayoutRequest } from "./layout";

export class LayoutClient {
  private readonly worker = new Worker(new URL("./layout_worker.ts", import.meta.url), { type: "module", name: "layout" });
  private number = 0;

  constructor(onLayout: (layout: Layout) => void, onError: (text: string) => void) {
    this.worker.onmessage = (message: MessageEvent<{ number: number; layout?: Layout; error?: string }>) => {
      if (message.data.number !== this.number) return;
      if (message.data.layout) onLayout(message.data.layout);
      else onError(message.data.error ?? "");
    };
    this.worker.onerror = (event) => onError(event.message);
  }

  ask(request: LayoutRequest): void {
    this.worker.postMessage({ number: (this.number += 1), request });
  }

  end(): void {
    this.worker.terminate();
  }
}
