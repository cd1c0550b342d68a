// What can be pressed below a message. Once one of a message's choices was pressed, here or in an
// earlier life of the page, all of them rest and the pressed one shows.

import { element } from './element.js';

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
      const props = { className: 'choices', role: 'group', aria: { label: 'Choices' } };
      return element('div', props, ...group.values());
    },
    pressed(token) {
      pressedTokens.add(token);
      rest(token);
    },
    /** The press did not get through. */
    released(token) {
      pressedTokens.delete(token);
      for (const button of groups.get(token)?.values() ?? []) {
        button.disabled = false;
        button.removeAttribute('aria-pressed');
      }
    },
  };
}
