// Messages as DOM nodes: the agent's Markdown, and messages that the gateway has not confirmed.
// person-message.js has the person's confirmed messages.

import { copyButton } from './code-block.ts';
import { element, iconButton } from './element.ts';
import { createMarkdownView } from './markdown-view.ts';
import { t } from './texts.js';

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function agentMessage(markdown, at, files) {
  const body = element('div', { className: 'body' });
  createMarkdownView(body).finish(markdown);
  const foot = messageFoot(at, () => markdown, body);
  return element('article', { className: 'message agent' }, files, body, foot);
}

/** A message the gateway has not confirmed. */
export function unsentMessage(text, files) {
  const state = element('p', { className: 'state' }, 'Sending…');
  const body = element('div', { className: 'body', dir: 'auto' }, text);
  const node = element('article', { className: 'message person unsent' }, files, body, state);
  return {
    node,
    wait(reason) {
      state.replaceChildren(t`Not sent yet, trying again. ${reason}`.trim());
    },
    /** It will not be sent; `onTakeBack` puts it into the message field. */
    refuse(reason, onTakeBack) {
      node.classList.add('refused');
      state.replaceChildren(
        t`Not sent: ${reason} `,
        iconButton('retry', t`Edit again`, onTakeBack, 'small'),
      );
    },
  };
}

/** `text()` is what is copied. */
export function messageFoot(at, text, fallback) {
  const date = new Date(at);
  const time = element(
    'time',
    { dateTime: date.toISOString(), title: dayFormat.format(date) },
    timeFormat.format(date),
  );
  return element('footer', {}, time, copyButton(t`Copy message`, text, fallback));
}
