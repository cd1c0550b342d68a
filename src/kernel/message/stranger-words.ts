// What the owner and a stranger are told about each other. A stranger's name and words are shown as
// they are, never as markup: nothing in them can be tapped, loaded or mistaken for our own text.

import { visibleText } from '../../channels/email/rules/text.ts';
import { headOf, shortened } from '../../lib/text/cut.ts';

const MAX_EXCERPT_CHARS = 160;
const MAX_NAME_CHARS = 64;

/** Names and first words on one line, without what is invisible or moves text about. */
export function shortName(name = ''): string {
  return headOf(name.replace(/\p{C}/gu, ''), MAX_NAME_CHARS);
}

export function firstWords(text: string): string {
  const line = visibleText(text.slice(0, 4 * MAX_EXCERPT_CHARS))
    .replace(/\s+/g, ' ')
    .trim();
  return shortened(line, MAX_EXCERPT_CHARS, ' …');
}

/** As a code span: the one form every channel shows without reading it. */
export function verbatim(text: string): string {
  return `\`${text.replace(/`/g, 'ˋ').replace(/\s+/g, ' ')}\``;
}

export type StrangerWords = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly excerpt: string;
};

/** Who it is, in one line. */
export function strangerLine(stranger: StrangerWords): string {
  return nameAndWords(stranger, ` on ${stranger.channel}`);
}

function nameAndWords({ userId, name, excerpt }: StrangerWords, where = ''): string {
  const named = name === '' ? verbatim(userId) : `${verbatim(name)} (${verbatim(userId)})`;
  const said = excerpt === '' ? '' : `: ${verbatim(excerpt)}`;
  return `${named}${where}${said}`;
}

export function strangerNotice(stranger: StrangerWords): string {
  const [first = '', ...rest] = stranger.channel;
  const channel = `${first.toUpperCase()}${rest.join('')}`;
  const who = `${stranger.channel} ${stranger.userId}`;
  return [
    `New contact on ${channel}: ${nameAndWords(stranger)}`,
    'They got no answer. Decide here, or with:',
    `- ${verbatim(`/allow once ${who}`)}: answer what they wrote, nothing more`,
    `- ${verbatim(`/allow ${who}`)}: answer it, and them from now on`,
    `- ${verbatim(`/block ${who}`)}: never hear of them again`,
    `- ${verbatim(`/drop ${who}`)}: you answer them yourself, by hand`,
  ].join('\n');
}

export const MANY_STRANGERS_NOTICE =
  'More new contacts are writing. They are not announced one by one for a while; /strangers lists ' +
  'who waits.';

/** `minutes`: how long the code is good. */
export function codeNotice(code: string, minutes: number): string {
  return (
    'Hello! I answer only people my owner knows. If that should be you, give them this code: ' +
    `${verbatim(code)}. It is good for ${minutes} minutes.`
  );
}
