// Keeps the newest message visible while someone reads at the end, and keeps the position of a
// person who scrolled up.

const NEAR_END_PX = 80;

type Places = {
  readonly scroller: HTMLElement;
  readonly content: HTMLElement;
  /** Offered to whoever reads further up when there is something new. */
  readonly toEnd: HTMLElement;
};

export function createScrollKeeper({ scroller, content, toEnd }: Places) {
  let isFollowing = true;
  /** When it was scrolled or grew last: what has been added since is no distance that someone scrolled. */
  let height = 0;

  const isAtEnd = () => height - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX;

  function scrollToEnd() {
    isFollowing = true;
    toEnd.hidden = true;
    height = scroller.scrollHeight;
    scroller.scrollTop = height;
  }

  toEnd.addEventListener('click', scrollToEnd);
  scroller.addEventListener('scroll', () => {
    isFollowing = isAtEnd();
    if (isFollowing) toEnd.hidden = true;
  });
  // What a person opens is read from its beginning.
  content.addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('summary') !== null) isFollowing = false;
  });
  // The keyboard of a phone covers part of the page.
  const observer = new ResizeObserver(() => {
    if (isFollowing) return scrollToEnd();
    height = scroller.scrollHeight;
    isFollowing = isAtEnd();
  });
  observer.observe(scroller);
  observer.observe(content);

  return {
    /** Something was added at the end. */
    noteNews() {
      toEnd.hidden = isFollowing;
    },
    scrollToEnd,
  };
}
