// The command `nanobot dead`: dead letters, to be queued again or deleted.

import { Command } from 'commander';
import type { DeadLetter } from '../kernel/bus/bus.ts';
import type { BusStore } from '../kernel/bus/store/store.ts';
import { type MessageId, messageId } from '../kernel/message/ids.ts';
import { msgid, ngettext, t } from '../lib/texts.ts';
import { chatNames, chatText } from './chat-names.ts';
import { momentText } from './flag-values.ts';
import {
  CommandFailure,
  confirmOrStop,
  EXIT,
  printable,
  type Terminal,
  withState,
} from './terminal.ts';

type Choice = { readonly all?: boolean; readonly yes?: boolean };

export function deadCommand(terminal: Terminal): Command {
  const command = new Command('dead').description(t`messages set aside because they failed`);
  command
    .command('list')
    .description(t`list the messages set aside, oldest first`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => listDead(terminal, json === true));
  command
    .command('retry')
    .description(t`queue messages again`)
    .argument('[ids...]', terminal.typed(t`ids from "nanobot dead list"`))
    .option('--all', t`all messages set aside`)
    .action((ids: readonly string[], choice: Choice) => retry(terminal, ids, choice));
  command
    .command('drop')
    .description(t`delete messages set aside`)
    .argument('[ids...]', terminal.typed(t`ids from "nanobot dead list"`))
    .option('--all', t`all messages set aside`)
    .option('--yes', t`do not ask for confirmation`)
    .action((ids: readonly string[], choice: Choice) => drop(terminal, ids, choice));
  return command;
}

async function listDead(terminal: Terminal, json: boolean) {
  const letters = await withState(terminal, ({ store }) => store.dead());
  if (json) return terminal.printJson(letters);
  if (letters.length === 0) terminal.note(t`No messages are set aside.`);
  const names = await chatNames(
    terminal,
    letters.map(({ session }) => session),
  );
  for (const letter of letters) {
    const chat = chatText(names, letter.session);
    for (const line of letterLines(letter, chat)) terminal.print(line);
  }
}

function letterLines(letter: DeadLetter, chat: string): readonly string[] {
  const way = letter.direction === 'inbound' ? t`not answered` : t`not delivered`;
  const state = letter.state === 'unknown' ? t`maybe delivered` : way;
  const { attempts } = letter;
  const tries = ngettext(msgid`${attempts} attempt`, `${attempts} attempts`, attempts);
  return [
    letter.id,
    t`  ${momentText(letter.at)}  ${state} after ${tries}: ${printable(letter.reason)}`,
    `  ${chat}: ${printable(letter.excerpt)}`,
  ];
}

async function retry(terminal: Terminal, ids: readonly string[], choice: Choice) {
  const count = await withState(terminal, async ({ store }) =>
    store.retry(await chosen(store, ids, choice)),
  );
  if (count === 0) throw new CommandFailure(EXIT.notFound, t`no message with this id is set aside`);
  terminal.note(t`Queued again: ${count}.`);
}

async function drop(terminal: Terminal, ids: readonly string[], choice: Choice) {
  const count = await withState(terminal, async ({ store }) => {
    const letters = await chosen(store, ids, choice);
    const question = t`Delete ${letters.length} messages permanently?`;
    await confirmOrStop(terminal, question, choice.yes === true || letters.length === 0);
    return store.drop(letters);
  });
  if (count === 0) throw new CommandFailure(EXIT.notFound, t`no message with this id is set aside`);
  terminal.note(t`Deleted: ${count}.`);
}

async function chosen(
  store: BusStore,
  ids: readonly string[],
  { all }: Choice,
): Promise<readonly MessageId[]> {
  if (all === true) return (await store.dead()).map((letter) => letter.id);
  if (ids.length > 0) return ids.map(messageId);
  throw new CommandFailure(EXIT.usage, t`give the ids of the messages, or --all`);
}
