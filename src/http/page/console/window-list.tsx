// A long list of rows of one height, of which only those in view are in the document.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** Rows above and below those in view, so that scrolling and the tab key find the next ones there. */
const SPARE_ROWS = 10;
const USUAL_ROW_PX = 72;

export type Range = { readonly first: number; readonly end: number };

export function WindowList(props: {
  readonly total: number;
  /** Called when other rows come into view. */
  readonly onShown?: (range: Range) => void;
  readonly row: (index: number) => ComponentChildren;
}) {
  const { total, onShown } = props;
  const list = useRef<HTMLUListElement>(null);
  const range = useSignal<Range>({ first: 0, end: SPARE_ROWS * 3 });
  const height = useSignal(USUAL_ROW_PX);

  useEffect(() => {
    const place = list.current;
    const scroller = place?.closest('main');
    if (place === null || scroller === null || scroller === undefined) return;
    const look = () => {
      const rowPx = place.querySelector('[aria-posinset]')?.getBoundingClientRect().height;
      if (rowPx !== undefined && rowPx > 0) height.value = rowPx;
      const above = scroller.getBoundingClientRect().top - place.getBoundingClientRect().top;
      const at = Math.floor(above / height.value);
      const rows = Math.ceil(scroller.clientHeight / height.value);
      const first = Math.min(Math.max(0, at - SPARE_ROWS), Math.max(0, total - rows));
      const end = Math.min(total, Math.max(0, at) + rows + SPARE_ROWS);
      if (first !== range.value.first || end !== range.value.end) range.value = { first, end };
      onShown?.({ first, end });
    };
    look();
    scroller.addEventListener('scroll', look, { passive: true });
    window.addEventListener('resize', look);
    return () => {
      scroller.removeEventListener('scroll', look);
      window.removeEventListener('resize', look);
    };
  }, [total, onShown, range, height]);

  const { first, end } = range.value;
  const last = Math.min(end, total);
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, row) => first + row);
  const outside = {
    paddingTop: `${first * height.value}px`,
    paddingBottom: `${(total - last) * height.value}px`,
  };
  return (
    <ul class="rows window" ref={list} style={outside}>
      {shown.map((index) => (
        <li key={index} aria-setsize={total} aria-posinset={index + 1}>
          {props.row(index)}
        </li>
      ))}
    </ul>
  );
}
