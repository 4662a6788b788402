/** What the next steps of the whole fleet would write: a page to hand to a reviewer. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Plan, PlannedResource } from "../api/contract";
import { Changes } from "../components/changes";
import { Ago, Button, Card, Empty, ExportButton, Failure, ResourceLink, Skeleton, useLoaded } from "../components/parts";
import { count, plural } from "../model/format";
import { parseId } from "../model/ids";
import { planProgress, session } from "../page/state";
import { tell } from "../page/toasts";

type GroupBy = "action" | "kind" | "namespace";
const ORDER = ["failed", "delete", "create", "update", "waiting", "held", "nothing"];
const ACTION_NAMES: Record<string, string> = { create: "Create", update: "Update", delete: "Delete", nothing: "Nothing", failed: "Failed", waiting: "Waiting", held: "Held" };
// Findings that need no reviewer: nothing would be written.
const QUIET = ["nothing", "in sync", "one-time"];
const MOST_OPEN = 40;

/** What would be done; where nothing would be written, why it is worth a look. */
function groupOf(planned: PlannedResource): string {
  return planned.action === "nothing" ? planned.finding || "nothing" : planned.action;
}

export function PlanView() {
  const progress = planProgress.value;
  const [loaded, again] = useLoaded(() => api.plan(), "plan", progress === null);
  const [groupBy, setGroupBy] = useState<GroupBy>("action");
  const plan = loaded.value;
  const isRunning = plan?.isRunning === true || progress !== null;
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(again, 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  const ask = async (request: () => Promise<Plan>): Promise<void> => {
    try {
      await request();
      again();
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), true);
    }
  };
  return (
    <div class="view plan" data-view="plan">
      <header class="view-head">
        <div class="view-title">
          <h1>Plan</h1>
          <p class="muted">What the next steps would write. Nothing is written to make it. {plan?.madeAt && <>Made <Ago time={plan.madeAt} />.</>}</p>
        </div>
        <div class="view-actions" data-skip-export>
          <label class="select"><span class="visually-hidden">Group by</span>
            <select value={groupBy} onChange={(event) => setGroupBy(event.currentTarget.value as GroupBy)}>
              <option value="action">By action</option><option value="kind">By kind</option><option value="namespace">By namespace</option>
            </select>
          </label>
          <Button icon="print" onClick={() => print()}>Print</Button>
          <ExportButton />
          {isRunning ? <Button icon="stop" onClick={() => void ask(api.cancelPlan)}>Cancel the plan</Button> :
            session.value?.hasPlan !== false && <Button icon="arrows" isPrimary onClick={() => void ask(api.startPlan)}>{plan?.madeAt ? "Plan again" : "Make a plan"}</Button>}
        </div>
      </header>
      {loaded.state === "failed" && <Failure error={loaded.error} retry={again} />}
      {plan === null ? loaded.state !== "failed" && <Skeleton rows={10} /> : <PlanBody plan={plan} groupBy={groupBy} progress={isRunning ? progress ?? plan : null} />}
    </div>
  );
}

function PlanBody({ plan, groupBy, progress }: { plan: Plan; groupBy: GroupBy; progress: { done: number; total: number } | null }) {
  const groups = grouped(plan.resources.filter((one) => !QUIET.includes(groupOf(one))), groupBy);
  return (
    <>
      {progress && <div class="progress" role="status"><progress max={Math.max(1, progress.total)} value={progress.done} aria-label="Planning" /><span>{count(progress.done)} of {count(progress.total)} planned</span></div>}
      {plan.isCancelled && !progress ? <p class="notice" role="status">The plan was cancelled.{plan.madeAt !== null && " Below is the one before it."}</p> : plan.error && <Failure error={new Error(plan.error)} />}
      {plan.madeAt !== null && (
        <ul class="plan-counts" aria-label="Resources by action">
          {countsOf(plan).map(([action, number]) => <li key={action} class={`action-${action}${number === 0 ? " is-none" : ""}`}><span class="number">{count(number)}</span><span>{ACTION_NAMES[action] ?? action}</span></li>)}
        </ul>
      )}
      {plan.madeAt === null && !progress ? <Empty title="No plan has been made yet">A plan reads every live object once, and writes nothing.</Empty> :
        groups.length === 0 && !progress ? <Empty title="Nothing to write">Every resource is as declared.</Empty> :
        groups.map(([name, resources]) => (
          <Card key={name} title={groupBy === "action" ? ACTION_NAMES[name] ?? name : name} count={resources.length}>
            <ul class="planned">{resources.map((one, number) => <Planned key={one.id} planned={one} isOpen={number < MOST_OPEN} />)}</ul>
          </Card>
        ))}
    </>
  );
}

/** The resources by what would be done; where nothing would be written, those with a reason are counted apart. */
function countsOf(plan: Plan): [string, number][] {
  const found = new Map<string, number>();
  for (const one of plan.resources) {
    const group = groupOf(one);
    if (one.action === "nothing" && !QUIET.includes(group)) found.set(group, (found.get(group) ?? 0) + 1);
  }
  const apart = [...found.values()].reduce((sum, number) => sum + number, 0);
  const counts = Object.entries(plan.counts).map(([action, number]): [string, number] => [action, action === "nothing" ? number - apart : number]);
  return [...counts, ...found];
}

function Planned({ planned, isOpen }: { planned: PlannedResource; isOpen: boolean }) {
  return (
    <li>
      <details open={isOpen}>
        <summary>
          <span class={`action action-${planned.action}`}>{ACTION_NAMES[groupOf(planned)] ?? groupOf(planned)}</span>
          <ResourceLink id={planned.id} />
          <span class="muted">{planned.action === "nothing" ? "" : planned.decision}</span>
          <span class="muted summary-end">{planned.fields.length > 0 && plural(planned.fields.length, "field")}</span>
        </summary>
        {planned.error && <p class={planned.action === "failed" ? "planned-error" : "planned-note"}>{planned.error}</p>}
        {planned.fields.length > 0 && <Changes fields={planned.fields} />}
      </details>
    </li>
  );
}

function grouped(resources: readonly PlannedResource[], by: GroupBy): [string, PlannedResource[]][] {
  const groups = new Map<string, PlannedResource[]>();
  for (const one of resources) {
    const name = by === "action" ? groupOf(one) : parseId(one.id)[by];
    const known = groups.get(name);
    if (known) known.push(one);
    else groups.set(name, [one]);
  }
  const place = (name: string): number => (by === "action" ? (ORDER.indexOf(name) + ORDER.length) % ORDER.length : 0);
  return [...groups].sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1));
}
