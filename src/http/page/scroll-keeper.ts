// Keeps the newest message visible while someone reads at the end, and keeps the position of a
// person who scrolled up.

const NEAR_END_PX = 80;

export function createScrollKeeper(scroller: HTMLElement, toEnd: HTMLElement) {
  const isAtEnd = () =>
    scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;

  function scrollToEnd() {
    scroller.scrollTop = scroller.scrollHeight;
    toEnd.hidden = true;
  }

  toEnd.addEventListener('click', scrollToEnd);
  scroller.addEventListener('scroll', () => {
    if (isAtEnd()) toEnd.hidden = true;
  });
  // The keyboard of a phone covers part of the page.
  new ResizeObserver(() => {
    if (toEnd.hidden) scrollToEnd();
  }).observe(scroller);

  return {
    /** Runs a change of the content and keeps the position. */
    keepPlace(change: () => void) {
      const wasAtEnd = isAtEnd();
      change();
      if (wasAtEnd) scrollToEnd();
      else toEnd.hidden = isAtEnd();
    },
    scrollToEnd,
  };
}
