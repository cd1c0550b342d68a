// People over HTTP: unknown senders, open questions and known people; and an owner's decisions
// about them, by the same handlers as buttons, numbers and commands.

import type { z } from 'zod';
import { CHANNELS } from '../../channels/index.ts';
import type { Person } from '../../kernel/access/person.ts';
import { AUTOMATIC, type ToolPolicies } from '../../kernel/access/rights.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import { type PersonId, personId } from '../../kernel/message/ids.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import type { AuditLog } from '../../kernel/observe/telemetry.ts';
import type { People } from '../../kernel/people/people.ts';
import { chosenPolicies, personIdKey } from '../../kernel/people/people-rows.ts';
import {
  createUnknownSenderAnswers,
  decidedElsewhere,
  UNKNOWN_SENDER_SUBJECT,
  unknownSenderId,
  unknownSenderQuestion,
} from '../../kernel/people/unknown-senders.ts';
import type { OpenQuestion } from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { channelNamed, subjectOf } from './admissions.ts';
import { POLICY_ROLES, policyRowOf, setApprovals, setGeneralApprovals } from './person-commands.ts';
import { SettingError, setPerson } from './person-settings.ts';
import {
  admissionDecision,
  channelOfPerson,
  decided,
  onePerson,
  otherPerson,
  type PeopleView,
  peopleView,
  personSettings,
  policyChange,
  questionAnswer,
  type ShownPerson,
  unknownSenderDecision,
} from './rules/views.ts';

/** Further persons are only counted. */
const MAX_SHOWN_PERSONS = 200;
const MAX_SHOWN_ADMISSIONS = 200;

export type PeopleRoutesDeps = Pick<Kernel, 'clock'> & {
  readonly people: Pick<People, 'strangers' | 'decisions' | 'persons' | 'peopleRows' | 'pairing'>;
  configured(): ToolPolicies;
  readonly questions: Pick<Questions, 'open' | 'answer' | 'withdraw'>;
  /** The sender in whose name decisions are made. */
  readonly owner: PersonSender;
  readonly audit: AuditLog;
};

export function peopleRoutes(deps: PeopleRoutesDeps) {
  const { people, questions, owner, audit, clock } = deps;
  const { strangers, decisions, persons, peopleRows, pairing } = people;
  const answers = createUnknownSenderAnswers({ strangers, decisions });

  const note = (subject: string, about: string, action: string) =>
    audit.note({ kind: 'person', fields: { subject, about, action, by: owner.id } });

  /** Of the roles, and of the groups with a policy of their own. */
  async function policies() {
    const chosen = await chosenPolicies(peopleRows);
    const { approvals: ofRoles, groups: all } = deps.configured();
    const entries = all.filter(({ approvals }) => approvals !== undefined);
    const groups = new Set([
      ...entries.map(({ who }) => who),
      ...[...chosen.keys()].filter((who) => who.includes(':')),
    ]);
    return [...Object.keys(POLICY_ROLES), ...groups].map((id) => {
      const role = Object.entries(POLICY_ROLES).find(([name]) => name === id)?.[1];
      const ofGroup = entries.find(({ who }) => who === id)?.approvals ?? 'strict';
      return {
        ...{ id, approvals: chosen.get(policyRowOf(id) ?? id) ?? AUTOMATIC },
        configured: role === undefined ? ofGroup : ofRoles[role],
      };
    });
  }

  async function view(): Promise<PeopleView> {
    const [waiting, open, known, { approved }, { persons: all }] = await Promise.all([
      strangers.list(),
      questions.open(),
      persons.list(),
      pairing.list(),
      peopleRows.known(),
    ]);
    const decidedFor = approved.filter(
      ({ channel, userId, ids = [userId] }) =>
        ids[0] === userId && !ids.some((id) => all.by(personIdKey(channel, id)).length > 0),
    );
    return {
      unknownSenders: waiting.map(({ channel, userId, name, excerpt, lastAt, heldMessages }) => {
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
      persons: known.slice(0, MAX_SHOWN_PERSONS).map(shownPerson),
      /** Of all persons; the list may be shorter. */
      personCount: known.length,
      admissions: decidedFor
        .sort((one, other) => other.at - one.at)
        .slice(0, MAX_SHOWN_ADMISSIONS)
        .map(({ channel, userId, name, role, at }) => ({ channel, userId, name, role, at })),
      channels: CHANNELS.map(({ name, label }) => ({ name, label })),
    };
  }

  /** In the words for the owner. */
  async function admitted({ channel, userId: typed, role }: z.infer<typeof admissionDecision>) {
    const who = await subjectOf(decisions, channelNamed(channel), typed);
    const { userId } = who;
    if (role === 'none') {
      const isUndone = await pairing.revoke(channel, userId);
      if (!isUndone) return t`Nothing was decided about ${userId}.`;
      note('admission', `${channel}:${userId}`, 'undone');
      return t`Undone: for ${userId} only the configuration of the channel counts.`;
    }
    if (role === 'blocked') await decisions.block(who);
    else await decisions.allow(who, role);
    note('admission', `${channel}:${userId}`, role);
    if (role === 'blocked') return t`${userId} is blocked on ${channel}.`;
    return t`${userId} may talk to the agent on ${channel}, as ${role}.`;
  }

  /** In the words for the owner. */
  async function unlinked(id: PersonId, channel: string): Promise<string> {
    switch (await persons.unlink(id, channel)) {
      case 'done':
        note('unlinked', id, channel);
        return t`${channel} is disconnected.`;
      case 'only':
        return t`This is their only channel.`;
      case 'needed':
        return t`They were let in on ${channel}; without it they would lose the other channels. Let them in on another one first.`;
      case 'unknown':
        return t`They have no channel ${channel}.`;
    }
  }

  const known = <Found>(found: Found | undefined): Found => {
    if (found !== undefined) return found;
    throw new Refusal(404, 'not_found', t`This person is not known any more.`);
  };
  const personWith = async (id: string) => known(await persons.get(id));

  return {
    'GET /api/v1/people': endpoint(
      { summary: t`Who waits, what waits for an approval, and who is known`, answer: peopleView },
      view,
    ),
    'GET /api/v1/people/events': watched(
      { summary: t`The same, now and after each change`, answer: peopleView },
      clock,
      view,
    ),
    'POST /api/v1/people/unknown-senders': endpoint(
      {
        summary: t`Let an unknown sender in, once or from now on, block them, or answer yourself`,
        ...{ body: unknownSenderDecision, answer: decided },
      },
      async (_params, { action, ...who }) => {
        const rest = unknownSenderId(who);
        const one = (await strangers.list()).find((each) => unknownSenderId(each) === rest);
        if (one === undefined) {
          throw new Refusal(404, 'not_found', t`They no longer wait: this was already decided.`);
        }
        const result = await answers.answer({ rest }, { action });
        await questions.withdraw(unknownSenderQuestion(one), decidedElsewhere(result));
        return { result };
      },
    ),
    'POST /api/v1/people/admissions': endpoint(
      {
        summary: t`Let somebody in by their id before they write, block them, or undo either`,
        ...{ body: admissionDecision, answer: decided },
      },
      async (_params, wish) => ({ result: await admitted(wish).catch(refused) }),
    ),
    'POST /api/v1/people/answers': endpoint(
      { summary: t`Answer a question by a choice of it`, body: questionAnswer, answer: decided },
      async (_params, { token }) => ({ result: await questions.answer(token, owner) }),
    ),
    'POST /api/v1/people/approvals': endpoint(
      {
        summary: t`Set how much is asked about a person, a role or a group`,
        ...{ body: policyChange, answer: decided },
      },
      async (_params, { id, approvals }) => {
        const result = known(
          (await setGeneralApprovals(peopleRows, id, approvals)) ??
            (await setApprovals(persons, personId(id), approvals)),
        );
        note('approvals', id, approvals);
        return { result };
      },
    ),
    'POST /api/v1/people/:id': endpoint(
      {
        summary: t`Change the settings of a person`,
        ...{ params: onePerson, body: personSettings, answer: decided },
      },
      async ({ id }, settings) => {
        await setPerson(people, await personWith(id), settings).catch(refused);
        note('settings', id, Object.keys(settings).join(' '));
        return { result: t`Changed.` };
      },
    ),
    'POST /api/v1/people/:id/unlink': endpoint(
      {
        summary: t`Disconnect a channel from a person`,
        ...{ params: onePerson, body: channelOfPerson, answer: decided },
      },
      async ({ id }, { channel }) => ({
        result: await unlinked((await personWith(id)).id, channel),
      }),
    ),
    'POST /api/v1/people/:id/merge': endpoint(
      {
        summary: t`Make another person the same one`,
        ...{ params: onePerson, body: otherPerson, answer: decided },
      },
      async ({ id }, other) => {
        const one = await personWith(id);
        const merged = await persons.merge(one.id, await personWith(other.id));
        if (merged === undefined) return { result: t`Both are the same person already.` };
        note('merged', id, other.id);
        const channels = merged.doors.map(({ channel }) => channel).join(', ');
        return { result: t`They are one person now: ${channels}.` };
      },
    ),
  } satisfies RouteHandlers;
}

function refused(error: unknown): never {
  if (!(error instanceof SettingError)) throw error;
  throw new Refusal(400, error.code, `${error.message}.`);
}

function shownPerson(person: Person): ShownPerson {
  const { id, name, role, doors, approvals, conversations, limits = {} } = person;
  const { language, timeZone, quietHours, preferredDoor: preferredChannel } = person;
  const hasPolicy = role === 'owner' || role === 'trusted';
  return {
    ...{ id: String(id), name, role: role ?? 'unknown', conversations, limits: { ...limits } },
    channels: doors.map(({ channel, ids }) => ({
      channel: String(channel),
      ids: ids.map(String),
    })),
    ...defined({ language, timeZone, quietHours, preferredChannel }),
    ...(hasPolicy ? { approvals: approvals ?? AUTOMATIC } : {}),
  };
}

/** Unknown senders are listed separately. */
const isForOwners = ({ approvers, subject }: OpenQuestion) =>
  approvers === 'owners' && !subject.startsWith(`${UNKNOWN_SENDER_SUBJECT}:`);
