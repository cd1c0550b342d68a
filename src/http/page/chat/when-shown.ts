// Draws what costs time (colours of code, formulas) once it stands still near the screen: while an answer
// is written its last blocks are built anew with every word.

const STILL_MS = 150;
const NEAR = '400px';
const NEAR_END_PX = 80;

const waiting = new WeakMap<Element, () => Promise<void>>();

const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      setTimeout(() => void drawNow(target), STILL_MS);
    }
  },
  { rootMargin: NEAR },
);

/** What cannot be loaded or drawn stays as it is. */
export function whenShown(node: Element, draw: () => Promise<void>): void {
  waiting.set(node, draw);
  observer.observe(node);
}

async function drawNow(node: Element): Promise<void> {
  const draw = waiting.get(node);
  if (draw === undefined || !node.isConnected) return;
  waiting.delete(node);
  const scroller = node.closest('#scroll');
  const isAtEnd =
    scroller !== null &&
    scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;
  await draw().catch(() => undefined);
  if (isAtEnd) scroller.scrollTop = scroller.scrollHeight;
}
