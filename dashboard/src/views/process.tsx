/** How the process fares: rates, queues, budgets of requests, and who has which shards. */
import type { ProcessSummary, Summary } from "../api/contract";
import { Ago, Card } from "../components/parts";
import { count, duration, rate } from "../model/format";

export function ProcessColumn({ summary }: { summary: Summary }) {
  if (!summary.process && summary.processes.length === 0) return null;
  return (
    <aside class="process-column" aria-label="Process">
      {summary.process && <Rates process={summary.process} />}
      {summary.process && summary.process.queue.length > 0 && <Queues process={summary.process} />}
      {summary.processes.length > 0 && <Processes summary={summary} />}
      {summary.process && summary.process.budgets.length > 0 && <Budgets process={summary.process} />}
    </aside>
  );
}

const RATES: [key: keyof ProcessSummary["rates"], name: string][] = [
  ["steps", "Steps"], ["writes", "Writes"], ["requests", "Requests"], ["errors", "Errors"],
];

function Rates({ process }: { process: ProcessSummary }) {
  return (
    <Card title="Process" actions={<span class="muted">{process.phase}, up {duration(process.uptimeSeconds)}</span>}>
      <dl class="rates" title="Per second, over the last minute">
        {RATES.map(([key, name]) => (
          <div key={key} class={key === "errors" && process.rates[key] > 0 ? "is-bad" : undefined}>
            <dt>{name}</dt>
            <dd>{rate(process.rates[key])}<span class="unit">/s</span></dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function Queues({ process }: { process: ProcessSummary }) {
  return (
    <Card title="Queues" count={count(process.queue.reduce((sum, one) => sum + one.depth, 0))}>
      <table class="small-table">
        <thead><tr><th>Kind</th><th class="right">Waiting</th><th class="right">Oldest</th></tr></thead>
        <tbody>
          {process.queue.map((one) => (
            <tr key={one.kind}><td>{one.kind}</td><td class="right">{count(one.depth)}</td><td class="right">{duration(one.oldestSeconds)}</td></tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Budgets({ process }: { process: ProcessSummary }) {
  return (
    <Card title="Request budgets">
      <ul class="budgets">
        {process.budgets.map((one) => {
          const share = one.limit > 0 ? Math.min(1, one.used / one.limit) : 0;
          return (
            <li key={one.service}>
              <span class="budget-name" title={one.service}>{one.service.replace(/\.googleapis\.com$/, "")}</span>
              <span class="budget-figure">{one.isOpen ? <strong class="state-failed">circuit open</strong> : `${rate(one.used)} of ${rate(one.limit)}/s`}</span>
              <span class={`meter${share > 0.9 ? " is-high" : ""}`} aria-hidden="true"><span style={{ width: `${share * 100}%` }} /></span>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Processes({ summary }: { summary: Summary }) {
  return (
    <Card title="Processes" count={summary.processes.length}>
      <ul class="processes">
        {summary.processes.map((one) => (
          <li key={one.identity}>
            <span class="process-name" title={one.identity}>{one.identity}{one.isThis && <span class="tag">this</span>}</span>
            <span class="muted">{one.shards.length ? `shards ${one.shards.join(", ")}` : "no shards"} · renewed <Ago time={one.renewed} /></span>
            {one.state && <span class="muted">{rate(one.state.rates.steps)} steps/s · {count(one.state.queue.reduce((sum, { depth }) => sum + depth, 0))} waiting{one.state.rates.errors > 0 && <span class="state-failed"> · {rate(one.state.rates.errors)} errors/s</span>}</span>}
          </li>
        ))}
      </ul>
    </Card>
  );
}
