// The state of a channel as text, and texts that name commands.

import { element } from './element.js';
import { t } from './texts.js';

/** `tone`: good, busy, bad or off; `remedy` is undefined if there is nothing to do. */
export function wordsOf({ status, waiting }) {
  switch (status.kind) {
    case 'off':
      return { tone: 'off', text: t`Off`, remedy: status.remedy };
    case 'starting':
      return { tone: 'busy', text: 'Starting…', remedy: undefined };
    case 'running':
      return { tone: 'good', text: accountText(status.account), remedy: waiting };
    case 'degraded':
      return { tone: 'busy', text: t`Trying again: ${status.reason}`, remedy: undefined };
    default:
      return { tone: 'bad', text: capital(status.reason), remedy: status.remedy };
  }
}

const accountText = (account) => (account === undefined ? 'On' : t`On as ${account}`);

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Parts between back quotes become code. */
export function withCode(text) {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? element('code', {}, part) : part))
    .filter((part) => part !== '');
}
