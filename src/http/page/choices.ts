// The buttons below a message. Once one of them was pressed, on this page or before a reload, all
// of them are disabled and the pressed one is marked.

import { t } from '/texts.js';
import { element } from './element.ts';

type Choice = { readonly label: string; readonly token: string };
type Group = ReadonlyMap<string, HTMLButtonElement>;

export function createChoices(onPress: (label: string, token: string) => void) {
  /** The buttons of each message, by the token of any of them. */
  const groups = new Map<string, Group>();
  const pressedTokens = new Set<string>();

  function rest(token: string) {
    for (const [other, button] of groups.get(token) ?? []) {
      button.disabled = true;
      button.setAttribute('aria-pressed', String(other === token));
    }
  }

  return {
    row(choices: readonly Choice[]) {
      const group = new Map<string, HTMLButtonElement>();
      for (const { label, token } of choices) {
        const click = () => onPress(label, token);
        group.set(token, element('button', { type: 'button', on: { click } }, label));
        groups.set(token, group);
      }
      for (const token of group.keys()) if (pressedTokens.has(token)) rest(token);
      const props = { className: 'choices', role: 'group', aria: { label: t`Choices` } };
      return element('div', props, ...group.values());
    },
    pressed(token: string) {
      pressedTokens.add(token);
      rest(token);
    },
    /** The press was not delivered. */
    released(token: string) {
      pressedTokens.delete(token);
      for (const button of groups.get(token)?.values() ?? []) {
        button.disabled = false;
        button.removeAttribute('aria-pressed');
      }
    },
  };
}
