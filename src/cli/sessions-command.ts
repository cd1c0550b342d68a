// The command `nanobot sessions`: the sessions on the disk. Runs beside the gateway, which notices
// deleted files.

import { Command, InvalidArgumentError, Option } from 'commander';
import type { SessionCare } from '../features/conversations/session-care.ts';
import { reasonOf } from '../kernel/sessions/file-lines.ts';
import { msgid, ngettext, t } from '../lib/texts.ts';
import { momentText, parseLimit, parseSpan, spanText } from './flag-values.ts';
import {
  CommandFailure,
  confirmOrStop,
  EXIT,
  printable,
  type Terminal,
  textTable,
} from './terminal.ts';

type JsonFlag = { readonly json?: boolean };

const DEFAULT_LISTED = 100;
const DEFAULT_HITS = 20;
const DEFAULT_ARCHIVE_AGE = '30d';
const KILOBYTE = 1000;

export function sessionsCommand(terminal: Terminal): Command {
  const command = new Command('sessions').description(t`stored conversations`);
  addReading(command, terminal);
  addCare(command, terminal);
  return command;
}

function addReading(command: Command, terminal: Terminal) {
  command
    .command('list')
    .description(t`list conversations, newest first`)
    .option('--limit <count>', t`show at most <count> entries`, parseLimit, DEFAULT_LISTED)
    .option('--json', t`print as JSON`)
    .action((flags: JsonFlag & { readonly limit: number }) => list(terminal, flags));
  command
    .command('show')
    .description(t`show one conversation as text`)
    .argument('<session>', t`key from "sessions list", e.g. telegram:42`)
    .action((key: string) => exportSession(terminal, key, 'md'));
  command
    .command('export')
    .description(t`write one whole conversation to stdout`)
    .argument('<session>', t`key from "sessions list"`)
    .addOption(new Option('--format <format>').choices(['md', 'jsonl']).default('md'))
    .action((key: string, { format }: { readonly format: 'md' | 'jsonl' }) =>
      exportSession(terminal, key, format),
    );
  command
    .command('search')
    .description(t`search the text of all conversations`)
    .argument('<words...>')
    .option('--limit <count>', t`show at most <count> entries`, parseLimit, DEFAULT_HITS)
    .option('--json', t`print as JSON, one object per line`)
    .action((words: readonly string[], flags: JsonFlag & { readonly limit: number }) =>
      search(terminal, words.join(' '), flags),
    );
}

function addCare(command: Command, terminal: Terminal) {
  command
    .command('purge')
    .description(t`delete conversation files that have not changed for some time`)
    .requiredOption('--older-than <span>', t`since their last entry, e.g. 7d or 12h`, parseAge)
    .option('--yes', t`do not ask for confirmation`)
    .action((flags: { readonly olderThan: number; readonly yes?: boolean }) =>
      purge(terminal, flags.olderThan, flags.yes === true),
    );
  command
    .command('archive')
    .description(t`move older files to archive/; the newest file of a conversation stays`)
    .addOption(
      new Option('--older-than <span>', t`since their last entry, e.g. 7d or 12h`)
        .argParser(parseAge)
        .default(parseAge(DEFAULT_ARCHIVE_AGE), DEFAULT_ARCHIVE_AGE),
    )
    .action(({ olderThan }: { readonly olderThan: number }) => archive(terminal, olderThan));
  command
    .command('nuke')
    .description(t`delete all conversations, including the archive`)
    .option('--yes', t`do not ask for confirmation`)
    .action(({ yes }: { readonly yes?: boolean }) => nuke(terminal, yes === true));
  command
    .command('index')
    .description(t`write a searchable extract of each file to memory/sessions/`)
    .action(() => index(terminal));
}

async function open(terminal: Terminal): Promise<SessionCare> {
  const { openSessionCare } = await import('../features/conversations/session-care.ts');
  return openSessionCare(terminal.home, terminal.env, terminal.clock);
}

/** A file that cannot be written or read is named, and the others are shown. */
async function openToRead(terminal: Terminal): Promise<SessionCare> {
  const care = await open(terminal);
  for (const [session, error] of await care.complete()) {
    noteUnreadable(terminal, t`The newest entries of ${session} are not shown`, reasonOf(error));
  }
  return care;
}

function noteUnreadable(terminal: Terminal, what: string, reason: string) {
  terminal.note(printable(t`${what}: ${reason}. Give this user access to its file.`));
}

async function list(terminal: Terminal, { json, limit }: JsonFlag & { readonly limit: number }) {
  const sessions = await (await openToRead(terminal)).list({ limit });
  for (const { key, problem } of sessions) {
    if (problem !== undefined) noteUnreadable(terminal, t`${key} is not read`, problem);
  }
  if (json === true) return terminal.printJson(sessions);
  const { chatNames } = await import('./chat-names.ts');
  const names = await chatNames(
    terminal,
    sessions.map(({ key }) => key),
  );
  const now = terminal.clock.now();
  const rows = sessions.map(({ key, messages, bytes, files, updatedAt }) => [
    key,
    names.get(key) ?? '',
    ngettext(msgid`${messages} message`, `${messages} messages`, messages),
    ngettext(msgid`${files} file`, `${files} files`, files),
    `${Math.ceil(bytes / KILOBYTE)} kB`,
    t`${spanText(now - updatedAt)} ago`,
  ]);
  for (const line of textTable(rows)) terminal.print(line);
  if (rows.length === 0) terminal.note(t`No conversations yet.`);
}

async function exportSession(terminal: Terminal, name: string, format: 'md' | 'jsonl') {
  const { chatRefOf } = await import('../kernel/message/message.ts');
  const { sessionKey } = await import('../kernel/message/ids.ts');
  if (chatRefOf(name) === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      t`"${name}" is not a conversation key; list them: nanobot sessions list`,
    );
  }
  let isEmpty = true;
  for await (const piece of (await openToRead(terminal)).export(sessionKey(name), format)) {
    isEmpty = false;
    terminal.output.write(piece);
  }
  if (isEmpty)
    throw new CommandFailure(
      EXIT.notFound,
      t`there is no conversation ${name}; list them: nanobot sessions list`,
    );
}

async function search(
  terminal: Terminal,
  query: string,
  { json, limit }: JsonFlag & { readonly limit: number },
) {
  let count = 0;
  const unreadable = (error: unknown) =>
    noteUnreadable(terminal, t`A file is not searched`, reasonOf(error));
  for await (const hit of (await openToRead(terminal)).search(query, { limit, unreadable })) {
    count += 1;
    const { at, session, role, snippet } = hit;
    if (json === true) terminal.print(JSON.stringify(hit));
    else terminal.print(`${momentText(at)}  ${session}  ${role}: ${printable(snippet)}`);
  }
  if (count === 0) throw new CommandFailure(EXIT.notFound, t`no matches`);
}

async function purge(terminal: Terminal, olderThanMs: number, yes: boolean) {
  const age = spanText(olderThanMs);
  await confirmOrStop(
    terminal,
    t`Permanently delete all conversation files without a new entry for ${age}?`,
    yes,
  );
  const { purgedText } = await import('../features/conversations/session-care.ts');
  terminal.note(purgedText(await (await open(terminal)).purge({ olderThanMs })));
}

async function archive(terminal: Terminal, olderThanMs: number) {
  const { moved, active, archived } = await (await open(terminal)).archive({ olderThanMs });
  terminal.note(
    t`Moved ${moved.files} files, ${moved.bytes} bytes. ` +
      t`${active.files} files are active, ${archived.files} are in the archive.`,
  );
}

async function nuke(terminal: Terminal, yes: boolean) {
  await confirmOrStop(terminal, t`Permanently delete all conversations?`, yes);
  const { purgedText } = await import('../features/conversations/session-care.ts');
  const { sessions, ...purged } = await (await open(terminal)).nuke();
  const deleted = ngettext(
    msgid`Deleted ${sessions} conversation.`,
    `Deleted ${sessions} conversations.`,
    sessions,
  );
  terminal.note(`${deleted} ${purgedText(purged)}`);
}

async function index(terminal: Terminal) {
  const { written, present } = await (await openToRead(terminal)).index();
  terminal.note(t`Wrote ${written} extracts; ${present} were already there.`);
}

function parseAge(text: string): number {
  const ms = parseSpan(text);
  if (ms === undefined) throw new InvalidArgumentError(t`Use a number with s, m, h or d, e.g. 7d.`);
  return ms;
}
