/** The part of the address after `#`: which view, and what it shows. */
import type { Id } from "../api/contract";

export type ResourceTab = "summary" | "fields" | "timeline" | "raw";
export type Route =
  | { view: "overview"; query: string }
  | { view: "graph"; values: URLSearchParams }
  | { view: "resource"; id: Id; tab: ResourceTab }
  | { view: "plan" }
  | { view: "upgrade" }
  | { view: "unknown"; path: string };

const TABS: readonly string[] = ["fields", "timeline", "raw"];

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  const values = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
  // A resource of the whole cluster has an empty namespace: `KIND.GROUP//NAME`.
  const parts = path.replace(/^\/|\/$/g, "").split("/").map(decode);
  switch (parts[0]) {
    case "":
    case undefined:
      return { view: "overview", query: values.get("q") ?? "" };
    case "graph":
      return { view: "graph", values };
    case "plan":
    case "upgrade":
      return { view: parts[0] };
    case "resource": {
      const tab = parts.length > 4 && TABS.includes(parts[4] ?? "") ? (parts[4] as ResourceTab) : "summary";
      return parts.length >= 4 && parts[3] !== "" ? { view: "resource", id: parts.slice(1, 4).join("/"), tab } : { view: "unknown", path };
    }
    default:
      return { view: "unknown", path };
  }
}

export function overviewHash(query = ""): string {
  return query === "" ? "#/" : `#/?${new URLSearchParams({ q: query }).toString()}`;
}

export function graphHash(values: Record<string, string> = {}): string {
  const known = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return known.size ? `#/graph?${known.toString()}` : "#/graph";
}

export function resourceHash(id: Id, tab: ResourceTab = "summary"): string {
  return `#/resource/${id.split("/").map(encodeURIComponent).join("/")}${tab === "summary" ? "" : `/${tab}`}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
