// `/compact`: sums up the earlier part of a conversation now, and says what came of it.

import type { CompactionReport } from '../agent/compaction.ts';
import { COMPACTION_ENGINES, type CompactionEngine } from '../core/compaction.ts';
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
