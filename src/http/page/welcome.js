// What an empty chat shows: the model that answers, and suggestions.

import { element } from './element.js';

const DEMO = 'demo/';
const TRY_DEMO = ['what time is it', 'list files', 'markdown', 'connect'];
const TRY = ['/help', 'What can you do?', 'What do you know about me?'];

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
    element('h2', {}, 'What can I do for you?'),
    model === undefined
      ? undefined
      : element('p', {}, 'Answers come from ', element('b', {}, model)),
    isDemo ? demoNotice() : undefined,
    element('div', { className: 'ideas' }, ...ideas),
  );
}

function demoNotice() {
  return element(
    'div',
    { className: 'notice' },
    element('strong', {}, 'This is the built-in demo, not an AI model.'),
    element('p', {}, 'Connect a real model on the machine where nanobot runs, then restart it:'),
    element(
      'ul',
      {},
      element('li', {}, 'set a key, such as ', element('code', {}, 'ANTHROPIC_API_KEY=…')),
      element('li', {}, 'or start Ollama, LM Studio or llama.cpp'),
      element('li', {}, 'or run ', element('code', {}, 'nanobot onboard'), ', which guides you'),
    ),
  );
}
