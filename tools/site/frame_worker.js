// Browsers start no worker from a folder. Where a page was opened from one, a worker is a hidden frame that runs the same script,
// and messages between the two are events. The search of the site needs no more of a worker than this.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class FrameWorker {
    constructor(url) {
      this.onmessage = null;
      this.onmessageerror = null;
      this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.scope = this.frame.contentWindow;
      this.scope.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
      this.loaded = new Promise((resolve) => {
        const script = this.scope.document.createElement("script");
        script.addEventListener("load", resolve);
        script.addEventListener("error", (event) => this.onerror?.(event));
        script.src = new URL(url, document.baseURI).href;
        this.scope.document.body.append(script);
      });
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.loaded.then(() => this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data: copy })));
    }

    terminate() {
      this.onmessage = null;
      this.frame.remove();
    }
  };
}
