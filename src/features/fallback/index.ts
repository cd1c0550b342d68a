// `agents.defaults.fallback: ask`: a person decides whether a fallback model answers in place of the
// chosen one. The turn that asks ends; a yes is a message that begins the turn of the fallback model
// (ADR 0034). Loaded when a call or an answer needs it.

import { type PlannedCall, SpendingRefusedError, type TurnInput } from '../../agent/agent.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { ModelGuard } from '../../kernel/guards.ts';
import { type SessionKey, type TurnId, userId } from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  chatRefOf,
  type InboundMessage,
  sessionOf,
} from '../../kernel/message/message.ts';
import { personNames } from '../../kernel/message/message-limits.ts';
import type { TurnPerson } from '../../kernel/message/untrusted.ts';
import {
  type Asked,
  type Choice,
  EXPIRED,
  LIFETIME_MS,
  outcomeMessage,
  payloadHandler,
  payloadOf,
} from '../../kernel/questions/question-rows.ts';
import { answered } from '../../kernel/turns/turn-answers.ts';
import { flag, number, object, place, rowShape, text } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  FALLBACK_ASKED,
  FALLBACK_REFUSED,
  type FailedModel,
  PASSED_OVER,
} from '../../providers/provider.ts';
import { priceOf } from '../../providers/rules/model-names.ts';

/** The payload of the question. */
type Pending = {
  readonly model: string;
  /** Of its failure, for the person. */
  readonly text: string;
  /** The fallback model. */
  readonly other: string;
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly person: TurnPerson;
  readonly rights: Rights;
  readonly paidBy?: readonly [string, ...string[]];
  readonly replyTo?: InboundMessage['replyTo'];
  /** Epoch milliseconds. */
  readonly at: number;
  /** The model answered again after a no. */
  readonly isOver?: boolean;
};

const PENDING = rowShape<Pending>({
  ...{ model: text, text, other: text, session: text, turnId: text },
  ...{ chat: place, person: object, rights: object, at: number, isOver: flag.optional() },
});

const SUBJECT = 'fallback';
const HOUR_MS = 3_600_000;
const MAX_PARENTS = 20;

export function createFallback(kernel: Kernel) {
  const { live, clock, log, bus, questions, sessions, contributed } = kernel;

  const reserve: ModelGuard['reserve'] = async (call, signal, next) => {
    const { insteadOf, turn, model } = call;
    const allowed = turn === undefined ? undefined : await allowedBy(turn);
    if (insteadOf === undefined) {
      if (allowed !== undefined && (await isAnsweredSince(allowed))) throw endsWith('');
      if (allowed?.model === model) throw endsWith(allowed.text, PASSED_OVER);
    } else if (allowed?.other !== model && !(await isAllowedForNow(sessionOf(call.payer), model))) {
      return ask(call, insteadOf, signal);
    }
    const reserved = await next(call, signal);
    if (turn === undefined || reserved.kind === 'refused') return reserved;
    return {
      ...reserved,
      settle(end) {
        reserved.settle(end);
        if (end.kind !== 'finished') return;
        void over(turn.session, model).catch((error) =>
          log.warn('question about a model not withdrawn', { error }),
        );
      },
    };
  };

  /** The decision that one of these messages brings. */
  async function allowedBy({ messages }: TurnInput): Promise<Pending | undefined> {
    const bringing = messages.findLast(
      ({ message: { sender } }) => sender.kind === 'system' && sender.source === SUBJECT,
    );
    const known = bringing && (await questions.get(bringing.message.id));
    return known && payloadOf(known, PENDING);
  }

  /** A later message was answered, and with it what waited. */
  async function isAnsweredSince({ session, at }: Pending): Promise<boolean> {
    const entries = await sessions.load(session);
    return entries.some(
      (entry) => entry.role === 'turn_end' && entry.outcome === 'answered' && entry.at >= at,
    );
  }

  /** By a yes for an hour in the conversation, or in one from which it was started. */
  async function isAllowedForNow(session: SessionKey, model: string): Promise<boolean> {
    const since = clock.now() - HOUR_MS;
    const allowed = (await questions.known(SUBJECT)).flatMap((each) => {
      const isForHour = (each.outcome ?? each.chosen?.action) === 'hour';
      const isNow = each.at === undefined || each.at > since;
      const isMeant = payloadOf(each, PENDING)?.other === model;
      return isForHour && isNow && isMeant ? [each.session] : [];
    });
    let asked: readonly SessionKey[] = [session];
    for (let steps = 0; allowed.length > 0 && steps < MAX_PARENTS; steps += 1) {
      if (asked.some((each) => allowed.includes(each))) return true;
      asked = (await Promise.all(asked.map(startedFrom))).flat();
    }
    return false;
  }

  async function startedFrom(session: SessionKey): Promise<readonly SessionKey[]> {
    const { channel, chat } = chatRefOf(session) ?? {};
    if (channel === undefined || chat === undefined) return [];
    return (await contributed.startedFrom(channel)?.(chat)) ?? [];
  }

  async function ask(
    { turn, model: other, settled }: PlannedCall,
    failed: FailedModel,
    signal: AbortSignal,
  ): Promise<never> {
    const refused = endsWith(failed.text, FALLBACK_REFUSED);
    const newest = turn?.messages.at(-1)?.message;
    const paidBy = newest && namesOf(newest);
    if (turn === undefined || newest === undefined || paidBy === undefined) throw refused;
    await settled?.(signal);
    const { session, turnId, person, rights } = turn;
    const id = `${SUBJECT}/${turnId}/${other}`;
    if ((await questions.get(id)) === undefined) {
      const earlier = await questions.known(SUBJECT, session);
      if (earlier.some(({ outcome }) => outcome === undefined))
        throw endsWith(stillWaiting(failed.model));
      if (earlier.some((each) => isDeclined(each, failed.model))) throw refused;
    }
    const { chat } = newest;
    const replyTo = answered(newest);
    const pending: Pending = {
      ...{ model: failed.model, text: failed.text, other },
      ...{ session, turnId, chat, person, rights, paidBy, at: clock.now() },
      ...(replyTo === undefined ? {} : { replyTo }),
    };
    await questions.ask({
      ...{ id, chat, session, payload: pending, orOwners: true },
      markdown: questionOf(failed, other),
      choices: [
        { label: t`Yes, this time`, action: 'once' },
        { label: t`Yes, for an hour`, action: 'hour', hasNoThumb: true },
        { label: t`No`, action: 'no' },
      ],
      approvers: paidBy.flatMap((name) => idIn(chat, name)),
      subject: `${SUBJECT}:${id}`,
      expiresInMs: LIFETIME_MS.fallback,
    });
    log.info('asked whether a fallback model may answer', { session, model: other });
    throw endsWith('');
  }

  /** After a no the chat is not asked again until the model has answered, for an hour at most. */
  function isDeclined(
    { outcome, at = 0, payload }: Awaited<ReturnType<typeof questions.known>>[number],
    model: string,
  ): boolean {
    const pending = payloadOf({ payload }, PENDING);
    const isNo = outcome === 'no' || outcome === EXPIRED;
    const isRecent = at > clock.now() - HOUR_MS && pending?.isOver !== true;
    return isNo && isRecent && pending?.model === model;
  }

  function questionOf({ model, reason }: FailedModel, other: string): string {
    const { prices } = live.config.models;
    const { currency } = live.config.limits.budget;
    const [before, after] = [model, other].map((name) => priceOf(name, prices, currency));
    const asked = t`${model} does not answer: ${reason}. Answer with ${other}?`;
    const isDearer =
      after !== undefined &&
      (before === undefined || after.input > before.input || after.output > before.output);
    if (!isDearer) return asked;
    const costs = t`It costs ${after.input} ${currency} for a million tokens in and ${after.output} out`;
    return before === undefined
      ? `${asked} ${costs}.`
      : t`${asked} ${costs}, in place of ${before.input} and ${before.output}.`;
  }

  async function over(session: SessionKey, model: string): Promise<void> {
    await questions.drop(SUBJECT, session, t`No longer needed: a later message was answered.`);
    for (const each of await questions.known(SUBJECT, session))
      if (isDeclined(each, model))
        await questions.change(each.id, PENDING, (pending) => ({ ...pending, isOver: true }));
  }

  async function answer(pending: Pending, { id }: Asked, { action }: Choice) {
    const { model, other, text: failure, rights } = pending;
    if (action === 'no') return t`Not answered. ${failure}`;
    const told = `[${model} did not answer, and ${other} is allowed to. Go on with what was asked above and is not answered yet.]`;
    const decided = { rights, isTainted: false, turn: pending };
    const message = { id, source: SUBJECT, text: told } as const;
    await bus.accept([{ kind: 'queue', message: outcomeMessage(decided, message, clock.now()) }]);
    return action === 'hour'
      ? t`${other} answers, and for an hour whenever ${model} does not.`
      : t`${other} answers this time.`;
  }

  return {
    reserve,
    handler: payloadHandler(PENDING, {
      answer,
      expired: async ({ text: failure }) => ({
        words: t`Not answered: nobody decided in time. ${failure}`,
      }),
    }),
  };
}

/** Ends the turn with this text, unless the next model is tried. */
const endsWith = (words: string, code: string = FALLBACK_ASKED) =>
  new SpendingRefusedError({ text: words }, code);

const stillWaiting = (model: string) =>
  t`${model} still does not answer. The question above waits for a decision; a yes counts for this message too.`;

/** Who can be asked about it: a person in a chat, also behind what an owner allowed. */
function namesOf({ sender, chat }: InboundMessage): Pending['paidBy'] {
  if (sender.kind === 'person')
    return sender.verified === 'unverified' ? undefined : personNames({ sender, chat });
  return ['approval', 'draft', SUBJECT].includes(sender.source) ? sender.paidBy : undefined;
}

const idIn = ({ channel }: ChatRef, name: string) =>
  name.startsWith(`${channel}:`) ? [userId(name.slice(channel.length + 1))] : [];
