/** Fields before and after, as rows. */
import type { ChangedField } from "../api/contract";
import { oneLine } from "../model/format";
import { Path, Value } from "./parts";

export function Changes({ fields }: { fields: readonly ChangedField[] }) {
  // Of a drift and of a write only the names are on record.
  if (fields.every((one) => one.before === undefined && one.after === undefined))
    return <p class="field-names">{fields.map((one, number) => <span key={one.path}>{number > 0 && ", "}<Path path={one.path} /></span>)}</p>;
  return (
    <table class="changes">
      {/* The hidden head has no part in the layout, from which a fixed one takes its widths. */}
      <colgroup><col class="col-path" /><col /><col /><col class="col-why" /></colgroup>
      <thead class="visually-hidden"><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th><th scope="col">Why</th></tr></thead>
      <tbody>
        {fields.map((one) => (
          <tr key={one.path}>
            <th scope="row"><Path path={one.path} /></th>
            {one.before === undefined && one.after === undefined ? <td colSpan={2} /> : oneLine(one.before) === oneLine(one.after) ? <td colSpan={2}><Value value={one.after} /></td> : <><td class="before">{one.before === undefined ? <span class="absent" title="absent">–</span> : <Value value={one.before} />}</td>
            <td class="after">{one.after === undefined ? <span class="absent" title="absent">–</span> : <Value value={one.after} />}</td></>}
            <td class="why">{one.why}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
