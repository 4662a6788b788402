/** The frame of all views: navigation, the state of the stream, help, messages. */
import { useEffect, useRef } from "preact/hooks";
import { Dialog } from "../components/dialog";
import { Icon, type IconName } from "../components/icon";
import { Ago, Button, Empty, Failure, Skeleton } from "../components/parts";
import { absolute } from "../model/format";
import { titleOf } from "../model/ids";
import { graphHash, overviewHash, type Route } from "../model/route";
import { GraphView } from "../views/graph";
import { Overview } from "../views/overview";
import { PlanView } from "../views/plan";
import { ResourceView } from "../views/resource";
import { SignInView } from "../views/sign_in";
import { UpgradeView } from "../views/upgrade";
import { handleKey, isHelpOpen, KEYS } from "./keys";
import { keepScroll, restoreScroll } from "./scroll";
import { hasShortcuts, isDark, setShortcuts, toggleTheme } from "./settings";
import { leave, loadError, open, route, session, signIn, storeTrouble, streamState } from "./state";
import { dismiss, toasts } from "./toasts";

export function Page() {
  useEffect(() => {
    addEventListener("keydown", handleKey);
    keepScroll();
    return () => removeEventListener("keydown", handleKey);
  }, []);
  if (signIn.value === "needed") return <SignInView />;
  return (
    <>
      <a class="skip-link" href="#main" onClick={skip}>Skip to the content</a>
      <TopBar />
      <main id="main" tabIndex={-1}>
        {loadError.value && <Failure error={loadError.value} retry={() => void open()} />}
        {/* What a user may do decides what there is: until then nothing is drawn that would move. */}
        {session.value ? <View route={route.value} /> : !loadError.value && <div class="view"><Skeleton rows={20} /></div>}
      </main>
      {isHelpOpen.value && <Help />}
      <div class="toasts" role="status" aria-live="polite">
        {toasts.value.map((toast) => (
          <div key={toast.number} class={`toast${toast.isError ? " is-error" : ""}`}><span>{toast.text}</span><button type="button" aria-label="Dismiss" onClick={() => dismiss(toast.number)}><Icon name="cross" /></button></div>
        ))}
      </div>
    </>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function titleOfRoute(shown: Route): string {
  switch (shown.view) {
    case "overview":
      return "Overview";
    case "graph":
      return "Graph";
    case "plan":
      return "Plan";
    case "upgrade":
      return "Upgrade report";
    case "resource":
      return titleOf(shown.id);
    case "unknown":
      return "Not found";
  }
}

/** The place in an address that tells views apart; a search does not move the scroll. */
function placeOf(shown: Route): string {
  return shown.view === "resource" ? `${shown.view} ${shown.id} ${shown.tab}` : shown.view;
}

function View({ route: shown }: { route: Route }) {
  const last = useRef("");
  const place = placeOf(shown);
  const title = titleOfRoute(shown);
  useEffect(() => {
    document.title = `${title} · ${session.peek()?.source.name || "setpoint"}`;
    if (last.current !== "" && last.current !== place) restoreScroll();
    last.current = place;
  }, [place, title, session.value]);
  switch (shown.view) {
    case "overview":
      return <Overview />;
    case "graph":
      return <GraphView values={shown.values} />;
    case "resource":
      return <ResourceView key={shown.id} id={shown.id} tab={shown.tab} />;
    case "plan":
      return <PlanView />;
    case "upgrade":
      return <UpgradeView />;
    case "unknown":
      return <div class="view"><h1 class="visually-hidden">Not found</h1><Empty title="There is no such view">{shown.path}</Empty></div>;
  }
}

function TopBar() {
  const found = session.value;
  const items: [view: Route["view"], title: string, icon: IconName, hash: string][] = [["overview", "Overview", "list", overviewHash()], ["graph", "Graph", "graph", graphHash()]];
  if (found?.hasPlan ?? true) items.push(["plan", "Plan", "plan", "#/plan"]);
  if (found?.hasUpgradeReport) items.push(["upgrade", "Upgrade", "upgrade", "#/upgrade"]);
  return (
    <header class="top-bar">
      <a class="brand" href="#/" aria-label="setpoint, overview"><Icon name="target" /><span class="brand-name">setpoint</span></a>
      <span class="source" title={found ? `${found.source.type}: ${found.source.name}` : undefined}>{found?.source.name ?? ""}</span>
      <nav class="nav" aria-label="Views">
        {items.map(([view, title, icon, hash]) => (
          <a key={view} href={hash} aria-current={route.value.view === view || (view === "overview" && route.value.view === "resource") ? "page" : undefined}><Icon name={icon} />{title}</a>
        ))}
      </nav>
      <div class="bar-end">
        <StreamBadge />
        {found?.user && <span class="user" title={`Signed in as ${found.user}`}>{found.user.replace(/^system:serviceaccount:/, "")}</span>}
        <Button icon={isDark.value ? "sun" : "moon"} label={isDark.value ? "Light theme" : "Dark theme"} onClick={toggleTheme}>{null}</Button>
        <span class="only-wide"><Button icon="keyboard" label="Keys" onClick={() => (isHelpOpen.value = true)}>{null}</Button></span>
        {found?.user && <Button icon="out" label="Sign out" onClick={() => void leave()}>{null}</Button>}
      </div>
    </header>
  );
}

const STREAM_WORDS = { connecting: "Connecting", live: "Live", reconnecting: "Reconnecting" } as const;

function StreamBadge() {
  const state = streamState.value;
  const trouble = storeTrouble.value;
  if (state === "live" && trouble !== null)
    return <span class="stream stream-reconnecting" role="status" title={`The store cannot be read: ${trouble}`}><span class="stream-dot" aria-hidden="true" /><span class="stream-text">Out of date</span></span>;
  const recorded = session.value?.recordedAt;
  if (recorded) return <span class="stream stream-off" role="status" title={absolute(recorded)}><span class="stream-dot" aria-hidden="true" /><span class="stream-text">Recorded <Ago time={recorded} /></span></span>;
  const text = state === "off" ? "Connecting" : STREAM_WORDS[state];
  return <span class={`stream stream-${state}`} role="status" title={state === "reconnecting" ? "The connection is lost; what is shown may be old. It is tried again." : "Changes appear as they happen"}><span class="stream-dot" aria-hidden="true" /><span class="stream-text">{text}</span></span>;
}

function Help() {
  return (
    <Dialog title="Keys" onClose={() => (isHelpOpen.value = false)} class="help">
      <dl class="keys">{KEYS.map(([keys, meaning]) => <div key={meaning}><dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{meaning}</dd></div>)}</dl>
      <label class="check"><input type="checkbox" checked={hasShortcuts.value} onChange={(event) => setShortcuts(event.currentTarget.checked)} />Single keys work as shortcuts</label>
      <div class="dialog-actions"><Button isPrimary onClick={() => (isHelpOpen.value = false)}>Close</Button></div>
    </Dialog>
  );
}
