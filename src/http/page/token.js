// Asks the person for the gateway's token.

import { element } from './element.js';

/** A question for the token; several who ask at once get one answer. */
export function createTokenQuestion() {
  let asking;
  return (problem) => {
    asking ??= ask(problem).finally(() => {
      asking = undefined;
    });
    return asking;
  };
}

function ask(problem) {
  return new Promise((resolve) => {
    const input = element('input', {
      type: 'password',
      id: 'token',
      autocomplete: 'off',
      required: true,
      spellcheck: false,
    });
    const submit = (event) => {
      event.preventDefault();
      const token = input.value.trim();
      if (token === '') return;
      dialog.remove();
      resolve(token);
    };
    const dialog = element(
      'dialog',
      { className: 'token-dialog', aria: { labelledby: 'token-title' } },
      element(
        'form',
        { on: { submit } },
        element('h2', { id: 'token-title' }, 'This gateway asks for its token'),
        element(
          'p',
          {},
          'It is gateway.token in the configuration. This tab keeps it until closed.',
        ),
        element('label', { htmlFor: 'token' }, 'Token'),
        input,
        element('p', { className: 'problem', role: 'alert' }, problem),
        element('button', { type: 'submit', className: 'primary' }, 'Continue'),
      ),
    );
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
