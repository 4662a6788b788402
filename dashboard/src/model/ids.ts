/** The id of a resource: `KIND.GROUP/NAMESPACE/NAME`. */
import type { Id } from "../api/contract";

export interface ParsedId {
  kind: string;
  group: string;
  namespace: string;
  name: string;
}

export function parseId(id: Id): ParsedId {
  const [type = "", namespace = "", ...rest] = id.split("/");
  const [kind = "", ...group] = type.split(".");
  return { kind, group: group.join("."), namespace, name: rest.join("/") };
}

/** As a person would say it: `StorageBucket default/logs`. */
export function titleOf(id: Id): string {
  const { kind, namespace, name } = parseId(id);
  return `${kind} ${namespace}/${name}`;
}
