/** The first view: what needs attention, how much there is of what, how the process fares, and the list of everything. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AttentionItem, State, Summary } from "../api/contract";
import { STATES } from "../api/contract";
import { Icon, STATE_ICONS } from "../components/icon";
import { Ago, Card, Empty, ExportButton, ResourceLink, Skeleton, StateBadge, useMedia } from "../components/parts";
import { VirtualList } from "../components/virtual_list";
import type { SortKey } from "../model/fleet";
import { absolute, count, plural } from "../model/format";
import { parseId } from "../model/ids";
import { hasValue, type TermName, toggleValue } from "../model/query";
import { overviewHash, resourceHash } from "../model/route";
import { driftName, STATE_MEANINGS, stateName } from "../model/states";
import { replaceInExport } from "../page/export";
import { expected, fleet, query, searchFields, session, shownRows, sorting, summary } from "../page/state";
import { ProcessColumn } from "./process";
import { resourceRow } from "./resource_row";

const COLUMNS: [key: SortKey | null, title: string][] = [
  ["state", "State"], ["drift", "Drift"], ["name", "Name"], ["kind", "Kind"], ["namespace", "Namespace"], [null, "Message"], ["lastStep", "Last action"], ["nextStep", "Next step"],
];
const EXPLAINED: Record<string, string> = { "Last action": "The last step that did or found something: one that finds nothing to do leaves no record" };
const FIRST_ATTENTION = 5;
// So many are not worth a fold.
const MOST_ATTENTION = 7;

export function Overview() {
  const found = summary.value;
  return (
    <div class="view overview" data-view="overview">
      <h1 class="visually-hidden">Overview</h1>
      <StateStrip summary={found} />
      {/* Which columns there are is known with the summary: until then nothing is drawn that would move. */}
      {found === null ? <Skeleton rows={20} /> : (
        <div class={`columns${found.process || found.processes.length ? " with-process" : ""}`}>
          <Facets summary={found} />
          <div class="main-column">
            <Attention items={found.attention} />
            <ResourceList />
          </div>
          <ProcessColumn summary={found} />
        </div>
      )}
    </div>
  );
}

function setQuery(text: string): void {
  location.hash = overviewHash(text, sorting.peek());
}

function toggle(name: TermName, value: string): void {
  setQuery(toggleValue(query.peek(), name, value));
}

/** All resources as one bar, and the number in each state. */
function StateStrip({ summary: found }: { summary: Summary | null }) {
  const states = STATES.filter((state) => (found?.byState[state] ?? 0) > 0).toReversed();
  // What is well first, then by severity.
  const inOrder = ["ready" as State, ...states.toReversed()].filter((state, index, all) => all.indexOf(state) === index && states.includes(state));
  return (
    <section class="strip" aria-label="Resources by state">
      <div class="strip-bar" aria-hidden="true">
        {states.map((state) => <span key={state} class={`segment fill-${state}`} style={{ flexGrow: found?.byState[state] ?? 0 }} />)}
      </div>
      <ul class="strip-counts">
        <li class="strip-total"><span class="number">{found ? count(found.total) : "–"}</span><span class="strip-name">{found?.total === 1 ? "resource" : "resources"}</span></li>
        {(found ? inOrder : (["ready", "failed", "blocked"] as State[])).map((state) => (
          <li key={state}>
            <button type="button" class={`strip-count state-${state}`} aria-pressed={hasValue(query.value, "state", state)} title={STATE_MEANINGS[state]} onClick={() => toggle("state", state)}>
              <span class="number">{found ? count(found.byState[state] ?? 0) : "–"}</span>
              <span class="strip-name"><Icon name={STATE_ICONS[state]} />{stateName(state)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Facets({ summary: found }: { summary: Summary }) {
  const isNarrow = useMedia("(max-width: 899px)");
  const body = (
    <>
      <FacetGroup title="Kinds" term="kind" values={found.byKind.map((one) => [one.kind, one.total, one.byState])} />
      <FacetGroup title="Namespaces" term="ns" values={found.byNamespace.map((one) => [one.namespace, one.total, null])} />
    </>
  );
  if (isNarrow) return <details class="facets card"><summary>Kinds and namespaces</summary>{body}</details>;
  return <aside class="facets" aria-label="Filters">{body}</aside>;
}

function FacetGroup(props: { title: string; term: TermName; values: [string, number, Partial<Record<State, number>> | null][] }) {
  return (
    <section class="facet-group">
      <h2>{props.title}<span class="count">{props.values.length}</span></h2>
      <ul>
        {props.values.map(([value, total, byState]) => (
          <li key={value}>
            <button type="button" class="facet" aria-pressed={hasValue(query.value, props.term, value)} onClick={() => toggle(props.term, value)} title={value}>
              <span class="facet-name">{value}</span>
              <span class="facet-total">{count(total)}</span>
              {byState && <MiniBar byState={byState} />}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function MiniBar({ byState }: { byState: Partial<Record<State, number>> }) {
  return (
    <span class="mini-bar" aria-hidden="true">
      {STATES.toReversed().map((state) => (byState[state] ?? 0) > 0 && <span key={state} class={`fill-${state}`} style={{ flexGrow: byState[state] ?? 0 }} />)}
    </span>
  );
}

function Attention({ items }: { items: AttentionItem[] }) {
  const [isWhole, setWhole] = useState(false);
  if (items.length === 0) return null;
  const isFolded = !isWhole && items.length > MOST_ATTENTION;
  const more = items.length > MOST_ATTENTION && (
    <button type="button" class="link-button" data-skip-export aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? "Show fewer" : `Show all ${items.length}${items.length === 50 ? "+" : ""}`}</button>
  );
  return (
    <Card title="Needs attention" count={items.length === 50 ? "50+" : items.length} actions={more} class="attention">
      <ul>
        {items.map((item, number) => (
          <li key={item.id} class={`attention-row${isFolded && number >= FIRST_ATTENTION ? " is-folded" : ""}`}>
            <StateBadge state={item.state} />
            <ResourceLink id={item.id} />
            <span class="attention-message" title={item.message}>{item.message || item.reason}</span>
            <Ago time={item.since} none="" />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function ResourceList() {
  const isPhone = useMedia("(max-width: 699px)");
  const rows = shownRows.value;
  const text = query.value;
  const total = expected.value;
  useEffect(() => replaceInExport("list", fullTable), []);
  return (
    <section class="resources" aria-labelledby="resources-title">
      <div class="toolbar">
        <h2 id="resources-title" class="visually-hidden">Resources</h2>
        <Search />
        <span class="shown" role="status">
          {text === "" ? plural(fleet.size, "resource") : `${count(rows.length)} of ${plural(fleet.size, "resource")}`}
          {total !== null && total > fleet.size && <span class="muted"> (loading {count(total)})</span>}
        </span>
        {text !== "" && <code class="only-exported">{text}</code>}
        <span data-skip-export><ExportButton /></span>
      </div>
      {total === null ? <div class="list"><Skeleton rows={16} /></div> : rows.length > 0 ? (
        <VirtualList
          items={rows}
          rowHeight={isPhone ? 56 : 32}
          label="Resources"
          covered={isPhone ? 104 : 132}
          painter={resourceRow}
          header={<Header />}
          onOpen={(row) => (location.hash = resourceHash(row.id))}
        />
      ) : (
        <Nothing text={text} />
      )}
    </section>
  );
}

function Nothing({ text }: { text: string }) {
  if (text === "" && session.value?.user) return <Empty title="No resource that you may see">Your user {session.value.user} may list no kind of resource in any namespace that has some. A role with the verb list shows them.</Empty>;
  if (text === "") return <Empty title="No resources yet">Declare some by <code>setpoint apply -f FILE</code>. They appear here at once.</Empty>;
  return (
    <div class="empty">
      <p class="empty-title">No resource matches</p>
      <p><code>{text}</code></p>
      <button type="button" class="button" onClick={() => setQuery("")}>Clear the search</button>
    </div>
  );
}

function Header() {
  const { key, isDescending } = sorting.value;
  const sortBy = (column: SortKey): void => {
    const isSame = key === column;
    location.hash = overviewHash(query.peek(), isSame && isDescending ? undefined : { key: column, isDescending: isSame });
  };
  return (
    <div class="list-head" role="rowgroup">
      <div class="list-head-row" role="row" aria-rowindex={1}>
        {COLUMNS.map(([column, title]) => (
          <span key={title} role="columnheader" aria-sort={column !== null && column === key ? (isDescending ? "descending" : "ascending") : undefined}>
            {column === null ? title : (
              <button type="button" title={EXPLAINED[title]} onClick={() => sortBy(column)}>{title}<span class="sort-mark" aria-hidden="true">{column === key ? (isDescending ? "↓" : "↑") : ""}</span></button>
            )}
          </span>
        ))}
      </div>
    </div>
  );
}

/** The search keeps what is typed, and hands it to the address a moment later. */
function Search() {
  const [text, setText] = useState(query.value);
  const typed = useRef(query.peek());
  const input = useRef<HTMLInputElement>(null);
  useSignalEffect(() => {
    // A filter or the back button changed it.
    if (query.value !== typed.current) {
      typed.current = query.value;
      setText(query.value);
    }
  });
  useEffect(() => {
    if (text === query.peek()) return;
    const timer = setTimeout(() => {
      typed.current = text;
      history.replaceState(null, "", overviewHash(text, sorting.peek()));
      dispatchEvent(new HashChangeEvent("hashchange"));
    }, 120);
    return () => clearTimeout(timer);
  }, [text]);
  const wanted = query.value;
  useEffect(() => {
    const abort = new AbortController();
    searchFields(wanted, abort.signal).catch(() => undefined);
    return () => abort.abort();
  }, [wanted]);
  return (
    <label class="search" data-skip-export>
      <span class="visually-hidden">Search</span>
      <Icon name="search" />
      <input
        ref={input}
        data-search
        type="search"
        placeholder="Search: a name, state:failed, kind:SQL, ns:prod, label:app=web, field:tier"
        title="Words, and terms: state: kind: ns: name: label: reason: field: is:drifted. A minus before a term turns it around."
        spellcheck={false}
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            setText("");
            input.current?.blur();
          } else if (event.key === "ArrowDown" || event.key === "Enter") {
            document.querySelector<HTMLElement>('.list-row[tabindex="0"]')?.focus();
            event.preventDefault();
          }
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

/** All rows that are shown, as a plain table: for files. */
function fullTable(): Node {
  const table = document.createElement("table");
  table.className = "table";
  const head = table.createTHead().insertRow();
  for (const title of ["State", "Drift", "Name", "Kind", "Namespace", "Reason", "Message", "Last action", "Next step"]) {
    const cell = document.createElement("th");
    cell.textContent = title;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of shownRows.peek()) {
    const { kind, namespace, name } = parseId(row.id);
    const line = body.insertRow();
    for (const text of [stateName(row.state), driftName(row), name, kind, namespace, row.reason, row.message, row.lastStep ? absolute(row.lastStep) : "", row.nextStep ? absolute(row.nextStep) : ""]) line.insertCell().textContent = text;
    line.cells[0]?.classList.add(`state-${row.state}`);
  }
  return table;
}
