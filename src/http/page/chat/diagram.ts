// The drawing of a Mermaid diagram above its source, in a frame that may run the gateway's own scripts
// and nothing else: no login, no origin, no network. What it says is taken for nothing but a size or a
// reason. Loaded with the first diagram.

import { t } from '/texts.js';
import type { Source } from '../diagrams/messages.ts';
import { element } from '../element.ts';

const LOAD_MS = 30_000;
const DRAW_MS = 8000;
const MAX_CHARS = 30_000;
const MAX_HEIGHT_PX = 4000;
const MAX_REASON_CHARS = 200;

type Timer = ReturnType<typeof setTimeout>;

/** `block`: the block of code with the source; it stays, folded once the drawing is there. */
export function drawDiagram(block: HTMLElement, source: string): Promise<void> {
  const code = block.querySelector('pre');
  if (code === null) return Promise.resolve();
  if (source.length > MAX_CHARS) return Promise.resolve(tellProblem(block, t`It is too long.`));
  const frame = element('iframe', { className: 'diagram', title: t`Diagram`, height: '1' });
  frame.setAttribute('sandbox', 'allow-scripts');
  const folded = element('details', { open: true }, element('summary', {}, t`Source`));
  code.replaceWith(frame, folded);
  folded.append(code);
  return new Promise((resolve) => {
    let timer: Timer | undefined;
    const over = new AbortController();
    const limit = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => fail(t`It took too long.`), ms);
    };
    const fail = (reason: string) => {
      clearTimeout(timer);
      over.abort();
      frame.remove();
      folded.replaceWith(code);
      tellProblem(block, reason);
      resolve();
    };
    const hear = ({ source: from, data }: MessageEvent) => {
      if (!frame.isConnected) over.abort();
      if (from === null || from !== frame.contentWindow) return;
      const { type, height, reason } = said(data);
      if (type === 'ready') {
        limit(DRAW_MS);
        // The frame has no origin that could be named; the policy of the page keeps others out of it.
        from.postMessage({ source } satisfies Source, { targetOrigin: '*' });
      }
      if (type === 'failed') fail(reason);
      if (type !== 'drawn') return;
      clearTimeout(timer);
      frame.height = String(height);
      if (!frame.classList.contains('drawn')) folded.open = false;
      frame.classList.add('drawn');
      resolve();
    };
    window.addEventListener('message', hear, over);
    limit(LOAD_MS);
    frame.src = '/diagrams/';
  });
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

function tellProblem(block: HTMLElement, reason: string): void {
  const text = t`This diagram could not be drawn. ${reason}`;
  block.append(element('p', { className: 'diagram-problem', role: 'status', dir: 'auto' }, text));
}
