// The command `/approvals`: what waits for an approval, the allow rules, and the approval policy.

import type { Person } from '../../kernel/access/person.ts';
import {
  APPROVAL_POLICIES,
  type ApprovalPolicy,
  AUTOMATIC,
  type Medium,
} from '../../kernel/access/rights.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  OWNER_ONLY,
} from '../../kernel/commands/command-access.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { PeopleRows } from '../../kernel/people/people-rows.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { shownText } from '../../kernel/questions/rules/question-text.ts';
import { headOf } from '../../lib/text/cut.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { type AllowRules, endWords, type ShownAllowRule, shortId } from '../approvals/index.ts';
import { setApprovals, setGeneralApprovals, withPerson } from '../people/index.ts';

export const APPROVAL_COMMANDS = {
  approvals: {
    summary: t`show what waits for your approval and your allow rules`,
    usage:
      '/approvals [strict | normal | open | auto [owners | trusted | <person> | <group>] | revoke <id> | revoke all]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

type ApprovalCommandDeps = {
  readonly questions: Pick<Questions, 'open' | 'askAgain'>;
  readonly standing: Pick<AllowRules, 'list' | 'takeBack'>;
  readonly persons: Pick<Persons, 'author' | 'get' | 'find' | 'change'>;
  readonly peopleRows: Pick<PeopleRows, 'policies'>;
  /** The medium of a channel. */
  mediumOf(channel: string): Medium;
};

export function approvalCommands(deps: ApprovalCommandDeps): readonly Command[] {
  return commandsOf(APPROVAL_COMMANDS, {
    approvals(origin, argument) {
      const [word = '', ...rest] = argument.split(/\s+/);
      if (word === 'revoke') return revoke(rest[0] ?? '', deps);
      const policies = [...APPROVAL_POLICIES, AUTOMATIC] as const;
      const policy = policies.find((each) => each === word.toLowerCase());
      return policy === undefined
        ? showApprovals(origin, deps)
        : setPolicy(origin, policy, rest.join(' '), deps);
    },
  });
}

const MAX_ABOUT_CHARS = 300;
/** Mails and unknown senders have lists of their own. */
const LISTED = /^(?:approval|draft|reflection|budget):/;

async function setPolicy(
  origin: CommandOrigin,
  policy: ApprovalPolicy | typeof AUTOMATIC,
  whom: string,
  { persons, peopleRows }: ApprovalCommandDeps,
): Promise<string> {
  const set = async ({ id }: Person) =>
    (await setApprovals(persons, id, policy)) ?? t`This person is no longer known.`;
  if (whom === '') return withPerson(origin, persons, set);
  const [person, ...others] = await persons.find(whom);
  if (person === undefined) {
    const set = await setGeneralApprovals(peopleRows, whom, policy);
    return (
      set ?? t`No person is called ${verbatim(whom)}. /people shows them; a group is channel:id.`
    );
  }
  return others.length > 0
    ? t`Several people have this name: use an id from /people.`
    : set(person);
}

async function revoke(id: string, { standing }: ApprovalCommandDeps): Promise<string> {
  if (id === '') return t`Usage: /approvals revoke <id> | all. /approvals shows the ids.`;
  const taken = await standing.takeBack(id);
  if (taken === 'several') return t`Several ids begin like this: type more characters.`;
  if (taken === 0) return t`There is no allow rule with this id; /approvals lists them.`;
  return ngettext(
    msgid`Allow rule deleted: I ask again.`,
    `${taken} allow rules deleted: I ask again.`,
    taken,
  );
}

async function showApprovals(
  { message: { chat } }: CommandOrigin,
  { questions, standing, mediumOf }: ApprovalCommandDeps,
): Promise<string> {
  const open = (await questions.open()).filter(({ subject }) => LISTED.test(subject));
  const waiting = open.map(({ markdown }) => `- ${markdown.split('\n', 1).join('')}`);
  const always = alwaysLines(await standing.list());
  if (waiting.length === 0) return [t`Nothing is waiting for your approval.`, ...always].join('\n');
  if (mediumOf(chat.channel) === 'mail') {
    const hint = t`Decide in a chat: a mail may hold untrusted content.`;
    return [...waiting, hint, ...always].join('\n');
  }
  for (const { id } of open) await questions.askAgain(id, chat);
  return [...waiting, t`I ask about each of them again here.`, ...always].join('\n');
}

function alwaysLines(all: readonly ShownAllowRule[]): readonly string[] {
  if (all.length === 0) return [];
  const lines = all.map(({ yes, until, used }) => {
    const about = verbatim(shownText(headOf(yes.about, MAX_ABOUT_CHARS)));
    const where = t`in ${verbatim(yes.session)}, asked by ${yes.asker}`;
    const times = used === undefined ? t`not used yet` : t`used ${used.uses} times`;
    return `- \`${shortId(yes)}\` ${verbatim(yes.tool)} ${about} ${where}; ${endWords(until)}, ${times}`;
  });
  return ['', t`Allow rules (delete one with /approvals revoke <id>):`, ...lines];
}
