// `/compact`: sums up the earlier part of a conversation now, and says what came of it.

import type { CompactionReport } from '../../agent/compaction.ts';
import { COMPACTION_ENGINES, type CompactionEngine } from '../../agent/rules/compaction.ts';
import { withPerson } from '../../features/people/person-commands.ts';
import { doorOf, isSameChat, type Person } from '../access/person.ts';
import { messageId } from '../message/ids.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';

const FAILED =
  'The conversation could not be summed up. Nothing is lost: what does not fit any more is left ' +
  'out of my sight, and I try again later.';

export const COMPACT_COMMANDS: readonly Command[] = [
  {
    name: 'compact',
    summary: 'sum up the earlier conversation',
    usage: `/compact [engine [${COMPACTION_ENGINES.join(' | ')} | default]]`,
    timing: 'in_order',
    async run(origin, argument, deps) {
      const [word = '', wanted = ''] = argument.trim().toLowerCase().split(/\s+/);
      if (word === 'engine') return engine(origin, wanted, deps);
      if (word !== '') return 'Say /compact, or /compact engine with the name of one.';
      const { session, message } = origin;
      const chosen = await deps.settings.get(session);
      return wordsFor(await deps.compacting.compact(session, message, chosen.model, chosen.engine));
    },
  },
];

const ABOUT: Readonly<Record<CompactionEngine, string>> = {
  summary: 'One text stands for what came before; I can read it again word by word.',
  lossless: 'Nodes stand for what came before; each can be expanded to its messages.',
};

async function engine(
  { session }: CommandOrigin,
  wanted: string,
  { compacting, settings }: CommandDeps,
): Promise<string> {
  const { engine: chosen, ...rest } = await settings.get(session);
  if (wanted === '') return described('The engine is', chosen ?? compacting.configured());
  if (wanted === 'default') {
    await settings.set(session, rest);
    return described('Again as configured, the engine is', compacting.configured());
  }
  const known = COMPACTION_ENGINES.find((each) => each === wanted);
  if (known === undefined) return `There are these engines: ${COMPACTION_ENGINES.join(', ')}.`;
  await settings.set(session, { ...rest, engine: known });
  return described('From now on the engine is', known);
}

const described = (head: string, name: CompactionEngine) => `${head} ${name}. ${ABOUT[name]}`;

function wordsFor(report: CompactionReport): string {
  switch (report.kind) {
    case 'compacted': {
      const [before, after] = [report.tokensBefore, report.tokensAfter].map(tokens);
      const messages = report.messages === 1 ? '1 message' : `${report.messages} messages`;
      return `${messages} summed up: the conversation took about ${before} tokens and now takes ${after}. The last exchange stays as it is, and I can read the others again word by word.`;
    }
    case 'nothing':
      return `There is nothing to sum up: the conversation takes about ${tokens(report.tokens)} tokens.`;
    case 'failed':
      return report.text === undefined ? FAILED : `${report.text}\n\n${FAILED}`;
  }
}

const tokens = (count: number) => count.toLocaleString('en-US');

// `/continue`: moves a conversation, with its context and the turn under way, to another door of the
// same person.

export const CONTINUE_COMMANDS: readonly Command[] = [
  {
    name: 'continue',
    summary: 'go on with this conversation on another door',
    usage: '/continue <door>',
    timing: 'immediate',
    isRepeatable: true,
    run: (origin, argument, deps) =>
      withPerson(origin, deps, (person) => continueOn(person, origin, argument, deps)),
  },
];

async function continueOn(
  person: Person,
  { message, session }: CommandOrigin,
  argument: string,
  { bus, people }: CommandDeps,
): Promise<string> {
  const others = person.doors.filter((door) => !isSameChat(door.chat, message.chat));
  const names = others.filter(({ chat }) => chat !== undefined).map(({ channel }) => channel);
  const door = doorOf({ doors: others }, argument.trim().toLowerCase());
  if (door === undefined) {
    if (names.length === 0) return `I know you only here. ${LINK_HINT}`;
    return `Say where: /continue with one of ${names.join(', ')}.`;
  }
  if (door.chat === undefined)
    return `Write to me on ${door.channel} first, so that I know the way.`;
  await people.routes.move(session, { to: door.chat, at: message.receivedAt });
  await bus.send({
    id: messageId(`${message.id}/continued`),
    chat: door.chat,
    markdown: `We go on here with what we had on ${message.chat.channel}.`,
  });
  return `Continues on ${door.channel}.`;
}

const LINK_HINT = 'Join another door with /link first.';
