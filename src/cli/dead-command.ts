// `nanobot dead`: messages set aside after their last failed try, to be tried again or dropped.

import { Command } from 'commander';
import type { DeadLetter } from '../kernel/bus/bus.ts';
import type { BusStore } from '../kernel/bus/store/store.ts';
import { type MessageId, messageId } from '../kernel/message/ids.ts';
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
  const command = new Command('dead').description('messages that were set aside');
  command
    .command('list')
    .description('every message set aside, oldest first')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => listDead(terminal, json === true));
  command
    .command('retry')
    .description('put messages back in their queues')
    .argument('[ids...]', terminal.typed('as "nanobot dead list" shows them'))
    .option('--all', 'every one')
    .action((ids: readonly string[], choice: Choice) => retry(terminal, ids, choice));
  command
    .command('drop')
    .description('delete messages set aside')
    .argument('[ids...]', terminal.typed('as "nanobot dead list" shows them'))
    .option('--all', 'every one')
    .option('--yes', 'without asking')
    .action((ids: readonly string[], choice: Choice) => drop(terminal, ids, choice));
  return command;
}

async function listDead(terminal: Terminal, json: boolean) {
  const letters = await withState(terminal, ({ store }) => store.dead());
  if (json) return terminal.printJson(letters);
  if (letters.length === 0) terminal.note('Nothing is set aside.');
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
  const way = letter.direction === 'inbound' ? 'not answered' : 'not delivered';
  const state = letter.state === 'unknown' ? 'perhaps delivered' : way;
  const tries = `${letter.attempts} ${letter.attempts === 1 ? 'try' : 'tries'}`;
  return [
    letter.id,
    `  ${momentText(letter.at)}  ${state} after ${tries}: ${printable(letter.reason)}`,
    `  ${chat}: ${printable(letter.excerpt)}`,
  ];
}

async function retry(terminal: Terminal, ids: readonly string[], choice: Choice) {
  const count = await withState(terminal, async ({ store }) =>
    store.retry(await chosen(store, ids, choice)),
  );
  if (count === 0) throw new CommandFailure(EXIT.notFound, 'nothing of that id is set aside');
  terminal.note(`${count} back in the queue.`);
}

async function drop(terminal: Terminal, ids: readonly string[], choice: Choice) {
  const count = await withState(terminal, async ({ store }) => {
    const letters = await chosen(store, ids, choice);
    const question = `Delete ${letters.length} for good?`;
    await confirmOrStop(terminal, question, choice.yes === true || letters.length === 0);
    return store.drop(letters);
  });
  if (count === 0) throw new CommandFailure(EXIT.notFound, 'nothing of that id is set aside');
  terminal.note(`${count} dropped.`);
}

async function chosen(
  store: BusStore,
  ids: readonly string[],
  { all }: Choice,
): Promise<readonly MessageId[]> {
  if (all === true) return (await store.dead()).map((letter) => letter.id);
  if (ids.length > 0) return ids.map(messageId);
  throw new CommandFailure(EXIT.usage, 'name the messages, or say --all');
}
