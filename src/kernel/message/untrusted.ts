// Untrusted content as the model gets it: between two lines that only the program can have written,
// each line of it marked, nothing in it that a model or its host treats as a control token. Text of
// the person in the chat never passes here. Cases J03 and J04 state what must hold.

import { HIDDEN_TAGS, headOf, oneLine, shortened, visibleText } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';

type UntrustedText = {
  /** Untrusted content as well. */
  readonly author?: string | undefined;
  readonly text: string;
};

const MAX_AUTHOR_CHARS = 60;

/**
 * Every line end there is (Unicode Standard, 5.8): a text may try to start a line with a rare one.
 */
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;
/** Invisible characters, which may hide instructions: controls, direction marks, tags, fillers. */
const INVISIBLE =
  /(?![\t\u200C\u200D])[\p{Cc}\p{Cf}]|[\u115F\u1160\u2800\u3164\uFFA0]|\u034F|[\u17B4\u17B5]|[\u180B-\u180F]|[\uFE00-\uFE0D]|[\u{E0100}-\u{E01EF}]/gu;
/** Joiners and variation selectors are meaningful once, after a visible character. */
const JOINERS = /((?:\u200C|\u200D|\uFE0E|\uFE0F){1,2})(?:\u200C|\u200D|\uFE0E|\uFE0F)*/g;

/** Names in angle brackets by which chat templates separate the speakers. */
const ANGLED = [
  ...HIDDEN_TAGS,
  ...['s', 'bos', 'eos', 'pad', 'unk', 'mask', 'sop', 'eop', 'start_of_turn', 'end_of_turn'],
  ...['start_of_image', 'end_of_utterance', 'sys', 'system', 'user', 'assistant', 'human', 'bot'],
  ...['tool', 'tools', 'tool_result', 'tool_results', 'function', 'function_call', 'invoke'],
  ...['function_results', 'parameter', 'antml:[a-z_]+', 'fim_(?:prefix|middle|suffix)'],
].join('|');
const ANGLED_TOKEN = new RegExp(`<(?=/?<?/?(?:${ANGLED})[\\s>/])|<(?=/?(?:${ANGLED})$)`, 'gim');
/** `<|im_start|>` and the like, also with the wide bar of some models. */
const BARRED_TOKEN = /<(?=[|\uFF5C])/g;
const SQUARE =
  'INST|SYS|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|gMASK|sMASK|IMG|ARGS';
const SQUARE_TOKEN = new RegExp(`\\[(?=/?(?:${SQUARE})\\])`, 'gi');

/** The lines of a text without invisible characters, its template tokens broken by a blank. */
export function neutralLines(text: string): readonly string[] {
  return text.toWellFormed().split(LINE_END).map(neutralLine);
}

function neutralLine(line: string): string {
  return line
    .replace(INVISIBLE, '')
    .replace(/(?<![\p{L}\p{M}\p{S}\p{N}])(?:\u200C|\u200D|\uFE0E|\uFE0F)+/gu, '')
    .replace(JOINERS, '$1')
    .replace(BARRED_TOKEN, '< ')
    .replace(ANGLED_TOKEN, '< ')
    .replace(SQUARE_TOKEN, '[ ');
}

/**
 * `what` describes it in our own text; `boundary` is random and new for each call. If there are
 * several authors, each line names its own.
 */
export function wrapUntrusted(
  what: string,
  texts: readonly [UntrustedText, ...UntrustedText[]],
  boundary: string,
): string {
  const [first, ...more] = texts;
  const from =
    more.length === 0 && first.author !== undefined
      ? t`, written by ${nameOf(first, boundary)}`
      : '';
  const lines = texts.flatMap((part) => {
    const author = more.length === 0 ? '' : `${nameOf(part, boundary)}: `;
    return neutralLines(part.text).map((line) => `> ${author}${line}`.trimEnd());
  });
  return [
    `[untrusted ${boundary}: ${what}${from}]`,
    ...lines.map((line) => line.replaceAll(boundary, ' ')),
    `[end of untrusted ${boundary}]`,
  ].join('\n');
}

// Conversations of earlier versions hold blocks marked `words of others`.

const BOUNDARY = /^\[((?:end of )?(?:untrusted|words of others)) [0-9a-f]{16}(?=[:\]])/gm;

/** For comparison only: the boundary differs each time. Not for showing to a model. */
export function withoutBoundaries(text: string): string {
  return text.replace(BOUNDARY, '[$1');
}

const WRAPPED =
  /^\[(untrusted|words of others) ([0-9a-f]{16}): [^\n]*\]\n([\s\S]*)\n\[end of \1 \2\]$/;
const BLOCK =
  /^\[(untrusted|words of others) ([0-9a-f]{16}): [^\n]*\]\n[\s\S]*?\n\[end of \1 \2\]$/gm;
const EARLIER_MARK = /^\[(end of )?words of others(?= [0-9a-f]{16}[:\]])/gm;

/** The text around the marked blocks. */
export function withoutUntrusted(text: string): string {
  return text.replace(BLOCK, ' ');
}

/** Replaces the marks of earlier versions by those that the prompt explains. */
export function withCurrentMarks(text: string): string {
  return text.replace(EARLIER_MARK, '[$1untrusted');
}

/** Reverses `wrapUntrusted` for one text; any other text stays unchanged. */
export function unwrapped(text: string): string {
  const inner = WRAPPED.exec(text)?.[3];
  return inner === undefined ? text : inner.replace(/^> ?/gm, '');
}

/** One line without the characters of our own lines. */
function nameOf({ author = '' }: UntrustedText, boundary: string): string {
  const name = neutralLines(author)
    .join(' ')
    .replaceAll(boundary, ' ')
    .replace(/[[\]<>:|\s]+/g, ' ')
    .trim();
  return name === '' ? 'somebody' : headOf(name, MAX_AUTHOR_CHARS).trim();
}

// Texts for the owner and an unknown sender about each other. The sender's name and text are shown
// unchanged, never as markup: nothing in them can be tapped, loaded or mistaken for the program's
// own text.

const MAX_EXCERPT_CHARS = 160;
const MAX_NAME_CHARS = 64;

/** Names and first words on one line, without invisible characters and those that move text. */
export function shortName(name = ''): string {
  return headOf(name.replace(/\p{C}/gu, ''), MAX_NAME_CHARS);
}

export function firstWords(text: string): string {
  const line = oneLine(visibleText(text.slice(0, 4 * MAX_EXCERPT_CHARS)));
  return shortened(line, MAX_EXCERPT_CHARS, ' …');
}

/** As a code span: the only form that every channel shows uninterpreted. */
export function verbatim(text: string): string {
  return `\`${text.replace(/`/g, 'ˋ').replace(/\s+/g, ' ')}\``;
}

type UnknownSenderText = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly excerpt: string;
};

/** The sender in one line. */
export function unknownSenderLine(unknownSender: UnknownSenderText): string {
  return nameAndWords(unknownSender, t` on ${unknownSender.channel}`);
}

function nameAndWords({ userId, name, excerpt }: UnknownSenderText, where = ''): string {
  const named = name === '' ? verbatim(userId) : `${verbatim(name)} (${verbatim(userId)})`;
  const said = excerpt === '' ? '' : `: ${verbatim(excerpt)}`;
  return `${named}${where}${said}`;
}

/** `channel`: as shown to people. */
export function unknownSenderNotice(unknownSender: UnknownSenderText, channel: string): string {
  const who = `${unknownSender.channel} ${unknownSender.userId}`;
  return [
    t`New contact on ${channel}: ${nameAndWords(unknownSender)}`,
    t`They got no answer. Decide here, or with:`,
    t`- ${verbatim(`/allow once ${who}`)}: answer what they wrote, nothing more`,
    t`- ${verbatim(`/allow ${who}`)}: let them in and answer`,
    t`- ${verbatim(`/block ${who}`)}: ignore them for good`,
    t`- ${verbatim(`/drop ${who}`)}: answer them yourself`,
  ].join('\n');
}

export const MANY_UNKNOWN_SENDERS_NOTICE =
  t`More new contacts are writing. They are not announced one by one for a while; /strangers lists ` +
  t`who waits.`;

/** `minutes`: how long the code is valid. */
export function codeNotice(code: string, minutes: number): string {
  return (
    t`Hello! I answer only people my owner knows. If that should be you, give them this code: ` +
    t`${verbatim(code)}. It expires in ${minutes} minutes.`
  );
}

// Whose notes a turn uses: the owner's are at the top of the workspace, those of every other person
// and group in a folder of their own, and none of them can be reached from another's turn.

/** The person of a turn: where their notes are and how they are answered. */
export type TurnPerson = {
  /** Folder below the workspace, ending in `/`; empty: the owner's, the top. */
  readonly notes: string;
  /** In English, e.g. `German`. */
  readonly language?: string;
  /** IANA name. */
  readonly timeZone?: string;
};

export const OWNER_TURN: TurnPerson = { notes: '' };

export const PEOPLE_FOLDER = 'people';
export const GROUPS_FOLDER = 'groups';

const OTHERS_FOLDERS = new Set([PEOPLE_FOLDER, GROUPS_FOLDER]);

/** Entries about the owner or other people, at the top of the workspace. */
const PRIVATE_NAMES = new Set(['memory', PEOPLE_FOLDER, GROUPS_FOLDER, 'user.md']);

/** Files of the workspace that are about the owner. */
export const OWNER_FILES: readonly string[] = ['USER.md'];

/** Whether a path relative to the workspace leads to notes other than `notes`. */
export function reachesOthers(path: string, notes: string): boolean {
  const names = plainNames(path);
  if (notes === '') {
    // An owner's turn has all of the workspace except other people's notes. Where the workspace is
    // in an absolute path is unknown here: one that contains such a folder name anywhere is
    // refused.
    const isPlain = names !== undefined && !path.startsWith('/');
    const heads = isPlain ? names.slice(0, 1) : path.split('/').map(comparable);
    return heads.some((name) => OTHERS_FOLDERS.has(name));
  }
  if (path.startsWith('/') || path.includes('\\') || names === undefined) return true;
  const own = notes.split('/').filter((name) => name !== '');
  const isOwn = own.every((name, index) => names[index] === name.toLowerCase());
  return !isOwn && PRIVATE_NAMES.has(names[0] ?? '');
}

/**
 * The names of the path, as a case-insensitive disk compares them; undefined: it leads out of the
 * folder.
 */
function plainNames(path: string): readonly string[] | undefined {
  const names: string[] = [];
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') names.push(comparable(name));
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}

const comparable = (name: string) =>
  name
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()
    .replace(/[. ]+$/, '');
