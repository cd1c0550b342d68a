// The command `/sessions`: a person lists, shows, searches, exports, archives and deletes their own
// conversations; an owner everyone's, by the word `all` or a session key.

import type { Person } from '../../kernel/access/person.ts';
import type { CommandOrigin } from '../../kernel/commands/command-access.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, type InboundMessage } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import type { Memory } from '../memory/index.ts';
import { filesText, purgedText, type SessionCare } from './session-care.ts';

const MAX_LISTED = 20;
const MAX_HITS = 20;
/** A longer conversation is sent as a file. */
const MAX_SHOWN_CHARS = 3000;
const KILOBYTE = 1000;
const DAY_MS = 86_400_000;
const ARCHIVE_AGE = '30d';
const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS };

const USAGE =
  t`Usage: /sessions lists your conversations. /sessions show [number], /sessions search <words>, ` +
  '/sessions export [number] [md | jsonl], /sessions archive [30d], /sessions purge 90d. ' +
  t`For my owner, /sessions all ... does the same with everyone’s, and /sessions index writes extracts.`;
const NOT_OWNER = t`Only my owner can use everyone’s conversations.`;
const UNKNOWN = t`There is no such conversation. /sessions lists them by number.`;

type SessionsCommandDeps = {
  readonly care: SessionCare;
  readonly chatsOf: Memory['chatsOf'];
  personIn(chat: InboundMessage['chat']): Promise<Pick<Person, 'name'> | undefined>;
  zoneOf(message: InboundMessage): Promise<string>;
  readonly handOut: Memory['handOutPart'];
};

type Format = 'md' | 'jsonl';

/** One use of the command. `chats`: whose conversations it reaches; undefined: everyone's. */
type Use = {
  readonly origin: CommandOrigin;
  readonly chats: readonly string[] | undefined;
  readonly words: readonly string[];
  readonly deps: SessionsCommandDeps;
};

export async function sessionsAnswer(
  origin: CommandOrigin,
  argument: string,
  deps: SessionsCommandDeps,
): Promise<string> {
  const typed = argument.split(/\s+/).filter((word) => word !== '');
  const isAll = typed[0] === 'all' || (typed[0] === 'list' && typed[1] === 'all');
  const isOwner = origin.role === 'owner';
  if (isAll && !isOwner) return NOT_OWNER;
  const [verb = 'list', ...words] = typed[0] === 'all' ? typed.slice(1) : typed;
  const chats = isAll ? undefined : await deps.chatsOf(origin.message);
  const unwritten = await deps.care.complete();
  const use: Use = { origin, chats, words, deps };
  if (!Object.hasOwn(VERBS, verb)) return USAGE;
  const answer = await VERBS[verb as Verb](use);
  const missing = [...unwritten.keys()].filter(
    (session) => chats === undefined || isOfChats({ session }, chats),
  );
  const note = missing.map(
    (key) => t`The newest entries of ${verbatim(key)} are not shown: its file`,
  );
  return [answer, ...note.map((line) => t`${line} cannot be written.`)].join('\n\n');
}

type Verb = keyof typeof VERBS;

const VERBS = { list, show, search, export: exportOne, archive, purge, index } as const;

async function list({ origin, chats, deps }: Use): Promise<string> {
  const all = await deps.care.list({ limit: MAX_LISTED, chats });
  if (all.length === 0) return t`Nothing was said yet.`;
  const minuteText = createMinuteText();
  const zone = await deps.zoneOf(origin.message);
  const names = chats === undefined ? await namesOf(all, deps) : new Map<SessionKey, string>();
  const lines = all.map(({ key, updatedAt, messages, bytes, problem }, index) => {
    const mark = key === origin.session ? t`, this one` : '';
    const size = `${Math.max(1, Math.round(bytes / KILOBYTE))} kB`;
    const name = names.get(key);
    const shown = name === undefined ? verbatim(key) : `${verbatim(name)} (${verbatim(key)})`;
    const content = problem === undefined ? t`${messages} messages` : t`cannot be read`;
    const number = chats === undefined ? '-' : `${index + 1}.`;
    return t`${number} ${shown}${mark}: ${content}, ${size}, last ${minuteText(updatedAt, zone)}`;
  });
  const hint = chats === undefined || all.length < 2 ? [] : [CONTINUE_HINT];
  return [lines.join('\n'), ...hint].join('\n\n');
}

const CONTINUE_HINT =
  '/sessions show 2 shows the second one. Continue one on another channel with /continue.';

/** The persons of private chats. */
async function namesOf(
  all: readonly { readonly key: SessionKey }[],
  { personIn }: SessionsCommandDeps,
): Promise<ReadonlyMap<SessionKey, string>> {
  const names = new Map<SessionKey, string>();
  for (const { key } of all) {
    const chat = chatRefOf(key);
    const person = chat === undefined ? undefined : await personIn(chat);
    if (person !== undefined && person.name !== '') names.set(key, person.name);
  }
  return names;
}

/** By the number in the list or by its key; without either the one of this chat. */
async function chosen(use: Use, wanted: string | undefined): Promise<SessionKey | undefined> {
  const { origin, deps } = use;
  if (wanted === undefined) return origin.session;
  // An owner names anybody's by its key.
  const chats = origin.role === 'owner' && !/^\d+$/.test(wanted) ? undefined : use.chats;
  const all = await deps.care.list({ chats });
  if (/^\d+$/.test(wanted)) return all[Number(wanted) - 1]?.key;
  return all.find(({ key }) => key === wanted)?.key;
}

async function show(use: Use): Promise<string> {
  const { origin, deps, words } = use;
  const key = await chosen(use, words[0]);
  if (key === undefined) return UNKNOWN;
  const shown: string[] = [];
  let chars = 0;
  for await (const piece of deps.care.export(key, 'md')) {
    shown.push(shownPiece(piece));
    chars += piece.length;
    if (chars > MAX_SHOWN_CHARS) return sendFile(key, 'md', { origin, deps });
  }
  return shown.length === 0 ? t`Nothing was said yet.` : shown.filter(Boolean).join('\n\n');
}

/** What was said is shown uninterpreted. */
function shownPiece(piece: string): string {
  const [head = '', ...rest] = piece.trim().split('\n');
  const title = head.replace(/^#+ /, '');
  const text = rest.join('\n').trim();
  return text === '' ? title && verbatim(title) : `${title}\n${verbatim(text)}`;
}

function sendFile(
  key: SessionKey,
  format: Format,
  { origin, deps }: Pick<Use, 'origin' | 'deps'>,
): Promise<string> {
  const content = () => deps.care.export(key, format);
  return deps.handOut(origin.message, format, t`The conversation ${verbatim(key)}`, content);
}

async function exportOne(use: Use): Promise<string> {
  const { words } = use;
  const format: Format = words.includes('jsonl') ? 'jsonl' : 'md';
  const [wanted] = words.filter((word) => word !== 'md' && word !== 'jsonl');
  const key = await chosen(use, wanted);
  return key === undefined ? UNKNOWN : sendFile(key, format, use);
}

async function search({ origin, chats, words, deps }: Use): Promise<string> {
  if (words.length === 0) return USAGE;
  const minuteText = createMinuteText();
  const zone = await deps.zoneOf(origin.message);
  let unread = 0;
  const unreadable = () => {
    unread += 1;
  };
  const lines: string[] = [];
  const query = words.join(' ');
  for await (const hit of deps.care.search(query, { limit: MAX_HITS, chats, unreadable })) {
    const when = minuteText(hit.at, zone);
    lines.push(`- ${when}, ${verbatim(hit.session)}, ${hit.role}: ${verbatim(hit.snippet)}`);
  }
  const found = lines.length === 0 ? t`Nothing was found.` : lines.join('\n');
  return unread === 0 ? found : t`${found}\n\n${filesText(unread)} cannot be read.`;
}

async function archive({ chats, words, deps }: Use): Promise<string> {
  const olderThanMs = ageIn(words[0] ?? ARCHIVE_AGE);
  if (olderThanMs === undefined) return USAGE;
  const { moved, archived } = await deps.care.archive({ olderThanMs, chats });
  return (
    t`Moved ${filesText(moved.files)} to the archive, which has ${archived.files} now. ` +
    t`Archived conversations are still shown, searched and exported.`
  );
}

/** The word `yes` confirms; without it the answer says what would be deleted. */
async function purge({ origin, chats, words, deps }: Use): Promise<string> {
  const [age = '', answer] = words;
  const olderThanMs = ageIn(age);
  if (olderThanMs === undefined) return USAGE;
  if (answer !== 'yes') {
    const { files, bytes } = await deps.care.purgeable({ olderThanMs, chats });
    if (files === 0) return t`No conversation file is without a new entry for ${age}.`;
    const again = origin.message.text.trim();
    return (
      t`This deletes ${filesText(files)} (${bytes} bytes) without a new entry for ${age}, for good. ` +
      t`Send ${verbatim(t`${again} yes`)} to do it.`
    );
  }
  return purgedText(await deps.care.purge({ olderThanMs, chats }), chats === undefined);
}

/** Extracts are in the memory of the owner. */
async function index({ origin, deps }: Use): Promise<string> {
  if (origin.role !== 'owner') return NOT_OWNER;
  const { written, present } = await deps.care.index();
  const extracts = ngettext(msgid`${written} extract`, `${written} extracts`, written);
  return t`Wrote ${extracts} to memory/sessions; ${present} were already there.`;
}

/** `30d`, `12h` or `2w` in milliseconds. */
function ageIn(text: string): number | undefined {
  const match = /^(\d{1,5})([hdw])$/.exec(text);
  return match === null ? undefined : Number(match[1]) * (UNITS_MS[match[2] ?? ''] ?? 0);
}
