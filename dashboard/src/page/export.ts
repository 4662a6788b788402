/** Any view as one HTML file without scripts, to be handed to a reviewer. */
import { absolute } from "../model/format";
import { session } from "./state";
import { tell } from "./toasts";

/** What a view shows otherwise in a file: all rows instead of those on the screen, a drawing instead of a canvas. */
export type Replacement = () => Node;
const replacements = new Map<string, Replacement>();

/** Has the element with `data-export={name}` replaced in a file; undone by the function that it returns. */
export function replaceInExport(name: string, replacement: Replacement): () => void {
  replacements.set(name, replacement);
  return () => void (replacements.get(name) === replacement && replacements.delete(name));
}

export function exportView(): void {
  const view = document.querySelector<HTMLElement>("[data-view]");
  if (view === null) return;
  const name = view.dataset["view"] ?? "view";
  const url = URL.createObjectURL(new Blob([documentOf(view, document.title)], { type: "text/html" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `setpoint-${name}-${new Date().toISOString().slice(0, 19).replace(/[:T]/g, "-")}.html`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  tell(`Saved as ${link.download}`);
}

/** The text of the file. Its head is put together as text: a style sheet in a document of this page would be blocked. */
function documentOf(view: HTMLElement, title: string): string {
  const page = document.implementation.createHTMLDocument("");
  page.body.className = "exported";
  page.body.append(note(page), cleaned(view, page));
  const theme = document.documentElement.dataset["theme"];
  const head = [
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${title.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</title>`,
    `<style>${styles().replace(/<\//g, "<\\/")}</style>`,
  ];
  return `<!doctype html>\n<html lang="en"${theme ? ` data-theme="${theme}"` : ""}>\n<head>\n${head.join("\n")}\n</head>\n${page.body.outerHTML}\n</html>\n`;
}

function note(page: Document): HTMLElement {
  const { source, version, recordedAt } = session.value ?? { source: { name: "" }, version: "", recordedAt: null };
  const line = page.createElement("p");
  line.className = "export-note";
  line.textContent = `setpoint ${version} · ${source.name} · as of ${absolute(recordedAt ?? new Date().toISOString())}`;
  return line;
}

function cleaned(view: HTMLElement, page: Document): Node {
  const copy = page.importNode(view, true);
  for (const element of copy.querySelectorAll<HTMLElement>("[data-export]")) {
    const replacement = replacements.get(element.dataset["export"] ?? "");
    if (replacement) element.replaceWith(page.importNode(replacement(), true));
    else element.remove();
  }
  for (const element of copy.querySelectorAll("script, dialog, input, select, textarea, [data-skip-export]")) element.remove();
  for (const button of copy.querySelectorAll("button")) button.replaceWith(plain(button, page));
  for (const link of copy.querySelectorAll("a")) link.replaceWith(plain(link, page));
  // A file is read at another time.
  for (const time of copy.querySelectorAll("time")) time.textContent = absolute(time.dateTime);
  for (const details of copy.querySelectorAll("details")) details.open = true;
  for (const element of copy.querySelectorAll("[tabindex]")) element.removeAttribute("tabindex");
  return copy;
}

/** The text of a control, in its place, with its looks. */
function plain(element: Element, page: Document): HTMLElement {
  const span = page.createElement("span");
  span.className = element.className;
  if (element.getAttribute("title")) span.title = element.getAttribute("title") ?? "";
  span.append(...element.childNodes);
  return span;
}

function styles(): string {
  return [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n");
}
