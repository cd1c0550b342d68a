// Keeps the newest message in sight while someone reads at the end, and leaves whoever scrolled up
// where they are.

const NEAR_END_PX = 80;

export function createScrollKeeper(scroller, toEnd) {
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
  // The keyboard of a phone takes room away.
  new ResizeObserver(() => {
    if (toEnd.hidden) scrollToEnd();
  }).observe(scroller);

  return {
    /** Runs a change of the content and keeps the place. */
    keepPlace(change) {
      const wasAtEnd = isAtEnd();
      change();
      if (wasAtEnd) scrollToEnd();
      else toEnd.hidden = isAtEnd();
    },
    scrollToEnd,
  };
}
