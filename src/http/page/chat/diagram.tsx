// The drawing of a Mermaid diagram above its source, in a frame that may run the gateway's own scripts
// and nothing else: no login, no origin, no network. What it says is taken for nothing but a size or a
// reason. Loaded with the first diagram.

import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { Source } from '../diagrams/messages.ts';

const LOAD_MS = 30_000;
const DRAW_MS = 8000;
const MAX_CHARS = 30_000;
const MAX_HEIGHT_PX = 4000;
const MAX_REASON_CHARS = 200;

type DiagramProps = { readonly source: string; readonly code: ComponentChildren };

/** `code`: its source, folded once the drawing is there. */
export function Diagram({ source, code }: DiagramProps) {
  const frame = useRef<HTMLIFrameElement>(null);
  const folded = useRef<HTMLDetailsElement>(null);
  const height = useSignal<number | undefined>(undefined);
  const problem = useSignal(source.length > MAX_CHARS ? t`It is too long.` : '');
  useLayoutEffect(() => {
    if (problem.value !== '') return;
    const over = new AbortController();
    let timer = setTimeout(fail, LOAD_MS, t`It took too long.`);
    function fail(reason: string) {
      problem.value = reason;
      end();
    }
    function end() {
      clearTimeout(timer);
      over.abort();
    }
    const hear = ({ source: from, data }: MessageEvent) => {
      if (from === null || from !== frame.current?.contentWindow) return;
      const { type, reason, ...drawn } = said(data);
      if (type === 'ready') {
        clearTimeout(timer);
        timer = setTimeout(fail, DRAW_MS, t`It took too long.`);
        // The frame has no origin that could be named; the policy of the page keeps others out of it.
        from.postMessage({ source } satisfies Source, { targetOrigin: '*' });
      }
      if (type === 'failed') fail(reason);
      if (type !== 'drawn') return;
      clearTimeout(timer);
      if (height.value === undefined && folded.current !== null) folded.current.open = false;
      height.value = drawn.height;
    };
    window.addEventListener('message', hear, over);
    return end;
  }, []);
  if (problem.value !== '')
    return (
      <>
        {code}
        <p class="diagram-problem" role="status" dir="auto">
          {t`This diagram could not be drawn. ${problem.value}`}
        </p>
      </>
    );
  return (
    <>
      <iframe
        ref={frame}
        class={height.value === undefined ? 'diagram' : 'diagram drawn'}
        title={t`Diagram`}
        height={height.value ?? 1}
        sandbox="allow-scripts"
        src="/diagrams/"
      />
      <details ref={folded} open>
        <summary>{t`Source`}</summary>
        {code}
      </details>
    </>
  );
}

/** The frame shows a text of others, so anything may be in what it sends. */
function said(data: unknown) {
  const { type, height, reason } = Object(data) as Readonly<Record<string, unknown>>;
  return {
    type,
    height: Math.ceil(Math.min(MAX_HEIGHT_PX, Math.max(1, Number(height) || 1))),
    reason: String(reason).slice(0, MAX_REASON_CHARS),
  };
}
