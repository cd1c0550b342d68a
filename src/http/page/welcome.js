// What an empty chat shows: the model that answers, and suggestions.

import { element } from './element.js';
import { t } from './texts.js';

const DEMO = 'demo/';
const TRY_DEMO = [t`what time is it`, t`list files`, 'markdown', 'connect'];
const TRY = ['/help', t`What can you do?`, t`What do you know about me?`];

/** `model` is undefined while it is unknown. */
export function welcome(model, onTry) {
  const isDemo = model?.startsWith(DEMO) ?? false;
  const ideas = (isDemo ? TRY_DEMO : TRY).map((text) =>
    element('button', { type: 'button', on: { click: () => onTry(text) } }, text),
  );
  return element(
    'section',
    { className: 'welcome' },
    element('img', { src: '/logo.svg', alt: '', width: 56, height: 56 }),
    element('h2', {}, t`What can I do for you?`),
    model === undefined
      ? undefined
      : element('p', {}, t`Answers come from `, element('b', {}, model)),
    isDemo ? demoNotice() : undefined,
    element('div', { className: 'ideas' }, ...ideas),
  );
}

function demoNotice() {
  return element(
    'div',
    { className: 'notice' },
    element('strong', {}, t`This is the built-in demo, not an AI model.`),
    element(
      'p',
      {},
      t`Connect a real model with a key, or a model server on this machine. It is tested first, and answers without a restart.`,
    ),
    element('a', { href: '#/setup', className: 'button primary' }, t`Connect a model`),
  );
}
