/** One resource: its state, why it is so, its fields, its history and its raw objects. */
import { useState } from "preact/hooks";
import { api } from "../api/client";
import type { ActionName, Condition, Id, Json, Output, ResourceDetail, State } from "../api/contract";
import { Changes } from "../components/changes";
import { Dialog } from "../components/dialog";
import { Icon } from "../components/icon";
import { Ago, Button, Card, CopyButton, Empty, ExportButton, Failure, Path, ResourceLink, Skeleton, StateBadge, useLoaded, Value } from "../components/parts";
import { plural } from "../model/format";
import { titleOf, parseId } from "../model/ids";
import { toggleValue } from "../model/query";
import { graphHash, overviewHash, type ResourceTab, resourceHash } from "../model/route";
import { DRIFT_MEANINGS, driftName } from "../model/states";
import { toYaml } from "../model/yaml";
import { nextStepOf, rowOf, session } from "../page/state";
import { tell } from "../page/toasts";
import { FieldsTab } from "./fields";
import { Contests, contestsTitle, TimelineTab } from "./timeline";

const TABS: [tab: ResourceTab, title: string][] = [["summary", "Summary"], ["fields", "Fields"], ["timeline", "Timeline"], ["raw", "Raw objects"]];

export function ResourceView({ id, tab }: { id: Id; tab: ResourceTab }) {
  const current = rowOf(id);
  // What is shown is loaded anew when the row changed.
  const version = current ? `${current.state} ${current.lastStep} ${current.generation} ${current.message}` : "";
  const [loaded, retry] = useLoaded(() => api.resource(id), id, version);
  const detail = loaded.value;
  const { kind, namespace, name } = parseId(id);
  const row = current ?? detail?.row;
  if (loaded.state === "failed" && !row && "status" in loaded.error && loaded.error.status === 404) return <NoResource id={id} />;
  // How long its message is is not known before: nothing is drawn that it would move.
  if (!row && loaded.state === "loading") return <div class="view resource"><h1 class="visually-hidden">{titleOf(id)}</h1><Skeleton rows={14} /></div>;
  return (
    <div class="view resource" data-view={`${kind}-${name}`}>
      <nav class="crumbs" aria-label="Where this is" data-skip-export><a href="#/">Overview</a><span aria-hidden="true">/</span><a href={overviewHash(toggleValue("", "kind", kind))}>{kind}</a>{namespace && <><span aria-hidden="true">/</span><a href={overviewHash(toggleValue("", "ns", namespace))}>{namespace}</a></>}</nav>
      <header class="view-head">
        <div class="view-title">
          <h1>{name}<CopyButton text={name} title="the name" isIcon /></h1>
          <p class="muted place"><span>{kind}{namespace && ` in ${namespace}`}{detail?.location && " ·"}</span>{detail?.location && <><code title={detail.location}>{detail.locationText ?? detail.location}</code><CopyButton text={detail.location} title="the location" isIcon /></>}</p>
        </div>
        <div class="view-actions" data-skip-export>
          <Actions id={id} isPaused={row?.state === "paused"} />
          <a class="button" href={graphHash({ focus: id })}><Icon name="graph" />Graph</a>
          <ExportButton />
        </div>
      </header>
      <p class="resource-state">
        {row ? <><StateBadge state={row.state} />{row.drifted && <span class={`drifted drift-${row.drift}`} title={DRIFT_MEANINGS[row.drift]}>{driftName(row)}</span>}<span class="resource-message">{row.message || row.reason}</span></> : <span class="bar bar-1" />}
      </p>
      <Labels labels={row?.labels ?? {}} />
      <Tabs id={id} tab={tab} />
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${tab}`} class="tab-panel" tabIndex={0}>
        {/* The other parts say by themselves that they could not be loaded. */}
        {loaded.state === "failed" && (tab === "summary" || tab === "raw") && <Failure error={loaded.error} retry={retry} />}
        {tab === "fields" ? <FieldsTab id={id} version={version} cookie={detail?.cookie ?? null} /> : tab === "timeline" ? <TimelineTab id={id} version={version} contests={detail?.contests ?? []} /> :
          detail === null ? loaded.state !== "failed" && <Skeleton rows={12} /> :
          tab === "raw" ? <RawTab id={id} version={version} detail={detail} /> : <SummaryTab detail={detail} />}
      </div>
    </div>
  );
}

/** Each label leads to all resources that have it. */
function Labels({ labels }: { labels: Record<string, string> }) {
  if (Object.keys(labels).length === 0) return null;
  return (
    <ul class="labels" aria-label="Labels">
      {Object.entries(labels).map(([label, value]) => <li key={label}><a class="tag" href={overviewHash(toggleValue("", "label", `${label}=${value}`))}>{label}={value}</a></li>)}
    </ul>
  );
}

function NoResource({ id }: { id: Id }) {
  return (
    <div class="view">
      <h1 class="visually-hidden">{titleOf(id)}</h1>
      <Empty title="There is no such resource, or you may not see it"><code>{id}</code></Empty>
      <p class="empty-links"><a class="button" href={overviewHash()}>All resources</a><a class="button" href={overviewHash(toggleValue("", "name", parseId(id).name))}>Search for the name</a></p>
    </div>
  );
}

function Tabs({ id, tab }: { id: Id; tab: ResourceTab }) {
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = TABS.findIndex(([name]) => name === tab);
    const next = TABS[(at + step + TABS.length) % TABS.length]?.[0] ?? "summary";
    location.hash = resourceHash(id, next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Parts of the resource" onKeyDown={onKeyDown} data-skip-export>
      {TABS.map(([name, title]) => (
        <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={name === tab} aria-controls="tab-panel" tabIndex={name === tab ? 0 : -1} onClick={() => (location.hash = resourceHash(id, name))}>
          {title}
        </button>
      ))}
    </div>
  );
}

// --- Actions ---------------------------------------------------------------------------------------------------------

const ACTIONS: Record<ActionName, { title: string; icon: "arrows" | "pause" | "play"; text: string; done: string }> = {
  reconcile: { title: "Reconcile", icon: "arrows", text: "A step is taken now, whatever the backoff says. It may write to the live object, as any step may.", done: "A step was asked for" },
  pause: { title: "Pause", icon: "pause", text: "Nothing of it is read or written until it is resumed. Drift is not corrected meanwhile.", done: "Paused" },
  resume: { title: "Resume", icon: "play", text: "It is reconciled again, beginning with a step now. Drift that came up meanwhile is corrected.", done: "Resumed" },
};

function Actions({ id, isPaused }: { id: Id; isPaused: boolean }) {
  const [asked, setAsked] = useState<ActionName | null>(null);
  const [isBusy, setBusy] = useState(false);
  const allowed = (session.value?.actions ?? []).filter((action) => (action === "pause" ? !isPaused : action === "resume" ? isPaused : !isPaused));
  const act = async (action: ActionName): Promise<void> => {
    setBusy(true);
    try {
      await api.act(id, action);
      tell(`${ACTIONS[action].done}: ${titleOf(id)}`);
      setAsked(null);
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), true);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {/* Pause becomes Resume, and keeps the focus. */}
      {allowed.map((action) => <Button key={action === "reconcile" ? action : "management"} icon={ACTIONS[action].icon} onClick={() => setAsked(action)}>{ACTIONS[action].title}</Button>)}
      {asked && (
        <Dialog title={`${ACTIONS[asked].title} ${titleOf(id)}?`} onClose={() => setAsked(null)}>
          <p>{ACTIONS[asked].text}</p>
          <div class="dialog-actions">
            <Button onClick={() => setAsked(null)}>Cancel</Button>
            <Button isPrimary isDisabled={isBusy} onClick={() => void act(asked)}>{ACTIONS[asked].title}</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

// --- Summary ---------------------------------------------------------------------------------------------------------

function SummaryTab({ detail }: { detail: ResourceDetail }) {
  return (
    <div class="cards">
      <div class="cards-column">
        <Card title="Conditions" count={detail.conditions.length}><Conditions detail={detail} /></Card>
        {detail.contests.length > 0 && <Card title={contestsTitle(detail.contests)} count={detail.contests.length}><Contests contests={detail.contests} /></Card>}
        <Card title="Last step on record"><LastStep detail={detail} /></Card>
        <Card title="Events" count={detail.events.length}><Events detail={detail} /></Card>
      </div>
      <div class="cards-column">
        <Card title="Cookie"><Cookie detail={detail} /></Card>
        {detail.outputs.length > 0 && <Card title="Outputs" count={detail.outputs.length}><Outputs outputs={detail.outputs} /></Card>}
        <Card title="Needs" count={detail.dependsOn.length}><Links ids={detail.dependsOn} none="It needs no other resource." /></Card>
        <Card title="Needed by" count={detail.dependants.length}><Links ids={detail.dependants} none="No other resource needs it." /></Card>
        {(detail.owner !== null || detail.children.length > 0) && (
          <Card title="Ownership">
            {detail.owner && <p class="card-line">Owned by <ResourceLink id={detail.owner} /></p>}
            {detail.children.length > 0 && <Links ids={detail.children} none="" />}
          </Card>
        )}
      </div>
    </div>
  );
}

function Conditions({ detail }: { detail: ResourceDetail }) {
  if (detail.conditions.length === 0) return <Empty title="No step has been taken yet" />;
  return (
    <ul class="conditions">
      {detail.conditions.map((one) => (
        <li key={one.type}>
          <span class="condition-head">
            <span class={`condition-status ${statusClass(one, detail.row.state)}`}>{one.type} {one.status}</span>
            <span>{one.reason}</span>
            <Ago time={one.lastTransitionTime} none="" />
          </span>
          {one.message && <p class="condition-message">{one.message}</p>}
        </li>
      ))}
    </ul>
  );
}

// What is true of them is no good news.
const TROUBLES = ["Contested", "Edited", "Warned"];

// A resource that is not ready for another reason waits, or is left alone: that is no failure.
const FAILURES: State[] = ["failed", "notConverged"];

function statusClass({ type, status }: Condition, state: State): string {
  if (status === "True" && TROUBLES.includes(type)) return "status-unknown";
  if (type === "Ready" && status === "False" && !FAILURES.includes(state)) return "status-unknown";
  return `status-${status.toLowerCase()}`;
}

function LastStep({ detail }: { detail: ResourceDetail }) {
  const step = detail.lastStep;
  const next = detail.nextStep;
  const time = nextStepOf(detail.row.id) ?? next?.time ?? null;
  // Where a process says when, the rule behind it is of no use.
  const due: [string, preact.ComponentChildren][] = next ? [["Next step", time ? <><Ago time={time} isDue />, <span class="muted">or at once after an edit</span></> : next.why || "not planned"]] : [];
  if (!step) {
    return (
      <>
        {detail.row.state === "observed" ? <Empty title="It is only observed">What its steps find is in the condition Ready, and among the fields.</Empty> :
          detail.row.state === "paused" ? <Empty title="It is paused">No step is taken until it is resumed.</Empty> :
          detail.conditions.length > 0 ? <Empty title="Nothing was compared yet">No step has read the live object so far. The condition Ready says why.</Empty> : <Empty title="No step has been taken yet" />}
        {due.length > 0 && <Pairs rows={due} />}
      </>
    );
  }
  const rows: [string, preact.ComponentChildren][] = [
    ["When", <Ago time={step.time} />],
    ["Trigger", step.trigger],
    ["Decision", step.decision],
    ...(step.moved.length ? [["Moved", step.moved.join(", ")] satisfies [string, string]] : []),
    ["Writes", step.writes.length ? <ul class="plain">{step.writes.map((one, number) => <li key={number}><strong>{one.action}</strong>{one.name !== one.action && ` ${one.name}`}{one.fields.length > 0 && <Changes fields={one.fields} />}{one.more > 0 && <span class="muted">and {plural(one.more, "field")} more</span>}</li>)}</ul> : "none"],
  ];
  if (step.kept?.length) rows.push(["Kept", <Changes fields={step.kept} />]);
  if (step.withheld?.length) rows.push(["Withheld", <Changes fields={step.withheld} />]);
  if (step.note) rows.push(["Note", step.note]);
  return <Pairs rows={[...rows, ...due]} />;
}

function Pairs({ rows }: { rows: [string, preact.ComponentChildren][] }) {
  return <dl class="pairs">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

function Cookie({ detail }: { detail: ResourceDetail }) {
  const { cookie, digests } = detail;
  if (!cookie) return <Empty title="No cookie">It is compared in full at every step, or was never settled.</Empty>;
  return (
    <>
      <dl class="pairs cookie">
        {(["intent", "live"] as const).map((half) => {
          const now = digests?.[half];
          const isSame = now === cookie[half];
          return (
            <div key={half}>
              <dt>{half === "intent" ? "Intent" : "Live"}</dt>
              <dd>
                <code title={cookie[half]}>{cookie[half].slice(0, 12)}…</code>
                {now && <span class={isSame ? "match" : "moved"} title={now}>{isSame ? "as it was" : `moved to ${now.slice(0, 12)}…`}</span>}
              </dd>
            </div>
          );
        })}
      </dl>
      {detail.isFast !== null && <p class="card-line muted">{detail.isFast ? "Both halves match: the next step takes the fast path." : "A half does not match: the next step compares in full."}</p>}
    </>
  );
}

function Outputs({ outputs }: { outputs: Output[] }) {
  return (
    <ul class="outputs">
      {outputs.map((one) => (
        <li key={one.path}>
          <Path path={one.path} />
          <span class={`tag output-${one.state}`}>{one.state}</span>
          {one.state === "known" ? <Value value={one.value} /> : one.reason && <span class="muted">{one.reason}</span>}
        </li>
      ))}
    </ul>
  );
}

function Events({ detail }: { detail: ResourceDetail }) {
  if (detail.events.length === 0) return <Empty title="No events" />;
  return (
    <ul class="events">
      {detail.events.toReversed().map((one, number) => (
        <li key={number} class={one.severity.toLowerCase() === "warning" ? "is-warning" : undefined}>
          <span class="event-head"><strong>{one.reason}</strong>{one.count > 1 && <span class="count">×{one.count}</span>}<Ago time={one.at} none="" /></span>
          <p>{one.message}</p>
        </li>
      ))}
    </ul>
  );
}

const MOST_LINKS = 12;

function Links({ ids, none }: { ids: Id[]; none: string }) {
  const [isWhole, setWhole] = useState(false);
  if (ids.length === 0) return <p class="card-line muted">{none}</p>;
  return (
    <ul class="links">
      {(isWhole ? ids : ids.slice(0, MOST_LINKS)).map((id) => {
        const row = rowOf(id);
        return <li key={id}>{row && <StateBadge state={row.state} />}<ResourceLink id={id} /></li>;
      })}
      {ids.length > MOST_LINKS && !isWhole && <li><button type="button" class="link-button" onClick={() => setWhole(true)}>Show all {ids.length}</button></li>}
    </ul>
  );
}

// --- Raw -------------------------------------------------------------------------------------------------------------

function RawTab({ id, version, detail }: { id: Id; version: string; detail: ResourceDetail }) {
  // The live object is read now, as it is for the fields.
  const [read] = useLoaded(() => api.fields(id), id, version);
  const live = detail.live ?? read.value?.liveObject ?? null;
  const parts: [title: string, value: Json][] = [["Manifest", detail.manifest], ["Status", detail.status], ["Live object", live]];
  return (
    <div class="raw">
      {parts.map(([title, value]) => (
        <Card key={title} title={title} actions={value !== null && <CopyButton text={toYaml(value)} title={title} />}>
          {value === null ? title === "Live object" && read.state === "loading" ? <Skeleton rows={6} /> : <Empty title="None">{title === "Live object" && (read.value?.trouble || "There is no live object, or it was not read.")}</Empty> : <pre tabIndex={0} aria-label={title}>{toYaml(value)}</pre>}
        </Card>
      ))}
    </div>
  );
}
