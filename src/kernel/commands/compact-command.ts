// `/compact`: sums up the earlier part of a conversation now, and reports the result.

import type { Agent } from '../../agent/agent.ts';
import type { CompactionReport } from '../../agent/compaction.ts';
import { COMPACTION_ENGINES, type CompactionEngine } from '../../agent/rules/compaction.ts';
import { CONVERSATION } from '../access/command-access.ts';
import type { SessionKey } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';
import type { SessionSettingsStore } from '../turns/session-settings.ts';
import { type Command, type CommandOrigin, type CommandTable, commandsOf } from './command.ts';

const FAILED =
  'The conversation could not be summed up. Nothing is lost: what does not fit any more is left ' +
  'out of my sight, and I try again later.';

export const COMPACT_COMMANDS = {
  compact: {
    summary: 'sum up the earlier conversation',
    usage: `/compact [engine [${COMPACTION_ENGINES.join(' | ')} | default]]`,
    access: CONVERSATION,
    timing: 'in_order',
  },
} satisfies CommandTable;

export type CompactCommandDeps = {
  readonly settings: SessionSettingsStore;
  readonly compacting: {
    compact(
      session: SessionKey,
      message: InboundMessage,
      model: string | undefined,
      engine: CompactionEngine | undefined,
    ): ReturnType<Agent['compact']>;
    /** The engine of conversations where none was chosen. */
    configured(): CompactionEngine;
  };
};

export function compactCommands(deps: CompactCommandDeps): readonly Command[] {
  return commandsOf(COMPACT_COMMANDS, {
    async compact(origin, argument) {
      const [word = '', wanted = ''] = argument.trim().toLowerCase().split(/\s+/);
      if (word === 'engine') return engine(origin, wanted, deps);
      if (word !== '') return 'Say /compact, or /compact engine with the name of one.';
      const { session, message } = origin;
      const chosen = await deps.settings.get(session);
      return wordsFor(await deps.compacting.compact(session, message, chosen.model, chosen.engine));
    },
  });
}

const ABOUT: Readonly<Record<CompactionEngine, string>> = {
  summary: 'One text stands for what came before; I can read it again word by word.',
  lossless: 'Nodes stand for what came before; each can be expanded to its messages.',
};

async function engine(
  { session }: CommandOrigin,
  wanted: string,
  { compacting, settings }: CompactCommandDeps,
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
