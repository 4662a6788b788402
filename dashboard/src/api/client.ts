/** Requests to the server of the page. Every failure becomes an `ApiError`. */
import type {
  ActionName, Fields, Graph, Id, Plan, ResourceDetail, ResourcePage, Row, Session, Summary, Timeline, UpgradeReport,
} from "./contract";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }
}

const ROOT = "api/v1";

export const streamAddress = `${ROOT}/stream`;

async function request<T>(method: "GET" | "POST", path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method === "POST") {
    headers["Content-Type"] = "application/json";
    // The server refuses a POST without it: a form of another site cannot send it.
    headers["X-Setpoint"] = "1";
  }
  const options: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (method === "POST") options.body = JSON.stringify(body ?? {});
  if (signal) options.signal = signal;
  let response: Response;
  try {
    response = await fetch(`${ROOT}${path}`, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not answer.", "It may have ended. This page tries again by itself.");
  }
  const text = await response.text();
  const data: unknown = text === "" ? null : parsed(text);
  if (!response.ok) throw errorOf(response.status, data);
  return data as T;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function errorOf(status: number, data: unknown): ApiError {
  const found = (data as { error?: { code?: string; message?: string; hint?: string } } | null)?.error;
  return new ApiError(status, found?.code ?? "error", found?.message ?? `The server answered ${status}.`, found?.hint ?? null);
}

/** The path of a resource: the slashes between kind, namespace and name stay. */
function resourcePath(id: Id): string {
  return `/resources/${id.split("/").map(encodeURIComponent).join("/")}`;
}

function query(values: Record<string, string | number | null | undefined>): string {
  const known = Object.entries(values).filter((pair): pair is [string, string | number] => pair[1] != null && pair[1] !== "");
  return known.length ? `?${new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString()}` : "";
}

export const api = {
  signIn: (): Promise<{ signIn: "url" | "bearer"; isSignedIn: boolean }> => request("GET", "/sign-in"),
  session: (): Promise<Session> => request("GET", "/session"),
  login: (token: string): Promise<void> => request("POST", "/login", { token }),
  logout: (): Promise<void> => request("POST", "/logout"),
  resources: (cursor: string | null, limit: number): Promise<ResourcePage> =>
    request("GET", `/resources${query({ cursor, limit })}`),
  search: (q: string, signal: AbortSignal): Promise<{ ids: Id[] }> => request("GET", `/search${query({ q })}`, undefined, signal),
  summary: (): Promise<Summary> => request("GET", "/summary"),
  graph: (values: { namespace?: string; focus?: string; depth?: number }, signal?: AbortSignal): Promise<Graph> =>
    request("GET", `/graph${query(values)}`, undefined, signal),
  resource: (id: Id): Promise<ResourceDetail> => request("GET", resourcePath(id)),
  fields: (id: Id): Promise<Fields> => request("GET", `${resourcePath(id)}/fields`),
  timeline: (id: Id, before: string | null): Promise<Timeline> =>
    request("GET", `${resourcePath(id)}/timeline${query({ before, limit: 100 })}`),
  plan: (): Promise<Plan> => request("GET", "/plan"),
  startPlan: (): Promise<Plan> => request("POST", "/plan"),
  cancelPlan: (): Promise<Plan> => request("POST", "/plan/cancel"),
  upgrade: (): Promise<UpgradeReport> => request("GET", "/upgrade"),
  act: (id: Id, action: ActionName): Promise<{ row: Row }> => request("POST", `${resourcePath(id)}/actions/${action}`),
};
