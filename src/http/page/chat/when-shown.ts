// Draws what costs time (colours of code, formulas, files) once it stands still near the screen: while an
// answer is written its last blocks change with every word.

import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

const STILL_MS = 150;
const NEAR = '400px';

const waiting = new WeakMap<Element, () => Promise<void>>();

const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      const draw = waiting.get(target);
      setTimeout(() => {
        // What cannot be loaded or drawn stays as it is.
        if (draw === waiting.get(target)) draw?.().catch(() => undefined);
      }, STILL_MS);
    }
  },
  { rootMargin: NEAR },
);

/** Draws once for each `text`. */
export function useWhenShown(
  place: RefObject<Element | null>,
  text: string,
  draw: () => Promise<void>,
): void {
  useEffect(() => {
    const node = place.current;
    if (node === null) return;
    waiting.set(node, draw);
    observer.observe(node);
    return () => {
      waiting.delete(node);
      observer.unobserve(node);
    };
  }, [text]);
}
