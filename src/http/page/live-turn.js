// A running turn as one message that grows: what the agent does, and the answer so far.

import { element, icon } from './element.js';
import { createMarkdownView } from './markdown-view.js';
import { messageFoot } from './message.js';

const TOOL_STATES = { running: 'running', ok: 'done', failed: 'failed', waiting: 'asks' };

export function createLiveTurn(onChange) {
  const tools = toolList([]);
  const body = element('div', { className: 'body' });
  const activity = element('p', { className: 'activity' }, dots());
  const node = element('article', { className: 'message agent live' }, tools, body, activity);
  const view = createMarkdownView(body);
  let markdown = '';
  let isStopped = false;
  let drawing;

  /** At most once per frame, whatever comes. */
  function draw() {
    drawing ??= requestAnimationFrame(() => {
      drawing = undefined;
      onChange(() => view.grow(markdown));
    });
  }

  function showTools(list) {
    tools.hidden = list.length === 0;
    tools.replaceChildren(...list.map(toolLine));
  }

  function showActivity({ phase, notice, result }) {
    const isOver = phase === 'ended';
    isStopped = isOver && result?.kind === 'stopped';
    if (isOver && result === undefined) return activity.replaceChildren('Interrupted. Continuing.');
    if (isOver && result.kind === 'moved')
      return activity.replaceChildren('Continues on another channel.');
    if (isOver && result.answers === 0) return activity.replaceChildren('Stopped.');
    const isWriting = phase === 'writing' && notice === undefined;
    activity.hidden = isWriting || isOver;
    activity.replaceChildren(dots(), notice ?? '');
  }

  /** Half a sentence that a person cut off must not pass for the whole. */
  function showStopped() {
    activity.hidden = false;
    activity.replaceChildren('Stopped.');
  }

  function cancelDrawing() {
    cancelAnimationFrame(drawing);
    drawing = undefined;
  }

  return {
    node,
    /** A difference to what this connection sent before. */
    apply(delta) {
      markdown = markdown.slice(0, delta.keep) + delta.append;
      if (delta.tools !== undefined) showTools(delta.tools);
      showActivity(delta);
      draw();
    },
    /** The connection is a new one: differences begin from nothing. */
    restart() {
      markdown = '';
    },
    /** The answer as it stands. */
    finish(text, at) {
      cancelDrawing();
      view.finish(text);
      if (isStopped) showStopped();
      else activity.remove();
      node.classList.remove('live');
      node.append(messageFoot(at, () => text, body));
    },
    /** How the turn ended, where this connection was not told while it ran. */
    ended({ kind, tools: list }) {
      isStopped = kind === 'stopped';
      showTools(list);
    },
    /** The turn came to its end without an answer. */
    close() {
      cancelDrawing();
      if (markdown !== '') view.finish(markdown);
      node.classList.remove('live');
    },
  };
}

/** The calls of a turn, in order. */
export function toolList(list) {
  const props = { className: 'tools', hidden: list.length === 0, aria: { label: 'Tools used' } };
  return element('ul', props, ...list.map(toolLine));
}

function toolLine({ name, detail, status, preview = '' }) {
  const state = TOOL_STATES[status] ?? 'running';
  const mark = state === 'running' ? element('span', { className: 'spinner' }) : icon(state);
  const isWaiting = state === 'asks';
  return element(
    'li',
    { className: state },
    mark,
    element('span', { className: 'tool-name' }, name),
    element('span', { className: 'tool-detail', title: detail }, detail),
    isWaiting || preview === ''
      ? undefined
      : element('span', { className: 'tool-preview', title: preview }, preview),
    element(
      'span',
      { className: isWaiting ? '' : 'unseen' },
      isWaiting ? 'waiting for approval' : state,
    ),
  );
}

/** Three dots that move while the agent thinks. */
export function dots() {
  const props = { className: 'dots', role: 'img', aria: { label: 'thinking' } };
  return element('span', props, ...Array.from({ length: 3 }, () => element('i')));
}
