// `nanobot sessions`: the conversations on disk. Each command may run beside the gateway, which
// notices files that are gone.

import { Command, InvalidArgumentError, Option } from 'commander';
import type { SessionMaintenance } from '../kernel/sessions/maintenance.ts';
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
  const command = new Command('sessions').description('the conversations on disk');
  addReading(command, terminal);
  addCare(command, terminal);
  return command;
}

function addReading(command: Command, terminal: Terminal) {
  command
    .command('list')
    .description('conversations, newest first')
    .option('--limit <count>', 'at most so many', parseLimit, DEFAULT_LISTED)
    .option('--json', 'as JSON')
    .action((flags: JsonFlag & { readonly limit: number }) => list(terminal, flags));
  command
    .command('show')
    .description('one conversation as text')
    .argument('<session>', 'its key, e.g. telegram:42')
    .action((key: string) => exportSession(terminal, key, 'md'));
  command
    .command('export')
    .description('one conversation, whole, on stdout')
    .argument('<session>', 'its key')
    .addOption(new Option('--format <format>').choices(['md', 'jsonl']).default('md'))
    .action((key: string, { format }: { readonly format: 'md' | 'jsonl' }) =>
      exportSession(terminal, key, format),
    );
  command
    .command('search')
    .description('text in all conversations')
    .argument('<words...>')
    .option('--limit <count>', 'at most so many', parseLimit, DEFAULT_HITS)
    .option('--json', 'as JSON, one a line')
    .action((words: readonly string[], flags: JsonFlag & { readonly limit: number }) =>
      search(terminal, words.join(' '), flags),
    );
}

function addCare(command: Command, terminal: Terminal) {
  command
    .command('purge')
    .description('delete files whose last entry is older')
    .requiredOption('--older-than <span>', 'e.g. 7d, 12h', parseAge)
    .option('--yes', 'without asking')
    .action((flags: { readonly olderThan: number; readonly yes?: boolean }) =>
      purge(terminal, flags.olderThan, flags.yes === true),
    );
  command
    .command('archive')
    .description('move older files to archive/, never the newest of a conversation')
    .addOption(
      new Option('--older-than <span>', 'e.g. 7d, 12h')
        .argParser(parseAge)
        .default(parseAge(DEFAULT_ARCHIVE_AGE), DEFAULT_ARCHIVE_AGE),
    )
    .action(({ olderThan }: { readonly olderThan: number }) => archive(terminal, olderThan));
  command
    .command('nuke')
    .description('delete every conversation, the archive included')
    .option('--yes', 'without asking')
    .action(({ yes }: { readonly yes?: boolean }) => nuke(terminal, yes === true));
  command
    .command('index')
    .description('write a searchable extract of each file to memory/sessions/')
    .action(() => index(terminal));
}

async function open(terminal: Terminal): Promise<SessionMaintenance> {
  const { openSessionCare } = await import('../features/privacy/session-care.ts');
  return openSessionCare(terminal.home, terminal.env, terminal.clock);
}

async function list(terminal: Terminal, { json, limit }: JsonFlag & { readonly limit: number }) {
  const sessions = await (await open(terminal)).list({ limit });
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
    countText(messages, 'message'),
    countText(files, 'file'),
    `${Math.ceil(bytes / KILOBYTE)} kB`,
    `${spanText(now - updatedAt)} ago`,
  ]);
  for (const line of textTable(rows)) terminal.print(line);
  if (rows.length === 0) terminal.note('There are no conversations yet.');
}

async function exportSession(terminal: Terminal, name: string, format: 'md' | 'jsonl') {
  const { chatRefOf } = await import('../kernel/message/message.ts');
  const { sessionKey } = await import('../kernel/message/ids.ts');
  if (chatRefOf(name) === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      `${name} is no session key; "nanobot sessions list" has them`,
    );
  }
  let isEmpty = true;
  for await (const piece of (await open(terminal)).export(sessionKey(name), format)) {
    isEmpty = false;
    terminal.output.write(piece);
  }
  if (isEmpty) throw new CommandFailure(EXIT.notFound, `there is no conversation ${name}`);
}

async function search(
  terminal: Terminal,
  query: string,
  { json, limit }: JsonFlag & { readonly limit: number },
) {
  let count = 0;
  for await (const hit of (await open(terminal)).search(query, { limit })) {
    count += 1;
    const { at, session, role, snippet } = hit;
    if (json === true) terminal.print(JSON.stringify(hit));
    else terminal.print(`${momentText(at)}  ${session}  ${role}: ${printable(snippet)}`);
  }
  if (count === 0) throw new CommandFailure(EXIT.notFound, 'nothing found');
}

async function purge(terminal: Terminal, olderThanMs: number, yes: boolean) {
  const age = spanText(olderThanMs);
  await confirmOrStop(terminal, `Delete all that was last written over ${age} ago?`, yes);
  const { forgetStoredTexts } = await import('../features/privacy/session-care.ts');
  const { files, bytes } = await (await open(terminal)).purge({ olderThanMs });
  await forgetStoredTexts(terminal.home, terminal.clock, olderThanMs);
  terminal.note(`Deleted ${countText(files, 'file')}, ${bytes} bytes.`);
}

async function archive(terminal: Terminal, olderThanMs: number) {
  const { moved, active, archived } = await (await open(terminal)).archive({ olderThanMs });
  terminal.note(
    `Moved ${moved.files} files, ${moved.bytes} bytes. ` +
      `Now ${active.files} files active, ${archived.files} in the archive.`,
  );
}

async function nuke(terminal: Terminal, yes: boolean) {
  await confirmOrStop(terminal, 'Delete every conversation for good?', yes);
  const { forgetStoredTexts } = await import('../features/privacy/session-care.ts');
  const { sessions, files } = await (await open(terminal)).nuke();
  await forgetStoredTexts(terminal.home, terminal.clock, 0);
  terminal.note(`Deleted ${sessions} conversations, ${files} files.`);
}

async function index(terminal: Terminal) {
  const { written, present } = await (await open(terminal)).index();
  terminal.note(`Wrote ${written} extracts; ${present} were there.`);
}

const countText = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function parseAge(text: string): number {
  const ms = parseSpan(text);
  if (ms === undefined) throw new InvalidArgumentError('Use a number and s, m, h or d, e.g. 7d.');
  return ms;
}
