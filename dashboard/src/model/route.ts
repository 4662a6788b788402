/** The part of the address after `#`: which view, and what it shows. */
import type { Id } from "../api/contract";
import { SORT_KEYS, type Sorting, type SortKey } from "./fleet";

export type ResourceTab = "summary" | "fields" | "timeline" | "raw";
export type Route =
  | { view: "overview"; query: string; sorting: Sorting }
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
      return { view: "overview", query: values.get("q") ?? "", sorting: parseSorting(values.get("sort") ?? "") };
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

const UNSORTED: Sorting = { key: "default", isDescending: false };

/** `name`, or `-name` from the end to the beginning. */
function parseSorting(text: string): Sorting {
  const key = text.replace(/^-/, "") as SortKey;
  return SORT_KEYS.includes(key) ? { key, isDescending: text.startsWith("-") } : UNSORTED;
}

export function overviewHash(query = "", { key, isDescending }: Sorting = UNSORTED): string {
  const values = new URLSearchParams();
  if (query !== "") values.set("q", query);
  if (key !== "default") values.set("sort", `${isDescending ? "-" : ""}${key}`);
  return values.size ? `#/?${values.toString()}` : "#/";
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
