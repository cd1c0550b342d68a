// `/compact`: sums up the earlier part of a conversation now, and says what came of it.

import type { CompactionReport } from '../agent/compaction.ts';
import type { Command } from './command.ts';

const FAILED =
  'The conversation could not be summed up. Nothing is lost: what does not fit any more is left ' +
  'out of my sight, and I try again later.';

export const COMPACT_COMMANDS: readonly Command[] = [
  {
    name: 'compact',
    summary: 'sum up the earlier conversation',
    timing: 'in_order',
    async run({ session, message }, _argument, { compacting, settings }) {
      const { model } = await settings.get(session);
      return wordsFor(await compacting.compact(session, message, model));
    },
  },
];

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
