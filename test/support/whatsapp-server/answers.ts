// Answers of the server to queries, and how a stanza is named to whoever reads a failed test.

import { type BinaryNode, S_WHATSAPP_NET } from '@whiskeysockets/baileys';

export function result(iq: BinaryNode, content?: readonly BinaryNode[]): BinaryNode {
  const attrs = { id: iq.attrs['id'] ?? '', from: S_WHATSAPP_NET, type: 'result' };
  return { tag: 'iq', attrs, ...(content === undefined ? {} : { content: [...content] }) };
}

export function failedResult(iq: BinaryNode, code: number, text: string): BinaryNode {
  return {
    tag: 'iq',
    attrs: { id: iq.attrs['id'] ?? '', from: S_WHATSAPP_NET, type: 'error' },
    content: [{ tag: 'error', attrs: { code: String(code), text } }],
  };
}

/** As `t` attributes have it. */
export function seconds(epochMs: number): string {
  return String(Math.floor(epochMs / 1000));
}

/** Without ids and content. */
export function outline(stanza: BinaryNode): string {
  const children = Array.isArray(stanza.content) ? stanza.content.map(({ tag }) => tag) : [];
  const named = ['xmlns', 'type', 'class', 'error'].flatMap((name) =>
    stanza.attrs[name] === undefined ? [] : [` ${name}=${stanza.attrs[name]}`],
  );
  return `<${stanza.tag}${named.join('')}>${[...new Set(children)].join(' ')}`;
}
