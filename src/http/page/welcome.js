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
    element('p', {}, t`Connect a real model on the machine where nanobot runs, then restart it:`),
    element(
      'ul',
      {},
      element('li', {}, t`set a key, such as `, element('code', {}, 'ANTHROPIC_API_KEY=…')),
      element('li', {}, t`or start Ollama, LM Studio or llama.cpp`),
      element('li', {}, t`or run `, element('code', {}, 'nanobot onboard'), t`, which guides you`),
    ),
  );
}
