// People over HTTP: unknown senders, open questions and known people; and an owner's decisions
// about them, by the same handlers as buttons, numbers and commands.
//   GET  /api/people                {`strangers`, questions, policies, persons, personCount}
//   POST `/api/people/strangers`     {channel, userId, action}; {result: words}
//   POST /api/people/answers        {token} of a choice; {result: words}
//   POST /api/people/approvals      {id, approvals} of a person, role or group: a policy, or auto; {result: words}

import { z } from 'zod';
import {
  APPROVAL_POLICIES,
  type ApprovalPolicy,
  type ToolPolicies,
} from '../../kernel/access/rights.ts';
import { Refusal, type RouteHandlers, valid } from '../../kernel/http-routes.ts';
import { personId } from '../../kernel/message/ids.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import type { People } from '../../kernel/people/people.ts';
import { chosenPolicies } from '../../kernel/people/people-rows.ts';
import {
  createUnknownSenderAnswers,
  decidedElsewhere,
  UNKNOWN_SENDER_SUBJECT,
  unknownSenderId,
  unknownSenderQuestion,
} from '../../kernel/people/unknown-senders.ts';
import type { OpenQuestion } from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { t } from '../../lib/texts.ts';
import {
  AUTOMATIC,
  POLICY_ROLES,
  policyRowOf,
  setApprovals,
  setGeneralApprovals,
} from './person-commands.ts';

/** Further persons are only counted. */
const MAX_SHOWN_PERSONS = 200;

type PeopleServiceDeps = {
  readonly people: Pick<People, 'strangers' | 'decisions' | 'persons' | 'peopleRows'>;
  configured(): ToolPolicies;
  readonly questions: Pick<Questions, 'open' | 'answer' | 'withdraw'>;
  /** The sender in whose name decisions are made. */
  readonly owner: PersonSender;
  readonly audit: AuditLog;
};

export type PeopleControl = ReturnType<typeof createPeopleService>;
export type PeopleView = Awaited<ReturnType<PeopleControl['people']>>;

export function createPeopleService(deps: PeopleServiceDeps) {
  const { people, questions, owner, audit } = deps;
  const { strangers, decisions, persons, peopleRows } = people;
  const answers = createUnknownSenderAnswers({ strangers, decisions });

  /** Of the roles, and of the groups with a policy of their own. */
  async function policies() {
    const chosen = await chosenPolicies(peopleRows);
    const entries = deps.configured().groups.filter(({ approvals }) => approvals !== undefined);
    const groups = new Set([
      ...entries.map(({ who }) => who),
      ...[...chosen.keys()].filter((who) => who.includes(':')),
    ]);
    return [...Object.keys(POLICY_ROLES), ...groups].map((id) => {
      return { id, approvals: chosen.get(policyRowOf(id) ?? id) ?? AUTOMATIC };
    });
  }

  return {
    /** Times are epoch milliseconds; names and texts are untrusted and never markup. */
    async people() {
      const [waiting, open, known] = await Promise.all([
        strangers.list(),
        questions.open(),
        persons.list(),
      ]);
      return {
        strangers: waiting.map(({ channel, userId, name, excerpt, lastAt, heldMessages }) => {
          return { channel, userId, name, excerpt, at: lastAt, messages: heldMessages };
        }),
        questions: open.filter(isForOwners).map(({ chat, choices, ...question }) => {
          const { id, markdown, askedAt, expiresAt } = question;
          const shown = choices.map(({ label, token }) => ({ label, token }));
          // Where it was asked: "here" in its text refers to that chat.
          const channel = String(chat.channel);
          return { id, channel, markdown, askedAt, expiresAt, choices: shown };
        }),
        policies: await policies(),
        persons: known.slice(0, MAX_SHOWN_PERSONS).map(({ id, name, role, doors, approvals }) => {
          const ways = doors.map(({ channel, ids }) => ({
            channel: String(channel),
            ids: ids.map(String),
          }));
          const policy =
            role === 'owner' || role === 'trusted' ? (approvals ?? AUTOMATIC) : undefined;
          return { id: String(id), name, role: role ?? 'unknown', doors: ways, approvals: policy };
        }),
        /** Of all persons; the list may be shorter. */
        personCount: known.length,
      };
    },

    /** The answer for the owner; undefined where no unknown sender has this id. */
    async decide(channel: string, userId: string, action: string): Promise<string | undefined> {
      const rest = unknownSenderId({ channel, userId });
      const one = (await strangers.list()).find((each) => unknownSenderId(each) === rest);
      if (one === undefined) return undefined;
      const words = await answers.answer({ rest }, { action });
      await questions.withdraw(unknownSenderQuestion(one), decidedElsewhere(words));
      return words;
    },

    answer: (token: string): Promise<string> => questions.answer(token, owner),

    /** `auto`: as configured. Undefined where no person, role or group has this id. */
    async setApprovals(id: string, policy: ApprovalPolicy | typeof AUTOMATIC) {
      const words =
        (await setGeneralApprovals(peopleRows, id, policy)) ??
        (await setApprovals(persons, personId(id), policy));
      const fields = { subject: 'approvals', about: id, action: policy, by: owner.id };
      if (words !== undefined) audit.note({ kind: 'person', fields });
      return words;
    },
  };
}

/** Unknown senders are listed separately. */
const isForOwners = ({ approvers, subject }: OpenQuestion) =>
  approvers === 'owners' && !subject.startsWith(`${UNKNOWN_SENDER_SUBJECT}:`);

const MAX_ID_CHARS = 320;
const policyBody = z.strictObject({
  id: z.string().min(1).max(MAX_ID_CHARS),
  approvals: z.enum([...APPROVAL_POLICIES, AUTOMATIC]),
});
const decisionBody = z.strictObject({
  channel: z.string().regex(/^[a-z0-9-]{1,64}$/, 'is not a name'),
  userId: z.string().min(1).max(MAX_ID_CHARS),
  action: z.enum(['once', 'allow', 'block', 'drop']),
});
const answerBody = z.strictObject({
  token: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'is not a valid choice'),
});

export function peopleRoutes(people: PeopleControl) {
  return {
    'GET /api/people': async () => ({ body: await people.people() }),
    async 'POST /api/people/strangers'({ body }) {
      const { channel, userId, action } = valid(decisionBody, body);
      const result = await people.decide(channel, userId, action);
      if (result !== undefined) return { body: { result } };
      throw new Refusal(404, 'not_found', t`They no longer wait: this was already decided.`);
    },
    async 'POST /api/people/answers'({ body }) {
      return { body: { result: await people.answer(valid(answerBody, body).token) } };
    },
    async 'POST /api/people/approvals'({ body }) {
      const { id, approvals } = valid(policyBody, body);
      const result = await people.setApprovals(id, approvals);
      if (result !== undefined) return { body: { result } };
      throw new Refusal(404, 'not_found', t`This person is not known any more.`);
    },
  } satisfies RouteHandlers;
}
