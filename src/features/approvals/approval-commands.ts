// `/approvals`: what waits for an owner's approval, and the standing approvals.

import { OWNER_ONLY } from '../../kernel/access/command-access.ts';
import type { Medium } from '../../kernel/access/rights.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Drafts } from '../letters/drafts.ts';
import type { Approvals } from './approvals.ts';
import { shownText } from './rules/approval-text.ts';
import { type ShownYes, type Standing, shortId } from './standing.ts';

export const APPROVAL_COMMANDS = {
  approvals: {
    summary: 'what waits for your yes, asked again here, and what you always allow',
    usage: '/approvals [revoke <id> | revoke all]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

export type ApprovalCommandDeps = {
  readonly approvals: Pick<Approvals, 'open' | 'askAgain'>;
  readonly drafts: Pick<Drafts, 'open' | 'askAgain'>;
  readonly standing: Pick<Standing, 'list' | 'takeBack'>;
  /** What kind of channel it is. */
  mediumOf(channel: string): Medium;
};

export function approvalCommands(deps: ApprovalCommandDeps): readonly Command[] {
  return commandsOf(APPROVAL_COMMANDS, {
    approvals(origin, argument) {
      const [word, id = ''] = argument.split(/\s+/);
      return word === 'revoke' ? revoke(id, deps) : showApprovals(origin, deps);
    },
  });
}

const MAX_ABOUT_CHARS = 300;

async function revoke(id: string, { standing }: ApprovalCommandDeps): Promise<string> {
  if (id === '') return 'Say /approvals revoke with an id, or with all; /approvals shows them.';
  const taken = await standing.takeBack(id);
  if (taken === 'several') return 'Several begin so; say more of the id.';
  if (taken === 0) return 'There is none like that; /approvals shows them.';
  return taken === 1 ? 'Taken back: I ask again.' : `${taken} are taken back: I ask again.`;
}

async function showApprovals(
  { message: { chat } }: CommandOrigin,
  { approvals, drafts, standing, mediumOf }: ApprovalCommandDeps,
): Promise<string> {
  const calls = await approvals.open();
  const letters = await drafts.open();
  const waiting = [
    ...calls.map(({ tool, asker }) => `- ${verbatim(tool)}, asked by ${asker}`),
    ...letters.map(({ name, turn }) => `- a draft for ${verbatim(name)}, asked by ${turn.asker}`),
  ];
  const always = alwaysLines(await standing.list());
  if (waiting.length === 0) return ['Nothing waits for your yes.', ...always].join('\n');
  if (mediumOf(chat.channel) === 'mail') {
    const hint = 'Decide in a chat: a mail may hold words of others.';
    return [...waiting, hint, ...always].join('\n');
  }
  await approvals.askAgain(chat);
  await drafts.askAgain(chat);
  return [...waiting, 'I ask each of them again here.', ...always].join('\n');
}

function alwaysLines(all: readonly ShownYes[]): readonly string[] {
  if (all.length === 0) return [];
  const lines = all.map(({ yes, until, used }) => {
    const about = verbatim(shownText(headOf(yes.about, MAX_ABOUT_CHARS)));
    const day = new Date(until).toISOString().slice(0, 10);
    const where = `in ${verbatim(yes.session)}, asked by ${yes.asker}`;
    const when = yes.evenTainted ? ', also after words of others' : '';
    const times = used === undefined ? 'not used yet' : `used ${used.uses} times`;
    return `- \`${shortId(yes)}\` ${verbatim(yes.tool)} ${about} ${where}${when}; until ${day}, ${times}`;
  });
  return ['', 'Always allowed (/approvals revoke <id> takes one back):', ...lines];
}
