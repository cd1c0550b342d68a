// Text that others wrote, as the model gets it: between two lines that only we can have written, each
// line of it marked, nothing in it that a model or its host takes for a sign of their own. What the
// person in the chat writes never passes here. Cases J03 and J04 say what has to hold.

import { HIDDEN_TAGS, headOf, shortened, visibleText } from '../../lib/text/cut.ts';

type UntrustedText = {
  /** Chosen by strangers too. */
  readonly author?: string;
  readonly text: string;
};

const MAX_AUTHOR_CHARS = 60;

/** Every line end there is (Unicode Standard, 5.8): a text may hope to begin a line by a rare one. */
const LINE_END = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;
/** Not seen, or seen only as an order of others: controls, marks of direction, tags, fillers. */
const INVISIBLE =
  /(?![\t\u200C\u200D])[\p{Cc}\p{Cf}]|[\u115F\u1160\u2800\u3164\uFFA0]|\u034F|[\u17B4\u17B5]|[\u180B-\u180F]|[\uFE00-\uFE0D]|[\u{E0100}-\u{E01EF}]/gu;
/** Joiners and the choice of a picture make sense once, behind something that is seen. */
const STRAY_JOINERS = /(?<![\p{L}\p{M}\p{S}\p{N}])(?:\u200C|\u200D|\uFE0E|\uFE0F)+/gu;
const JOINERS = /((?:\u200C|\u200D|\uFE0E|\uFE0F){1,2})(?:\u200C|\u200D|\uFE0E|\uFE0F)*/g;

/** Names between angle brackets by which chat templates part the speakers. */
const ANGLED = [
  ...HIDDEN_TAGS,
  ...['s', 'bos', 'eos', 'pad', 'unk', 'mask', 'sop', 'eop', 'start_of_turn', 'end_of_turn'],
  ...['start_of_image', 'end_of_utterance', 'sys', 'system', 'user', 'assistant', 'human', 'bot'],
  ...['tool', 'tools', 'tool_result', 'tool_results', 'function', 'function_call', 'invoke'],
  ...['function_results', 'parameter', 'antml:[a-z_]+', 'fim_(?:prefix|middle|suffix)'],
].join('|');
const ANGLED_TOKEN = new RegExp(`<(?=/?<?/?(?:${ANGLED})[\\s>/])|<(?=/?(?:${ANGLED})$)`, 'gim');
/** `<|im_start|>` and its like, also with the wide bar of some models. */
const BARRED_TOKEN = /<(?=[|\uFF5C])/g;
const SQUARE =
  'INST|SYS|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|gMASK|sMASK|IMG|ARGS';
const SQUARE_TOKEN = new RegExp(`\\[(?=/?(?:${SQUARE})\\])`, 'gi');

/** The lines of a text without what cannot be seen, its template tokens broken by a blank. */
export function neutralLines(text: string): readonly string[] {
  return text.toWellFormed().split(LINE_END).map(neutralLine);
}

function neutralLine(line: string): string {
  return line
    .replace(INVISIBLE, '')
    .replace(STRAY_JOINERS, '')
    .replace(JOINERS, '$1')
    .replace(BARRED_TOKEN, '< ')
    .replace(ANGLED_TOKEN, '< ')
    .replace(SQUARE_TOKEN, '[ ');
}

/**
 * `what` says in our words what it is; `boundary` is random and new for each call. Where several
 * wrote, each line names its author.
 */
export function wrapUntrusted(
  what: string,
  texts: readonly [UntrustedText, ...UntrustedText[]],
  boundary: string,
): string {
  const [first, ...more] = texts;
  const from =
    more.length === 0 && first.author !== undefined
      ? `, written by ${nameOf(first, boundary)}`
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

// Conversations of earlier versions hold blocks marked "words of others".

const BOUNDARY = /^\[((?:end of )?(?:untrusted|words of others)) [0-9a-f]{16}(?=[:\]])/gm;

/** For comparing: the boundary is another each time. Not for showing to a model. */
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

/** The marks that the prompt explains, in place of those of earlier versions. */
export function withCurrentMarks(text: string): string {
  return text.replace(EARLIER_MARK, '[$1untrusted');
}

/** What `wrapUntrusted` made of one text is that text again; any other text stays as it is. */
export function unwrapped(text: string): string {
  const inner = WRAPPED.exec(text)?.[3];
  return inner === undefined ? text : inner.replace(/^> ?/gm, '');
}

/** One line without the signs that our own lines are made of. */
function nameOf({ author = '' }: UntrustedText, boundary: string): string {
  const name = neutralLines(author)
    .join(' ')
    .replaceAll(boundary, ' ')
    .replace(/[[\]<>:|\s]+/g, ' ')
    .trim();
  return name === '' ? 'somebody' : headOf(name, MAX_AUTHOR_CHARS).trim();
}

// What the owner and a stranger are told about each other. A stranger's name and words are shown as
// they are, never as markup: nothing in them can be tapped, loaded or mistaken for our own text.

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

type UnknownSenderText = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly excerpt: string;
};

/** Who it is, in one line. */
export function unknownSenderLine(stranger: UnknownSenderText): string {
  return nameAndWords(stranger, ` on ${stranger.channel}`);
}

function nameAndWords({ userId, name, excerpt }: UnknownSenderText, where = ''): string {
  const named = name === '' ? verbatim(userId) : `${verbatim(name)} (${verbatim(userId)})`;
  const said = excerpt === '' ? '' : `: ${verbatim(excerpt)}`;
  return `${named}${where}${said}`;
}

export function unknownSenderNotice(stranger: UnknownSenderText): string {
  const [first = '', ...rest] = stranger.channel;
  const channel = `${first.toUpperCase()}${rest.join('')}`;
  const who = `${stranger.channel} ${stranger.userId}`;
  return [
    `New contact on ${channel}: ${nameAndWords(stranger)}`,
    'They got no answer. Decide here, or with:',
    `- ${verbatim(`/allow once ${who}`)}: answer what they wrote, nothing more`,
    `- ${verbatim(`/allow ${who}`)}: let them in and answer`,
    `- ${verbatim(`/block ${who}`)}: ignore them for good`,
    `- ${verbatim(`/drop ${who}`)}: answer them yourself`,
  ].join('\n');
}

export const MANY_UNKNOWN_SENDERS_NOTICE =
  'More new contacts are writing. They are not announced one by one for a while; /strangers lists ' +
  'who waits.';

/** `minutes`: how long the code is good. */
export function codeNotice(code: string, minutes: number): string {
  return (
    'Hello! I answer only people my owner knows. If that should be you, give them this code: ' +
    `${verbatim(code)}. It expires in ${minutes} minutes.`
  );
}

// Whose notes a turn works with: the owner's lie at the top of the workspace, everybody else's and
// every group's in a folder of their own, and none of them is to be reached from another's turn.

/** Whose a turn is: where its notes are and how it is answered. */
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

/** What tells about the owner or about somebody, at the top of the workspace. */
const PRIVATE_NAMES = new Set(['memory', PEOPLE_FOLDER, GROUPS_FOLDER, 'user.md']);
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** Files of the workspace that are about the owner. */
export const OWNER_FILES: readonly string[] = ['USER.md'];

/** Whether a path relative to the workspace leads to the notes of others than `notes`. */
export function reachesOthers(path: string, notes: string): boolean {
  const names = plainNames(path);
  if (notes === '') {
    // An owner's turn has all of the workspace but what is somebody else's. Where it begins in an
    // absolute path is not known here: one that names such a folder anywhere is refused.
    const isPlain = names !== undefined && !path.startsWith('/');
    const heads = isPlain ? names.slice(0, 1) : path.split('/').map(comparable);
    return heads.some((name) => OTHERS_FOLDERS.has(name));
  }
  if (path.startsWith('/') || path.includes('\\') || names === undefined) return true;
  const own = notes.split('/').filter((name) => name !== '');
  const isOwn = own.every((name, index) => names[index] === name.toLowerCase());
  return !isOwn && PRIVATE_NAMES.has(names[0] ?? '');
}

/** The names the path leads through, as a forgiving disk compares them; undefined: out of the folder. */
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
    .replace(IGNORABLE, '')
    .toLowerCase()
    .replace(/[. ]+$/, '');
