// Allow rules: what an owner allows for longer than once, one call, a program in a folder, a tool of a server,
// or letters to exactly these people, for one person in all their conversations. A rule holds until its end,
// while whoever gave it still is an owner who may do that, and never while untrusted content is in view. Read
// from disk at each use, so that what is revoked, also beside a running gateway, holds at once. Cases A07, X04
// and X06.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import { Refusal, type RouteHandlers, valid } from '../../kernel/http-routes.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef, InboundMessage, PersonSender } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { AuditLog, EffectLog } from '../../kernel/observe/telemetry.ts';
import { shownText } from '../../kernel/questions/rules/question-text.ts';
import { jsonRows, type OpenRows } from '../../kernel/rows.ts';
import { type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import { flag, kind, number, place, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { APPROVALS_SCOPE } from './approval-rows.ts';

/** All that two calls have in common which one rule covers. */
export type AllowedCall = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** What is done, or to whom something is said, in one spelling. */
  readonly pattern: string;
  /** What it stands on beside that. */
  readonly seal?: string;
  readonly session: SessionKey;
  /** Who alone asks. */
  readonly whose: string;
};

type AllowRule = Pick<AllowedCall, 'tool' | 'access' | 'session' | 'whose'> & {
  /** Hexadecimal, of what it covers. */
  readonly id: string;
  /** What it is for, as an owner was shown it. */
  readonly about: string;
  /** Who asked, in words. */
  readonly asker: string;
  /** Of older programs: it was given where untrusted content was read. Holds nowhere now. */
  readonly evenTainted: boolean;
  /** Who gave it. */
  readonly by: PersonSender;
  /** Where they did. */
  readonly at: ChatRef;
  /** Epoch milliseconds. */
  readonly givenAt: number;
  /** Of a rule without an end of its own: it holds so long, and no longer than is configured. */
  readonly days: number;
  readonly until?: number;
};

type AllowRuleUse = { readonly uses: number; readonly lastAt: number };

export type ShownAllowRule = {
  readonly yes: AllowRule;
  /** Epoch milliseconds. */
  readonly until: number;
  readonly used: AllowRuleUse | undefined;
};

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Rows of rules that hold no longer; none is given for longer. */
const KEPT_MS = 400 * DAY_MS;
/** Of an id, for people. */
const SHORT_ID_CHARS = 8;

const YES = rowShape<AllowRule>({
  ...{ id: text, tool: text, access: text, session: text, whose: text, about: text, asker: text },
  ...{ evenTainted: flag, by: kind, at: place, givenAt: number, days: number },
});
const USE = z.object({ uses: z.number(), lastAt: z.number() });

type AllowRuleRows = ReturnType<typeof openAllowRuleRows>;

/** Uses stand in rows of their own: counting one brings nothing back. */
export const openAllowRuleRows = (rows: OpenRows) => ({
  /** Oldest first. */
  allowRules: rows({
    ...jsonRows(YES),
    ...{ scope: APPROVALS_SCOPE, prefix: 'always:' },
    order: (one, other) => one.givenAt - other.givenAt,
  }),
  /** By the id of what is used. */
  uses: rows({ ...jsonRows<AllowRuleUse>(USE), scope: APPROVALS_SCOPE, prefix: 'used:' }),
});

const keyOf = (parts: readonly unknown[]) =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');
const keyOfAllowRule = ({ tool, access, pattern, seal }: AllowedCall, person: string) =>
  keyOf([person, tool, access, pattern, seal]);
/** Rules of older programs hold in one conversation. */
const olderKeyOf = ({ session, whose, tool, access, pattern, seal }: AllowedCall) =>
  keyOf([session, whose, tool, access, pattern, seal]);

export const shortId = ({ id }: Pick<AllowRule, 'id'>) => id.slice(0, SHORT_ID_CHARS);

/** Epoch milliseconds; what is configured now may be less than it was. */
const endOf = ({ givenAt, days, until }: AllowRule, configured: number) =>
  until ?? givenAt + Math.min(days, configured) * DAY_MS;

/** For people; a rule that holds until it is revoked has no day. */
export const endWords = (until: number) =>
  until === ALWAYS ? 'until revoked' : `until ${new Date(until).toISOString().slice(0, 10)}`;
const ALWAYS = Number.MAX_SAFE_INTEGER;

/** What holds now, oldest first. */
export async function shownAllowRules(
  { allowRules, uses }: AllowRuleRows,
  configured: number,
  now: number,
): Promise<readonly ShownAllowRule[]> {
  const shown = (await allowRules.list()).map(async (yes) => {
    return { yes, until: endOf(yes, configured), used: await uses.get(yes.id) };
  });
  return (await Promise.all(shown)).filter(({ until }) => now < until);
}

/** How many. */
async function removed({ allowRules, uses }: AllowRuleRows, found: readonly AllowRule[]) {
  for (const { id } of found) {
    await allowRules.change(
      id,
      () => 'remove',
      () => [uses.write(id, undefined)],
    );
  }
  return found.length;
}

/** Revokes the rule of this id, or of an id that begins so; `all`: each. How many. */
export async function takeBack(rows: AllowRuleRows, typed: string): Promise<number | 'several'> {
  const wanted = typed.trim().toLowerCase();
  const isMeant = ({ id }: AllowRule) =>
    wanted === 'all' || (wanted !== '' && id.startsWith(wanted));
  const found = (await rows.allowRules.list()).filter(isMeant);
  return wanted !== 'all' && found.length > 1 ? 'several' : removed(rows, found);
}

type AllowRulesDeps = {
  readonly rows: AllowRuleRows;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
  readonly audit: EffectLog;
  /** Who somebody is now, and what they may have done. */
  origins: Origins;
  /** For how many days a rule is given; 0: for none, and none counts. */
  days(): number;
  /** The person known by this name, `channel:id`, over all channels; the name itself where nobody is. */
  personOf(whose: string): Promise<string>;
  /** IANA zone of the configuration; empty: the machine's. */
  timeZone(): string;
  /** Where an owner decides who is in no chat. */
  readonly outsideChats: ChatRef;
};

/** Whether the conversation of now shows untrusted content. */
type Now = { readonly isTainted: boolean };

export type AllowRules = ReturnType<typeof createAllowRules>;

export function createAllowRules(deps: AllowRulesDeps) {
  const { rows, clock, log, audit } = deps;
  const { allowRules, uses } = rows;

  /** What is entered in the audit. */
  function noted(action: string, yes: AllowRule, isTainted: boolean) {
    const { by, tool, session } = yes;
    const fields = { subject: 'standing', action, about: shortId(yes), by: by.id };
    return { kind: 'approval', fields: { ...fields, tool, session, isTainted } } as const;
  }

  /** Nobody gives for good what they cannot give now. */
  async function isStillTheirs({ by, at, access }: AllowRule): Promise<boolean> {
    const { isOwnerHere, rights } = await deps.origins(asMessage(by, at, clock.now()));
    return isOwnerHere && rights[access] !== 'never';
  }

  return {
    days: () => deps.days(),
    /** Whether it is allowed already; the use is entered in the audit before this resolves. */
    async covers(call: AllowedCall & Now): Promise<boolean> {
      const { isTainted, session, tool } = call;
      const days = deps.days();
      if (isTainted || days === 0) return false;
      const person = await deps.personOf(call.whose);
      const yes =
        (await allowRules.get(keyOfAllowRule(call, person))) ??
        (await allowRules.get(olderKeyOf(call)));
      if (yes === undefined) return false;
      const now = clock.now();
      if (now >= endOf(yes, days)) return false;
      if (!(await isStillTheirs(yes))) {
        log.warn('allow rule ignored: its owner has no right to allow it any more', {
          tool,
          session,
        });
        return false;
      }
      await audit.enter(noted('used', yes, isTainted));
      await uses.change(yes.id, (use) => ({ uses: (use?.uses ?? 0) + 1, lastAt: now }));
      log.info('call allowed by an allow rule', { tool, session });
      return true;
    },
    /** A repeat changes nothing but the day it begins. `at`: left out outside of any chat. */
    async give(
      call: AllowedCall & Pick<AllowRule, 'about' | 'asker'>,
      term: Term,
      by: PersonSender,
      at: ChatRef = deps.outsideChats,
    ): Promise<void> {
      const { tool, access, session, whose, about, asker } = call;
      const id = keyOfAllowRule(call, await deps.personOf(whose));
      const now = clock.now();
      const days = deps.days();
      const until = untilOf(term, now, deps.timeZone());
      const yes: AllowRule = {
        ...{ tool, access, session, whose, about, asker },
        ...{ id, by, at, evenTainted: false, givenAt: now, days },
        ...(until === undefined ? {} : { until }),
      };
      await allowRules.change(id, () => yes);
      await allowRules.erase((each) => endOf(each, each.days) < now - KEPT_MS);
      await uses.expire(now - KEPT_MS);
      audit.note(noted('given', yes, false));
    },
    /** What holds now, oldest first. */
    list: () => shownAllowRules(rows, deps.days(), clock.now()),
    /** Removes rules of these conversations that hold the words, so that it is asked again; how many. */
    async forget(chats: readonly string[], holds: Holds): Promise<number> {
      const all = await allowRules.list();
      return removed(
        rows,
        all.filter((yes) => isOfChats(yes, chats) && holds(yes.about)),
      );
    },
    /** How many; `several`: the id is the beginning of several. */
    takeBack: (typed: string) => takeBack(rows, typed),
  };
}

/** How long an allow rule holds. */
export const TERMS = ['hour', 'today', 'days', 'always'] as const;
export type Term = (typeof TERMS)[number];

const EXACTLY = 'exactly this call';
const WHILE = 'while no untrusted content is in view';
const covered = (scope: string) => (scope === EXACTLY ? scope : verbatim(shownText(scope)));
export const TERM_WORDS: Readonly<Record<Term, (days: number) => string>> = {
  hour: () => 'for 1 hour',
  today: () => 'today',
  days: (count) => (count === 1 ? 'for one day' : `for ${count} days`),
  always: () => 'always',
};

/** What an owner is told of rules before they give one. */
export const ruleHint = (scope = EXACTLY) =>
  `A longer approval covers ${covered(scope)}, ${WHILE}; /approvals revokes it.`;

/** What is said of an approval for longer than once. */
export const ruleGiven = (term: Term, days: number, scope = EXACTLY) =>
  `Allowed, and ${covered(scope)} ${TERM_WORDS[term](days)}, ${WHILE}. /approvals revokes it.`;

export const termLabel = (term: Term, days: number) =>
  term === 'always' ? 'Always allow' : `Allow ${TERM_WORDS[term](days)}`;

/** Undefined: by days. */
function untilOf(term: Term, now: number, timeZone: string): number | undefined {
  switch (term) {
    case 'hour':
      return now + HOUR_MS;
    case 'today': {
      const [hours = 0, minutes = 0] = createMinuteText()(now, timeZone)
        .slice(-5)
        .split(':')
        .map(Number);
      return now + DAY_MS - hours * HOUR_MS - minutes * MINUTE_MS;
    }
    case 'days':
      return undefined;
    case 'always':
      return ALWAYS;
  }
}

/** As if they wrote there now, alone with the agent. */
function asMessage(sender: PersonSender, chat: ChatRef, now: number): InboundMessage {
  const times = { sentAt: now, receivedAt: now };
  return { id: messageId('standing'), chat, sender, addressing: 'direct', text: '', ...times };
}

// Allow rules over HTTP:
//   GET  /api/approvals          {rules}
//   POST /api/approvals/revoke   {id} of a rule; {result: words}

export type RuleControl = Pick<AllowRules, 'list' | 'takeBack'>;

type RuleRoutesDeps = {
  readonly standing: RuleControl;
  /** Who decides here. */
  readonly owner: PersonSender;
  readonly audit: AuditLog;
};

/** Of what a rule covers. */
const MAX_ABOUT_CHARS = 300;
const revokeBody = z.strictObject({ id: z.string().regex(/^[0-9a-f]{64}$/, 'is not an id') });

/** Texts are untrusted, never markup, but `asker`, which is Markdown. */
export function ruleRoutes({ standing, owner, audit }: RuleRoutesDeps) {
  return {
    async 'GET /api/approvals'() {
      const rules = (await standing.list()).map(({ yes, until, used }) => {
        const { id, tool, asker } = yes;
        const about = shownText(headOf(yes.about, MAX_ABOUT_CHARS));
        return { id, tool, about, asker, until: endWords(until), uses: used?.uses ?? 0 };
      });
      return { body: { rules } };
    },
    async 'POST /api/approvals/revoke'({ body }) {
      const { id } = valid(revokeBody, body);
      if ((await standing.takeBack(id)) !== 1)
        throw new Refusal(404, 'not_found', 'There is no such allow rule any more.');
      const fields = { subject: 'standing', action: 'revoked', about: id, by: owner.id };
      audit.note({ kind: 'approval', fields });
      return { body: { result: 'Allow rule revoked.' } };
    },
  } satisfies RouteHandlers;
}
