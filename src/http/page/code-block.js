// A block of code with its language and a copy button.

import { element, icon, iconButton } from './element.js';
import { t } from './texts.js';

const SHOWN_MS = 1500;

export function codeBlock(text, language) {
  const code = element('code', {}, text);
  return element(
    'div',
    { className: 'code-block' },
    element(
      'div',
      { className: 'code-head' },
      element('span', {}, language ?? 'text'),
      copyButton(t`Copy code`, () => text, code),
    ),
    element('pre', { tabIndex: 0 }, code),
  );
}

/** Copies the result of `text()`; if the browser forbids it, selects `fallback` instead. */
export function copyButton(label, text, fallback) {
  const button = iconButton('copy', label, copyOrSelect, 'small');

  async function copyOrSelect() {
    const isCopied = await copy(text());
    if (!isCopied) return getSelection().selectAllChildren(fallback);
    button.replaceChildren(icon('done'));
    setTimeout(() => button.replaceChildren(icon('copy')), SHOWN_MS);
  }

  return button;
}

/** Browsers permit the clipboard only to pages on this machine or with TLS. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
