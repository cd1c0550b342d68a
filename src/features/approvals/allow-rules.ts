// Allow rules: permissions of an owner for one call, a program in a folder, a tool of a server, or
// letters to exactly these people, for one person in all their conversations. A rule applies until
// its end, while its giver is still an owner with the needed rights, and never in a tainted
// conversation. Read from the disk at each use, so that revoking it, also by the command line,
// takes effect at once. Cases A07, X04 and X06.

import { hash } from 'node:crypto';
import { z } from 'zod';
import type { ToolAccess } from '../../kernel/access/rights.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, type PersonSender, writtenNow } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { EffectLog } from '../../kernel/observe/telemetry.ts';
import { shownText } from '../../kernel/questions/rules/question-text.ts';
import { jsonRows, type OpenRows } from '../../kernel/rows.ts';
import { type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import { kind, number, place, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { APPROVALS_SCOPE } from './approval-rows.ts';

/** The properties that two calls share if one rule covers both. */
export type AllowedCall = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** The action or the recipients, in canonical form. */
  readonly pattern: string;
  /** What the call depends on besides the pattern. */
  readonly seal?: string;
  readonly session: SessionKey;
  /** The person who asks, if only one does. */
  readonly whose: string;
};

type AllowRule = Pick<AllowedCall, 'tool' | 'access' | 'session' | 'whose'> & {
  /** Hexadecimal, derived from what it covers. */
  readonly id: string;
  /** What it is for, as shown to the owner. */
  readonly about: string;
  /** Who asked, for people. */
  readonly asker: string;
  /** The owner who gave it. */
  readonly by: PersonSender;
  /** The chat where it was given. */
  readonly at: ChatRef;
  /** Epoch milliseconds. */
  readonly givenAt: number;
  /**
   * For a rule without an end of its own: it applies for this many days, at most as many as
   * configured.
   */
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
/** Retention of expired rules; no rule is given for longer. */
const KEPT_MS = 400 * DAY_MS;
/** Length of an id shown to people. */
const SHORT_ID_CHARS = 8;

const YES = rowShape<AllowRule>({
  ...{ id: text, tool: text, access: text, session: text, whose: text, about: text, asker: text },
  ...{ by: kind, at: place, givenAt: number, days: number },
});
const USE = z.object({ uses: z.number(), lastAt: z.number() });

type AllowRuleRows = ReturnType<typeof openAllowRuleRows>;

/** Uses have rows of their own, so that counting one cannot restore a revoked rule. */
export const openAllowRuleRows = (rows: OpenRows) => ({
  /** Oldest first. */
  allowRules: rows({
    ...jsonRows(YES),
    ...{ scope: APPROVALS_SCOPE, prefix: 'always:' },
    order: (one, other) => one.givenAt - other.givenAt,
  }),
  /** By the id of the rule. */
  uses: rows({ ...jsonRows<AllowRuleUse>(USE), scope: APPROVALS_SCOPE, prefix: 'used:' }),
});

const keyOf = (parts: readonly unknown[]) => hash('sha256', JSON.stringify(parts));
const keyOfAllowRule = ({ tool, access, pattern, seal }: AllowedCall, person: string) =>
  keyOf([person, tool, access, pattern, seal]);
/** Rules of earlier versions apply in one session only. */
const olderKeyOf = ({ session, whose, tool, access, pattern, seal }: AllowedCall) =>
  keyOf([session, whose, tool, access, pattern, seal]);

export const shortId = ({ id }: Pick<AllowRule, 'id'>) => id.slice(0, SHORT_ID_CHARS);

/** Epoch milliseconds; the configured limit may have been lowered since. */
const endOf = ({ givenAt, days, until }: AllowRule, configured: number) =>
  until ?? givenAt + Math.min(days, configured) * DAY_MS;

/** For people; a rule that applies until it is revoked has no day. */
export const endWords = (until: number) =>
  until === ALWAYS ? t`until revoked` : t`until ${new Date(until).toISOString().slice(0, 10)}`;
export const ALWAYS = Number.MAX_SAFE_INTEGER;

/** The rules in force, oldest first. */
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

/** Returns how many. */
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

/** Revokes the rule with this id or prefix of an id; `all`: every rule. Returns how many. */
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
  /** The current role and rights of the person who asks. */
  origins: Origins;
  /** Longest duration of a rule in days; 0: no rules are given, and none applies. */
  days(): number;
  /**
   * The person with this `channel:id`, over all channels; the argument itself where nobody is
   * known.
   */
  personOf(whose: string): Promise<string>;
  /** IANA zone of the configuration; empty: the machine's. */
  timeZone(): string;
  /** The chat used for an owner who decides outside of chats. */
  readonly outsideChats: ChatRef;
};

/** Whether the current conversation is tainted. */
type Now = { readonly isTainted: boolean };

export type AllowRules = ReturnType<typeof createAllowRules>;

export function createAllowRules(deps: AllowRulesDeps) {
  const { rows, clock, log, audit } = deps;
  const { allowRules, uses } = rows;

  /** Writes the change to the audit. */
  function noted(action: string, yes: AllowRule, isTainted: boolean) {
    const { by, tool, session } = yes;
    const fields = { subject: 'standing', action, about: shortId(yes), by: by.id };
    return { kind: 'approval', fields: { ...fields, tool, session, isTainted } } as const;
  }

  /** Nobody grants permanently what they may not grant now. */
  async function isStillTheirs({ by, at, access }: AllowRule): Promise<boolean> {
    const { isOwnerHere, rights } = await deps.origins(asMessage(by, at, clock.now()));
    return isOwnerHere && rights[access] !== 'never';
  }

  return {
    days: () => deps.days(),
    /** Whether a rule covers the call; the use is in the audit before this resolves. */
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
    /** Repeating it only restarts its duration. `at`: left out outside of chats. */
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
        ...{ id, by, at, givenAt: now, days },
        ...(until === undefined ? {} : { until }),
      };
      await allowRules.change(id, () => yes);
      await allowRules.erase((each) => endOf(each, each.days) < now - KEPT_MS);
      await uses.expire(now - KEPT_MS);
      audit.note(noted('given', yes, false));
    },
    /** The rules in force, oldest first. */
    list: () => shownAllowRules(rows, deps.days(), clock.now()),
    /** Removes rules of these conversations that contain the words; returns how many. */
    async forget(chats: readonly string[], holds: Holds): Promise<number> {
      const all = await allowRules.list();
      return removed(
        rows,
        all.filter((yes) => isOfChats(yes, chats) && holds(yes.about)),
      );
    },
    /** Returns how many; `several`: the prefix matches several ids. */
    takeBack: (typed: string) => takeBack(rows, typed),
  };
}

/** How long an allow rule holds. */
export const TERMS = ['hour', 'today', 'days', 'always'] as const;
export type Term = (typeof TERMS)[number];

const EXACTLY = t`exactly this call`;
const WHILE = t`while no untrusted content is in view`;
const covered = (scope: string) => (scope === EXACTLY ? scope : verbatim(shownText(scope)));
export const TERM_WORDS: Readonly<Record<Term, (days: number) => string>> = {
  hour: () => 'for 1 hour',
  today: () => 'today',
  days: (count) => ngettext(msgid`for one day`, `for ${count} days`, count),
  always: () => 'always',
};

/** The hint about allow rules in a question. */
export const ruleHint = (scope = EXACTLY) =>
  t`A longer approval covers ${covered(scope)}, ${WHILE}; /approvals revokes it.`;

/** What is said of an approval for longer than once. */
export const ruleGiven = (term: Term, days: number, scope = EXACTLY) =>
  t`Allowed, and ${covered(scope)} ${TERM_WORDS[term](days)}, ${WHILE}. /approvals revokes it.`;

export const termLabel = (term: Term, days: number) =>
  term === 'always' ? t`Always allow` : t`Allow ${TERM_WORDS[term](days)}`;

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

/** A message as if they wrote there now, in a private chat. */
const asMessage = (sender: PersonSender, chat: ChatRef, now: number) =>
  writtenNow({ id: messageId('standing'), chat, sender, text: '' }, now);
