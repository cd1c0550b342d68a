// Keeps the newest message visible while someone reads at the end, and keeps the position of a
// person who scrolled up.

import { signal } from '@preact/signals';
import { createRef } from 'preact';

const NEAR_END_PX = 80;

export function createScrollKeeper() {
  const scroller = createRef<HTMLDivElement>();
  const content = createRef<HTMLDivElement>();
  /** Something was added below while someone read further up. */
  const hasNews = signal(false);
  let isFollowing = true;
  /** When it was scrolled or grew last: what has been added since is no distance that someone scrolled. */
  let height = 0;

  function scrollToEnd() {
    isFollowing = true;
    hasNews.value = false;
    if (scroller.current === null) return;
    height = scroller.current.scrollHeight;
    scroller.current.scrollTop = height;
  }

  /** Begins once they are drawn. */
  function begin() {
    if (scroller.current === null || content.current === null) return;
    const place = scroller.current;
    const isAtEnd = () => height - place.scrollTop - place.clientHeight < NEAR_END_PX;
    place.addEventListener('scroll', () => {
      isFollowing = isAtEnd();
      if (isFollowing) hasNews.value = false;
    });
    // What a person opens is read from its beginning.
    content.current.addEventListener('click', ({ target }) => {
      if (target instanceof Element && target.closest('summary') !== null) isFollowing = false;
    });
    // The keyboard of a phone covers part of the page.
    const observer = new ResizeObserver(() => {
      if (isFollowing) return scrollToEnd();
      height = place.scrollHeight;
      isFollowing = isAtEnd();
    });
    observer.observe(place);
    observer.observe(content.current);
  }

  function noteNews() {
    hasNews.value = !isFollowing;
  }

  return { scroller, content, hasNews, begin, noteNews, scrollToEnd };
}
