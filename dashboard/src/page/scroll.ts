/** The scroll of each entry of the browser's history: the way back leads to the row that was left, a link to the top. */

const REST_AFTER = 120;
let timer: ReturnType<typeof setTimeout> | undefined;

interface Kept {
  y?: number;
}

/** Notes the scroll in the current entry whenever it comes to rest. */
export function keepScroll(): void {
  history.scrollRestoration = "manual";
  addEventListener("scroll", later, { passive: true });
}

function later(): void {
  clearTimeout(timer);
  const entry = location.hash;
  timer = setTimeout(() => {
    if (location.hash === entry) history.replaceState({ y: scrollY } satisfies Kept, "");
  }, REST_AFTER);
}

/** After another view was drawn: to where its entry was left, if it was seen before. */
export function restoreScroll(): void {
  clearTimeout(timer);
  scrollTo(0, (history.state as Kept | null)?.y ?? 0);
}
