// Messages as DOM nodes: the agent's Markdown, and messages that the gateway has not confirmed.
// person-message.js has the person's confirmed messages.

import { t } from '/texts.js';
import { copyButton } from './code-block.ts';
import { type Child, element, iconButton } from './element.ts';
import { createMarkdownView } from './markdown-view.ts';

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function agentMessage(markdown: string, at: number, files?: Child): HTMLElement {
  const body = element('div', { className: 'body' });
  createMarkdownView(body).finish(markdown);
  const foot = messageFoot(at, () => markdown, body);
  return element('article', { className: 'message agent' }, files, body, foot);
}

/** A message the gateway has not confirmed. */
export function unsentMessage(text: string, files?: Child) {
  const state = element('p', { className: 'state' }, 'Sending…');
  const body = element('div', { className: 'body', dir: 'auto' }, text);
  const node = element('article', { className: 'message person unsent' }, files, body, state);
  return {
    node,
    wait(reason: string) {
      state.replaceChildren(t`Not sent yet, trying again. ${reason}`.trim());
    },
    /** It will not be sent; `onTakeBack` puts it into the message field. */
    refuse(reason: string, onTakeBack: () => void) {
      node.classList.add('refused');
      state.replaceChildren(
        t`Not sent: ${reason} `,
        iconButton('retry', t`Edit again`, onTakeBack, 'small'),
      );
    },
  };
}

/** `text()` is what is copied. */
export function messageFoot(at: number, text: () => string, fallback: Node): HTMLElement {
  const date = new Date(at);
  const time = element(
    'time',
    { dateTime: date.toISOString(), title: dayFormat.format(date) },
    timeFormat.format(date),
  );
  return element('footer', {}, time, copyButton(t`Copy message`, text, fallback));
}
