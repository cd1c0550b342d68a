// Reads cards as Lark's app shows them, and refuses what Lark would refuse.

import { marked, type Token } from 'marked';

export type Button = { readonly label: string; readonly value: unknown };
export type ShownCard = { readonly text: string; readonly buttons: readonly Button[] };

const MAX_CARD_BYTES = 30 * 1024;

type Element = {
  readonly tag?: string;
  readonly content?: string;
  readonly text?: { readonly content?: string };
  readonly elements?: readonly Element[];
  readonly columns?: readonly Element[];
  readonly behaviors?: readonly { readonly type?: string; readonly value?: unknown }[];
};

/** @throws with the reason why Lark would not take it. */
export function readCard(json: string): ShownCard {
  if (Buffer.byteLength(json) > MAX_CARD_BYTES) throw new Error('the card is over 30 KB');
  const card = JSON.parse(json) as {
    readonly schema?: string;
    readonly config?: { readonly update_multi?: boolean };
    readonly body?: { readonly elements?: readonly Element[] };
  };
  if (card.schema !== '2.0') throw new Error('no card of schema 2.0');
  if (card.config?.update_multi !== true) throw new Error('a card that cannot be changed later');
  const shown = (card.body?.elements ?? []).map(readElement);
  const text = shown.map((one) => one.text).join('');
  if (text.trim() === '') throw new Error('an empty card');
  return { text, buttons: shown.flatMap(({ buttons }) => buttons) };
}

function readElement(element: Element): ShownCard {
  switch (element.tag) {
    case 'markdown':
      return { text: plainOf(element.content ?? ''), buttons: [] };
    case 'div':
      return { text: element.text?.content ?? '', buttons: [] };
    case 'button': {
      const [behavior] = element.behaviors ?? [];
      if (behavior?.type !== 'callback') throw new Error('a button without a callback');
      return {
        text: '',
        buttons: [{ label: element.text?.content ?? '', value: behavior.value }],
      };
    }
    case 'column_set':
    case 'column': {
      const inside = [...(element.columns ?? []), ...(element.elements ?? [])].map(readElement);
      return { text: '', buttons: inside.flatMap(({ buttons }) => buttons) };
    }
    default:
      throw new Error(`an element of kind ${element.tag}`);
  }
}

/** Marks taken away as a reader of Markdown takes them. */
function plainOf(markdown: string): string {
  return marked
    .lexer(markdown, { gfm: true, breaks: true })
    .map((token) => textOf(token))
    .join('')
    .replaceAll('\u200b', '');
}

function textOf(token: Token): string {
  if (token.type === 'space') return '\n\n';
  if (token.type === 'br') return '\n';
  if (token.type === 'code' || token.type === 'codespan') return String(token['text']);
  if ('tokens' in token && token.tokens !== undefined && token.tokens.length > 0) {
    return token.tokens.map(textOf).join('');
  }
  return decoded(token.type === 'escape' ? String(token['text']) : token.raw);
}

const decoded = (text: string) =>
  text.replace(/&#(\d+);/g, (_all, code: string) => String.fromCodePoint(Number(code)));
