/** Spec, live and effective desired state of a resource side by side, with the rule that decided each field. */
import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { FieldRow, Fields, Id, Json, ResourceDetail } from "../api/contract";
import { Ago, Button, Empty, Failure, Path, Skeleton, useLoaded, Value } from "../components/parts";
import { plural } from "../model/format";

export const RULES: Record<string, [name: string, meaning: string]> = {
  spec: ["spec", "The spec names a value, and it wins"],
  default: ["default", "Absent from the spec: it returns to the documented default"],
  kept: ["kept", "Absent from the spec, and the author keeps what is live"],
  protected: ["protected", "Silence never gives up protection: the live value stays"],
  unmanaged: ["unmanaged", "The author handed it over: the live value stands, even against the spec"],
  ignored: ["ignored", "Unspecified fields are ignored: the live value stands"],
  serviceChosen: ["service", "The service chose the value"],
  immutable: ["immutable", "It is fixed when the object is created"],
  pruned: ["pruned", "Absent from the spec: it is unset"],
  generated: ["generated", "Its owner generates the value"],
  edited: ["edited", "Another writer edited what its owner generates, and the edit is kept"],
};

export function FieldsTab({ id, version, cookie }: { id: Id; version: string; cookie: ResourceDetail["cookie"] }) {
  const [loaded, again] = useLoaded(() => api.fields(id), id, version);
  const [text, setText] = useState("");
  const [rule, setRule] = useState("");
  const [isOnlyDifferent, setOnlyDifferent] = useState(false);
  const found = loaded.value;
  if (loaded.state === "failed" && !found) return <Failure error={loaded.error} retry={again} />;
  if (!found) return <Skeleton rows={14} />;
  const wanted = text.toLowerCase();
  const shown = found.fields.filter((one) => (!isOnlyDifferent || one.differs) && (rule === "" || one.rule === rule) && one.path.toLowerCase().includes(wanted));
  const rules = [...new Set(found.fields.map((one) => one.rule))];
  const different = found.fields.filter((one) => one.differs).length;
  return (
    <>
      <div class="toolbar" data-skip-export>
        <label class="search"><span class="visually-hidden">Search fields</span><input data-search type="search" placeholder="Filter fields" value={text} onInput={(event) => setText(event.currentTarget.value)} spellcheck={false} /></label>
        <label class="select"><span class="visually-hidden">Rule</span>
          <select value={rule} onChange={(event) => setRule(event.currentTarget.value)}>
            <option value="">All rules</option>
            {rules.map((one) => <option key={one} value={one}>{ruleName(one)}</option>)}
          </select>
        </label>
        <label class="check"><input type="checkbox" checked={isOnlyDifferent} onChange={(event) => setOnlyDifferent(event.currentTarget.checked)} />Only what differs ({different})</label>
        <span class="shown">{found.trouble ? "not read" : <>{found.isFresh ? "read" : "as of"} <Ago time={found.observedAt} none="the last step" /></>}</span>
        <Button icon="arrows" onClick={again} title="Read the live object again; nothing is written">Read again</Button>
      </div>
      {found.trouble && <p class="notice">The live object was not read: {found.trouble}</p>}
      <Moved cookie={cookie} digests={found.digests ?? null} />
      {shown.length === 0 ? <Empty title={found.fields.length ? "No field matches" : "No fields"} /> : <FieldTable fields={shown} isRead={!found.trouble} />}
      <p class="muted table-foot">{plural(found.fields.length, "field")}{found.trouble ? " of the spec; nothing was compared" : different === 0 ? ", of which none differs" : `, of which ${different} would change`}.</p>
    </>
  );
}

/** Which half of the cookie does not match what is there now. */
function Moved({ cookie, digests }: { cookie: ResourceDetail["cookie"]; digests: Fields["digests"] }) {
  if (!cookie || !digests) return null;
  const halves = (["intent", "live"] as const).map((half) => [half, cookie[half] === digests[half]] as const);
  return (
    <p class="halves">
      {halves.map(([half, isSame]) => <span key={half} title={`${cookie[half]} on record, ${digests[half]} now`}>{half === "intent" ? "Intent" : "Live"} <span class={isSame ? "match" : "moved"}>{isSame ? "as it was" : "moved"}</span></span>)}
      <span class="muted">{halves.every(([, isSame]) => isSame) ? "Both halves of the cookie match: the next step takes the fast path." : "A half of the cookie does not match: the next step compares in full."}</span>
    </p>
  );
}

function ruleName(rule: string): string {
  return RULES[rule]?.[0] ?? rule;
}

function FieldTable({ fields, isRead }: { fields: FieldRow[]; isRead: boolean }) {
  const found = (value: Json | undefined, isSecret: boolean) => (isRead ? <Value value={value} isSecret={isSecret} /> : <span class="absent">not known</span>);
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Fields">
      <table class="table fields">
        <thead><tr><th scope="col">Field</th><th scope="col">Spec</th><th scope="col">Live</th><th scope="col">Effective desired</th><th scope="col">Rule</th><th scope="col">Why</th></tr></thead>
        <tbody>
          {fields.map((one) => (
            <tr key={one.path} class={one.differs ? "differs" : undefined}>
              <th scope="row"><Path path={one.path} /></th>
              <td data-title="Spec"><Value value={one.spec} isSecret={one.isSecret} /></td>
              <td data-title="Live">{found(one.live, one.isSecret)}</td>
              <td data-title="Desired">{found(one.desired, one.isSecret)}</td>
              <td data-title="Rule"><span class={`rule rule-${one.rule}`} title={RULES[one.rule]?.[1]}>{ruleName(one.rule)}</span></td>
              <td data-title="Why" class="why">{one.reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
