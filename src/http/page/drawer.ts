// The list of chats on a narrow screen: a drawer over the conversation.

import { t } from '/texts.js';
import { iconButton } from './element.ts';

const CLASS = 'drawer-open';

export function createDrawer() {
  const body = document.body;
  const button = iconButton('menu', t`Chats`, () => set(!isOpen()), 'menu');
  button.setAttribute('aria-controls', 'sidebar');
  button.setAttribute('aria-expanded', 'false');
  document.getElementById('menu-place')?.append(button);
  document.getElementById('backdrop')?.addEventListener('click', () => set(false));

  function isOpen() {
    return body.classList.contains(CLASS);
  }

  function set(wanted: boolean) {
    body.classList.toggle(CLASS, wanted);
    button.setAttribute('aria-expanded', String(wanted));
    if (wanted) document.getElementById('new-chat')?.focus();
  }

  return { isOpen, close: () => set(false) };
}
