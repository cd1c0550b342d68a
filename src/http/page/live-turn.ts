// A running turn as one growing message: the agent's activity, and the answer so far.

import { t } from '/texts.js';
import type { LiveDelta, TurnEnd } from './chat/events.ts';
import { createToolSteps, type LoadTurn } from './chat/tool-steps.tsx';
import { element } from './element.ts';
import { createMarkdownView } from './markdown-view.ts';
import { messageFoot } from './message.ts';

type Parts = {
  keepPlace(change: () => void): void;
  readonly loadTurn: LoadTurn;
};

export type LiveTurn = ReturnType<typeof createLiveTurn>;

export function createLiveTurn(turnId: string, { keepPlace, loadTurn }: Parts) {
  const tools = createToolSteps(turnId, loadTurn);
  const body = element('div', { className: 'body' });
  const activity = element('p', { className: 'activity' }, dots());
  const node = element('article', { className: 'message agent live' }, tools.node, body, activity);
  const view = createMarkdownView(body);
  let markdown = '';
  let isStopped = false;
  let drawing: number | undefined;

  /** Redraws at most once per frame. */
  function draw() {
    drawing ??= requestAnimationFrame(() => {
      drawing = undefined;
      keepPlace(() => view.grow(markdown));
    });
  }

  function showActivity({ phase, notice, result }: LiveDelta) {
    const isOver = phase === 'ended';
    isStopped = isOver && result?.kind === 'stopped';
    if (isOver && result === undefined)
      return activity.replaceChildren(t`Interrupted. Continuing.`);
    if (isOver && result?.kind === 'moved')
      return activity.replaceChildren(t`Continues on another channel.`);
    if (isOver && result?.answers === 0) return activity.replaceChildren(t`Stopped.`);
    const isWriting = phase === 'writing' && notice === undefined;
    activity.hidden = isWriting || isOver;
    activity.replaceChildren(dots(), notice ?? '');
  }

  /** Marks a stopped answer, so that half a sentence is not taken for the whole. */
  function showStopped() {
    activity.hidden = false;
    activity.replaceChildren(t`Stopped.`);
  }

  function cancelDrawing() {
    if (drawing !== undefined) cancelAnimationFrame(drawing);
    drawing = undefined;
  }

  return {
    node,
    /** Applies a difference to what this connection sent before. */
    apply(delta: LiveDelta) {
      markdown = markdown.slice(0, delta.keep) + delta.append;
      if (delta.tools !== undefined) tools.show(delta.tools);
      showActivity(delta);
      draw();
    },
    /** The connection is new: differences start from an empty text. */
    restart() {
      markdown = '';
    },
    /** Shows the final answer. */
    finish(text: string, at: number) {
      cancelDrawing();
      view.finish(text);
      if (isStopped) showStopped();
      else activity.remove();
      node.classList.remove('live');
      node.append(messageFoot(at, () => text, body));
    },
    /** Shows how the turn ended, if this connection missed it. */
    ended({ kind, tools: list }: TurnEnd) {
      isStopped = kind === 'stopped';
      tools.show(list);
    },
    /** The turn ended without an answer. */
    close() {
      cancelDrawing();
      if (markdown !== '') view.finish(markdown);
      node.classList.remove('live');
    },
  };
}

/** Three moving dots while the agent thinks. */
export function dots(): HTMLElement {
  const props = { className: 'dots', role: 'img', aria: { label: 'thinking' } };
  return element('span', props, ...Array.from({ length: 3 }, () => element('i')));
}
