// The text of an answer for speech: its sentences without markup and addresses; for code and tables
// it says that they are in the text. A long text ends at a sentence.

import {
  decodeReferences,
  lexMarkdown,
  type MarkedToken,
  strictTokens,
  type Tokens,
} from '../../../lib/markup/writer.ts';
import { headOf, oneLine } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';

/** About a minute and a half of speech. */
export const MAX_SPOKEN_CHARS = 1500;

const CODE = t`The code is in the text.`;
const TABLE = t`The table is in the text.`;
const REST = t`The rest is in the text.`;
const BARE_ADDRESS = /\b(?:https?:\/\/|www\.)\S+/gi;

/** Empty where nothing can be spoken. */
export function speakable(markdown: string, maxChars = MAX_SPOKEN_CHARS): string {
  const { text, holdsWords } = spokenBlocks(lexMarkdown(markdown));
  return holdsWords ? shortened(text, maxChars) : '';
}

type SpokenBlocks = { readonly text: string; readonly holdsWords: boolean };

function spokenBlocks(tokens: readonly MarkedToken[]): SpokenBlocks {
  const parts = tokens.map(spokenBlock).filter((part) => part !== '');
  const unique = parts.filter((part, index) => !isNote(part) || parts.indexOf(part) === index);
  return { text: unique.join('\n'), holdsWords: parts.some((part) => !isNote(part)) };
}

const isNote = (part: string) => part === CODE || part === TABLE;

function spokenBlock(token: MarkedToken): string {
  switch (token.type) {
    case 'code':
      return CODE;
    case 'table':
      return TABLE;
    case 'space':
    case 'hr':
    case 'html':
    case 'def':
      return '';
    case 'list':
      return token.items.map((item: Tokens.ListItem) => ended(inside(item.tokens))).join('\n');
    case 'blockquote':
      return inside(token.tokens);
    case 'heading':
      return ended(spokenLine(token.tokens));
    case 'paragraph':
    case 'text':
      return spokenLine(token.tokens ?? [], token.text);
    default:
      return spokenLine([token]);
  }
}

const inside = (tokens: Parameters<typeof strictTokens>[0]) =>
  spokenBlocks(strictTokens(tokens)).text;

/** A line without a final mark would run on into the next one. */
const ended = (text: string) => (text === '' || /[\p{P}]$/u.test(text) ? text : `${text}.`);

function spokenLine(tokens: Parameters<typeof strictTokens>[0], otherwise = ''): string {
  const inline = strictTokens(tokens);
  const said =
    inline.length === 0 ? decodeReferences(otherwise) : inline.map(spokenInline).join('');
  return oneLine(said.replace(BARE_ADDRESS, t`the link in the text`));
}

function spokenInline(token: MarkedToken): string {
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
    case 'link':
      return strictTokens(token.tokens).map(spokenInline).join('');
    case 'image':
      return token.text;
    case 'br':
      return ' ';
    case 'html':
    case 'checkbox':
      return '';
    case 'codespan':
    case 'escape':
      return token.text;
    case 'text':
      // Decodes references as text; parsing as Markdown would trim white space.
      return token.escaped ? token.text : decodeReferences(token.text);
    default:
      return token.raw;
  }
}

function shortened(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = headOf(text, maxChars - REST.length - 1);
  const end = Math.max(...['. ', '! ', '? ', '\n', '。'].map((mark) => head.lastIndexOf(mark)));
  const cut = end > maxChars / 3 ? head.slice(0, end + 1) : head.replace(/\s+\S*$/, '');
  return `${cut.trimEnd()} ${REST}`;
}
