// The buttons below a message. Once one of them was pressed, on this page or before a reload, all
// of them are disabled and the pressed one is marked.

import { element } from './element.ts';
import { t } from './texts.js';

export function createChoices(onPress) {
  /** The buttons of each message, by the token of any of them. */
  const groups = new Map();
  const pressedTokens = new Set();

  function rest(token) {
    for (const [other, button] of groups.get(token) ?? []) {
      button.disabled = true;
      button.setAttribute('aria-pressed', String(other === token));
    }
  }

  return {
    row(choices) {
      const group = new Map();
      for (const { label, token } of choices) {
        const click = () => onPress(label, token);
        group.set(token, element('button', { type: 'button', on: { click } }, label));
        groups.set(token, group);
      }
      for (const token of group.keys()) if (pressedTokens.has(token)) rest(token);
      const props = { className: 'choices', role: 'group', aria: { label: t`Choices` } };
      return element('div', props, ...group.values());
    },
    pressed(token) {
      pressedTokens.add(token);
      rest(token);
    },
    /** The press was not delivered. */
    released(token) {
      pressedTokens.delete(token);
      for (const button of groups.get(token)?.values() ?? []) {
        button.disabled = false;
        button.removeAttribute('aria-pressed');
      }
    },
  };
}
