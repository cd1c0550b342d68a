// A block of code with its language, its colours and a copy button.

import { t } from '/texts.js';
import { whenShown } from './chat/when-shown.ts';
import { element, icon, iconButton } from './element.ts';

const SHOWN_MS = 1500;
/** Longer code stays without colours. */
const MAX_COLOURED_CHARS = 60_000;

export function codeBlock(text: string, language: string | undefined): HTMLElement {
  const code = element('code', {}, text);
  if (language !== undefined && text.length <= MAX_COLOURED_CHARS)
    whenShown(code, () => colour(code, text, language.toLowerCase()));
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

async function colour(code: HTMLElement, text: string, language: string): Promise<void> {
  const { coloured } = await import('./chat/highlight.ts');
  const nodes = coloured(text, language);
  if (nodes !== undefined) code.replaceChildren(...nodes);
}

/** Copies the result of `text()`; if the browser forbids it, selects `fallback` instead. */
export function copyButton(label: string, text: () => string, fallback: Node): HTMLButtonElement {
  const button = iconButton('copy', label, copyOrSelect, 'small');

  async function copyOrSelect() {
    const isCopied = await copy(text());
    if (!isCopied) return getSelection()?.selectAllChildren(fallback);
    button.replaceChildren(icon('done'));
    setTimeout(() => button.replaceChildren(icon('copy')), SHOWN_MS);
  }

  return button;
}

/** Browsers permit the clipboard only to pages on this machine or with TLS. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
