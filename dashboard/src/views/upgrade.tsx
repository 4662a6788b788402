/** The report of `setpoint verify-upgrade`: what another version would write. */
import { api } from "../api/client";
import type { UpgradeReport } from "../api/contract";
import { Button, Card, Empty, ExportButton, Failure, Path, Skeleton, useLoaded, Value } from "../components/parts";
import { count, plural } from "../model/format";
import { resourceHash } from "../model/route";
import { fleet } from "../page/state";

const VERDICTS: Record<string, [tone: "good" | "warn" | "bad", meaning: string]> = {
  same: ["good", "Both would write the same, or nothing."],
  "fewer writes": ["good", "The candidate writes nothing that the baseline would not."],
  "different writes": ["warn", "Both write, and the candidate something else."],
  "new writes": ["warn", "Only the candidate writes: now, or as soon as its cookie is gone."],
  broken: ["bad", "The candidate cannot plan it, tried to write meanwhile, or never settles."],
};

export function UpgradeView() {
  const [loaded, again] = useLoaded(() => api.upgrade(), "upgrade", 0);
  const report = loaded.value;
  return (
    <div class="view upgrade" data-view="upgrade">
      <header class="view-head">
        <div class="view-title">
          <h1>Upgrade report</h1>
          <p class="muted">{report?.baseline ? `${report.baseline} → ${report.candidate ?? ""}: the same world, planned by both versions` : "The same world, planned by two versions"}</p>
        </div>
        <div class="view-actions" data-skip-export><Button icon="print" onClick={() => print()}>Print</Button><ExportButton /></div>
      </header>
      {loaded.state === "failed" && <Failure error={loaded.error} retry={again} />}
      {report === null ? loaded.state !== "failed" && <Skeleton rows={8} /> : <Report report={report} />}
    </div>
  );
}

function Report({ report }: { report: UpgradeReport }) {
  const [tone, meaning] = VERDICTS[report.verdict] ?? ["warn", ""];
  return (
    <>
      <div class={`verdict verdict-${tone}`}><strong>{report.verdict}</strong><span>{meaning}</span></div>
      <ul class="plan-counts" aria-label="Resources by verdict">
        {Object.entries(report.summary).map(([verdict, number]) => <li key={verdict} class={`verdict-${VERDICTS[verdict]?.[0] ?? "warn"}`} title={VERDICTS[verdict]?.[1]}><span class="number">{count(number)}</span><span>{verdict}</span></li>)}
        {report.oneTime > 0 && <li title="The cookie does not match any more: one full comparison, without a write"><span class="number">{count(report.oneTime)}</span><span>one-time comparisons</span></li>}
      </ul>
      {[["Writes that were tried", report.blocked], ["Requests that are not recorded", report.missed]].map(([title, lines]) => lines && lines.length > 0 && (
        <Card key={title as string} title={title as string} count={lines.length}><ul class="lines">{(lines as string[]).map((line) => <li key={line}><code>{line}</code></li>)}</ul></Card>
      ))}
      {report.resources.length === 0 ? <Empty title="No resource differs">Both versions would write the same.</Empty> : (
        <Card title="Resources that differ" count={report.resources.length}>
          <div class="table-scroll" tabIndex={0} role="region" aria-label="Resources that differ">
            <table class="table">
              <thead><tr><th scope="col">Resource</th><th scope="col">Verdict</th><th scope="col">Baseline</th><th scope="col">Candidate</th><th scope="col">Fields</th></tr></thead>
              <tbody>{report.resources.map((one) => <ReportRow key={`${one.kind}.${one.group}/${one.namespace}/${one.name}`} one={one} />)}</tbody>
            </table>
          </div>
          <p class="muted table-foot">{plural(report.resources.length, "resource")}; those that are the same are only counted.</p>
        </Card>
      )}
    </>
  );
}

function ReportRow({ one }: { one: UpgradeReport["resources"][number] }) {
  const id = `${one.kind}.${one.group}/${one.namespace}/${one.name}`;
  const title = <><span class="muted">{one.kind} {one.namespace}/</span>{one.name}</>;
  return (
    <tr>
      <th scope="row">{fleet.get(id) ? <a href={resourceHash(id)}>{title}</a> : title}</th>
      <td><span class={`tag verdict-${VERDICTS[one.verdict]?.[0] ?? "warn"}`}>{one.verdict}</span></td>
      <td><Value value={one.baseline} /></td>
      <td><Value value={one.candidate} /></td>
      <td>{one.error ? <span class="planned-error">{one.error}</span> : <ul class="plain">{one.fields.map((field, number) => <li key={number}>{typeof field === "string" ? <Path path={field} /> : <Value value={field} />}</li>)}</ul>}</td>
    </tr>
  );
}
