// A list of any length of which only the visible rows are in the document. All rows have one height.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** As in the stylesheet. */
const ROW_PX = 44;
/** Drawn beyond both ends. */
const SPARE = 8;

export function LineWindow(props: {
  readonly label: string;
  readonly count: number;
  /** Rows that were put before the others since the start. */
  readonly before: number;
  /** The list opens at its end, and stays there while rows are added. */
  readonly followsEnd: boolean;
  readonly row: (index: number) => ComponentChildren;
}) {
  const { label, count, before, followsEnd, row } = props;
  const scroller = useRef<HTMLElement>(null);
  const top = useSignal(0);
  const height = useSignal(0);
  const isAtEnd = useRef(followsEnd);
  const known = useRef(before);

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    // Rows may have nothing that takes the focus.
    element.tabIndex = 0;
    const resized = new ResizeObserver(() => {
      height.value = element.clientHeight;
    });
    resized.observe(element);
    return () => resized.disconnect();
  }, [height]);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    if (isAtEnd.current) element.scrollTop = element.scrollHeight;
    else element.scrollTop += (before - known.current) * ROW_PX;
    known.current = before;
    top.value = element.scrollTop;
  }, [count, before, height.value, top]);

  const first = Math.max(0, Math.floor(top.value / ROW_PX) - SPARE);
  const last = Math.min(count, Math.ceil((top.value + height.value) / ROW_PX) + SPARE);
  return (
    <section
      ref={scroller}
      class="line-window"
      aria-label={label}
      onScroll={({ currentTarget }) => {
        const { scrollTop, scrollHeight, clientHeight } = currentTarget;
        isAtEnd.current = followsEnd && scrollTop + clientHeight >= scrollHeight - ROW_PX / 2;
        top.value = scrollTop;
      }}
    >
      <div class="line-space" style={{ height: `${count * ROW_PX}px` }}>
        <ul class="lines" style={{ transform: `translateY(${first * ROW_PX}px)` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, at) => (
            <li key={first + at}>{row(first + at)}</li>
          ))}
        </ul>
      </div>
    </section>
  );
}
