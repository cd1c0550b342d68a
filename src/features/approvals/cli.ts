// The command `nanobot approvals`: calls that wait for an approval, allow rules, and policies. The
// running gateway allows or denies a call; the rest needs none.

import { Command } from 'commander';
import { momentText } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import { APPROVAL_POLICIES, AUTOMATIC } from '../../kernel/access/rights.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { ShownAllowRule } from './allow-rules.ts';
import type { Approval } from './approval-rows.ts';

const SHOWN_ID_CHARS = 8;
/** By the labels of the question's buttons. */
const DECISIONS = [
  ['allow', t`Allow once`, t`allow a waiting call once`],
  ['deny', t`Deny`, t`deny a waiting call`],
] as const;

type Json = { readonly json?: boolean };

export function approvalsCommand(terminal: Terminal): Command {
  const command = new Command('approvals').description(
    t`calls waiting for approval, and allow rules`,
  );
  command
    .command('list', { isDefault: true })
    .description(t`list waiting calls and allow rules`)
    .option('--json', t`print as JSON`)
    .action(({ json }: Json) => listApprovals(terminal, json === true));
  for (const [name, label, summary] of DECISIONS) {
    command
      .command(name)
      .description(summary)
      .argument('<id>', t`id from "approvals list"`)
      .action((id: string) => decide(terminal, id, label));
  }
  command
    .command('policy')
    .description(t`show or set how much is asked`)
    .argument('[whose]', t`owners, trusted, or a group as channel:id`)
    .argument('[policy]', t`strict, normal or open; auto: as configured`)
    .action((whose?: string, policy?: string) => policyOf(terminal, whose, policy));
  command
    .command('revoke')
    .description(t`delete an allow rule`)
    .argument('<id>', t`id from "approvals list" or its beginning; "all" deletes every rule`)
    .action((id: string) => revoke(terminal, id));
  return command;
}

async function listApprovals(terminal: Terminal, json: boolean) {
  const { typedId, wordsOf } = await import('./approval-rows.ts');
  const { endWords, openAllowRuleRows, shownAllowRules } = await import('./allow-rules.ts');
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const { alwaysDays } = config.tools.approvals;
  const { open, always } = await withState(terminal, async ({ rows }) => ({
    open: await waitingCalls(rows),
    always: await shownAllowRules(openAllowRuleRows(rows), alwaysDays, terminal.clock.now()),
  }));
  if (json) return terminal.printJson([...open.map(waitingJson), ...always.map(alwaysJson)]);
  const { chatNames } = await import('../../cli/chat-names.ts');
  const sessions = [...open, ...always.map(({ yes }) => yes)].map(({ session }) => session);
  const names = await chatNames(terminal, sessions);
  const chatOf = (session: string) => names.get(session) || session;
  if (open.length === 0) terminal.note(t`No calls are waiting for approval.`);
  else
    terminal.note(t`Waiting for approval. Decide with: nanobot approvals allow <id>, or deny <id>`);
  for (const approval of open) {
    const { tool, session, asker, at } = approval;
    const id = typedId(approval).slice(0, SHOWN_ID_CHARS);
    terminal.print(t`${id}  ${momentText(at)}  ${tool}  in ${chatOf(session)}, asked by ${asker}`);
    const { sentence, text = '' } = wordsOf(approval);
    terminal.print(`  ${printable(sentence)}`);
    for (const line of text === '' ? [] : text.split('\n')) terminal.print(`  ${printable(line)}`);
  }
  if (always.length > 0)
    terminal.note(t`Allow rules. Delete one with: nanobot approvals revoke <id>`);
  for (const { yes, until, used } of always) {
    const { id, tool, session, asker, about } = yes;
    const times =
      used === undefined
        ? t`not used yet`
        : ngettext(msgid`used ${used.uses} time`, `used ${used.uses} times`, used.uses);
    terminal.print(
      t`${id.slice(0, SHOWN_ID_CHARS)}  ${tool}  in ${chatOf(session)}, asked by ${asker}; ${endWords(until)}, ${times}`,
    );
    terminal.print(`  ${printable(about)}`);
  }
}

const waitingJson = ({ id, tool, arguments: call, session, asker, at }: Approval) => {
  return { state: 'waiting', id, tool, arguments: call, session, asker, at };
};

const alwaysJson = ({ yes, until, used }: ShownAllowRule) => {
  const { id, tool, about, session, asker, by, givenAt: at } = yes;
  const shown = { state: 'always', id, tool, about, session, asker, by: by.id };
  return { ...shown, at, until, uses: used?.uses ?? 0 };
};

async function waitingCalls(rows: OpenRows): Promise<readonly Approval[]> {
  const { approvalOf } = await import('./approval-rows.ts');
  const { openQuestionRows } = await import('../../kernel/questions/question-rows.ts');
  const open = await openQuestionRows(rows).open.list();
  const calls = open.flatMap((question) => approvalOf(question) ?? []);
  return calls.filter(({ state }) => state.kind === 'open');
}

async function decide(terminal: Terminal, typed: string, label: string) {
  const { questionId, typedId } = await import('./approval-rows.ts');
  const { remoteDecision, runningGateway } = await import('../../cli/login/remote-login.ts');
  const open = await withState(terminal, ({ rows }) => waitingCalls(rows));
  const [meant, ...more] = open.filter((approval) => typedId(approval).startsWith(typed));
  if (meant === undefined)
    throw new CommandFailure(EXIT.notFound, t`no waiting call has the id ${typed}`);
  if (more.length > 0) {
    throw new CommandFailure(EXIT.usage, t`several ids begin with ${typed}; type more characters`);
  }
  const gateway = await runningGateway(terminal);
  terminal.note(await remoteDecision(gateway, questionId(meant.id), label));
}

async function revoke(terminal: Terminal, id: string) {
  const { openAllowRuleRows, takeBack } = await import('./allow-rules.ts');
  const taken = await withState(terminal, ({ rows }) => takeBack(openAllowRuleRows(rows), id));
  if (taken === 'several') {
    throw new CommandFailure(EXIT.usage, t`several ids begin with ${id}; type more characters`);
  }
  if (taken === 0) throw new CommandFailure(EXIT.notFound, t`No allow rule with id ${id}.`);
  terminal.note(ngettext(msgid`Allow rule deleted.`, `${taken} allow rules deleted.`, taken));
}

async function policyOf(terminal: Terminal, whose?: string, typed?: string) {
  const { setGeneralApprovals } = await import('../people/index.ts');
  const { chosenPolicies } = await import('../../kernel/people/people-rows.ts');
  if (whose === undefined) {
    const chosen = await withState(terminal, ({ people }) => chosenPolicies(people.peopleRows));
    for (const [who, policy] of chosen) terminal.print(`${who}  ${policy}`);
    if (chosen.size === 0) terminal.note(t`All policies are as configured.`);
    return;
  }
  const policy = [...APPROVAL_POLICIES, AUTOMATIC].find((each) => each === typed);
  if (policy === undefined)
    throw new CommandFailure(EXIT.usage, t`Type a policy: ${APPROVAL_POLICIES.join(', ')}, auto`);
  const words = await withState(terminal, ({ people }) =>
    setGeneralApprovals(people.peopleRows, whose, policy),
  );
  if (words === undefined)
    throw new CommandFailure(
      EXIT.usage,
      t`Unknown: ${whose}. Try: owners, trusted, telegram:-100123`,
    );
  terminal.note(words);
}
