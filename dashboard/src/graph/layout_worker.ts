/** Lays graphs out beside the page, which stays responsive. */
import { layOut, type LayoutRequest } from "./layout";

self.onmessage = (message: MessageEvent<{ number: number; request: LayoutRequest }>) => {
  const { number, request } = message.data;
  try {
    self.postMessage({ number, layout: layOut(request) });
  } catch (error) {
    self.postMessage({ number, error: String(error) });
  }
};
