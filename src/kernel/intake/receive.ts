// The intake: every message that a channel hands over passes admission, becomes durable together
// with the channel's cursor, and only then may the channel acknowledge it.

import { hash } from 'node:crypto';
import type { ShowOutcome } from '../../channels/channel.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, jsonRow, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { type AdmittedRole, type SettledVerdict, withoutCode } from '../access/admission.ts';
import type { AcceptResult, ChannelCursor, InboundEntry, MessageBus } from '../bus/bus.ts';
import type { KeyValueStore, StateStore } from '../bus/store/store.ts';
import { type Commands, WELCOME } from '../commands/commands.ts';
import type { Kernel } from '../feature.ts';
import { type AccountName, accountOf, messageId } from '../message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type OutboundDraft,
  sessionKeyOf,
} from '../message/message.ts';
import { redeemLink } from '../people/links.ts';
import type { Pairing } from '../people/pairing.ts';
import type { People } from '../people/people.ts';
import { inOrder } from '../ports.ts';
import type { Questions } from '../questions/questions.ts';
import type { FairUse, Weighed } from './fair-use.ts';
import { type Gated, type GroupIntake, type IntakeStep, isNote } from './group-intake.ts';

type ReceiveDeps = Omit<GateDeps, 'reply'> & {
  readonly groups: GroupIntake;
  readonly fairUse: FairUse;
  /** A message was accepted. */
  arrived(message: InboundMessage): void;
};

const WENT_WRONG = t`Something went wrong. Please try again.`;

type AcceptOptions = { readonly cursor?: ChannelCursor };
type ReceiveOptions = AcceptOptions & { readonly pressed?: ShowOutcome };

export interface Receiver {
  /** @throws BusFullError: nothing was stored. */
  receive(batch: readonly InboundEntry[], options?: ReceiveOptions): Promise<void>;
}

export function createReceiver(deps: ReceiveDeps): Receiver {
  const { bus, people, log } = deps;

  async function reply(message: InboundMessage, markdown: string) {
    const draft: OutboundDraft = { chat: message.chat, markdown, replyTo: message.id };
    await bus.send({ ...draft, id: messageId(`${message.id}/reply`) });
  }

  const gate = createGate({ ...deps, reply });

  /** The counts are stored with the messages, and reverted with them. */
  async function store({ batch, store: storeCounts, settle }: Weighed, options: AcceptOptions) {
    let results: readonly AcceptResult[] = [];
    try {
      for (const item of batch) await item.before?.();
      const gated = await deps.groups.withTalk(await routed(batch));
      const entries = gated.map(({ entry }) => entry);
      [results] = await Promise.all([bus.accept(entries, options), storeCounts()]);
      return gated.filter(
        ({ isHeard }, index) =>
          results[index] === 'accepted' || (results[index] === 'applied' && isHeard === true),
      );
    } finally {
      settle(results);
    }
  }

  /**
   * In order, after admission: changes by a command of the batch apply to the messages after it.
   */
  async function routed(gated: readonly Gated[]): Promise<readonly Gated[]> {
    const result: Gated[] = [];
    for (const item of gated) {
      const message = await people.routes.route(item.entry.message);
      result.push({ ...item, entry: { ...item.entry, message } });
    }
    return result;
  }

  /** It is stored and never comes again: a failure is reported and does not stop the others. */
  async function followed({ entry: { message }, afterwards }: Gated, show?: ShowOutcome) {
    try {
      await afterwards?.(show);
    } catch (error) {
      log.error('message not processed', { messageId: message.id, error });
      if (message.addressing !== 'direct') return;
      await reply(message, WENT_WRONG).catch((unsaid) =>
        log.warn('error reply not sent', { error: unsaid }),
      );
    }
  }

  return {
    async receive(batch, { pressed: show, ...options } = {}) {
      const weighed = await deps.fairUse.weigh(await Promise.all(batch.map(gate)));
      for (const item of await store(weighed, options)) {
        if (item.entry.kind === 'queue') deps.arrived(item.entry.message);
        await followed(item, show);
      }
    },
  };
}

// A message that several accounts of a channel received is answered by one: the first that admits
// its sender. The choice is on disk before anything is answered.

/** A copy that comes later than that is answered again. */
const KEEP_MS = 30 * 86_400_000;
const SWEEP_MS = 86_400_000;

type Holder = { readonly account: AccountName; readonly isLetIn: boolean };

const HOLDER = rowShape<Holder>({ account: text, isLetIn: flag });

type SharedArrivalsDeps = Pick<Kernel, 'judge' | 'clock'> & {
  readonly state: StateStore;
  /** Whether the channel has several accounts. */
  hasSeveral(channel: string): boolean;
};

/** The account that answers the message; `key` identifies every copy. */
export type SharedArrivals = (
  account: AccountName,
  key: string,
  message: InboundMessage,
) => Promise<AccountName>;

export function createSharedArrivals(deps: SharedArrivalsDeps): SharedArrivals {
  const lanes = createLanes();
  let sweptAt = Number.NEGATIVE_INFINITY;

  async function sweep(rows: KeyValueStore) {
    const now = deps.clock.now();
    if (now - sweptAt < SWEEP_MS) return;
    sweptAt = now;
    await rows.expire('', now - KEEP_MS);
  }

  async function holderOf(own: AccountName, key: string, message: InboundMessage) {
    const rows = deps.state.scope(`arrivals:${accountOf(own).channel}`);
    const row = hash('sha256', key);
    const held = jsonRow(await rows.get(row), HOLDER);
    if (held?.account === own) return own;
    const isLetIn = withoutCode(await deps.judge(message)).kind === 'admit';
    if (held !== undefined && (held.isLetIn || !isLetIn)) return held.account;
    const mine: Holder = { account: own, isLetIn };
    await rows.set(row, JSON.stringify(mine));
    await sweep(rows);
    return own;
  }

  return async (account, key, message) => {
    const { channel } = accountOf(account);
    if (!deps.hasSeveral(channel)) return account;
    return lanes.run(`${channel}\n${key}`, () => holderOf(account, key, message));
  };
}

// The intake steps: what becomes of each message before anything is stored. The judge decides who
// may talk to the agent; then one step after the other sees the message until one decides,
// including what is done before and after it is durable.

type GateDeps = Pick<Kernel, 'bus' | 'log' | 'judge'> & {
  readonly pairing: Pairing;
  readonly people: Pick<People, 'persons' | 'decisions' | 'links' | 'routes'>;
  readonly commands: Commands;
  readonly groups: Pick<GroupIntake, 'heard' | 'changed' | 'called'>;
  readonly questions: Pick<Questions, 'choose' | 'press' | 'numbered' | 'tokensOf' | 'heard'>;
  /** Every step, in this order. */
  readonly order: readonly string[];
  /** Those of features. */
  readonly steps: readonly IntakeStep[];
  /** Starts to fetch the attachments of a queued message. */
  fetchAttachments(message: InboundMessage): void;
  /** Tells an owner. */
  tellOwner(text: string): void;
  /** Records where an owner wrote last. */
  ownerWroteIn(chat: ChatRef): Promise<void>;
  reply(message: InboundMessage, markdown: string): Promise<void>;
};

export type Gate = (entry: InboundEntry) => Promise<Gated>;

/** @throws OrderError for a step that the order does not name, and for two of one name */
export function createGate(deps: GateDeps): Gate {
  const steps = inOrder('intake steps', deps.order, [...createSteps(deps), ...deps.steps]);
  return async (entry) => {
    const { message } = entry;
    if (entry.kind === 'record') return { entry };
    const judged = await deps.judge(message);
    const verdict = withoutCode(judged);
    for (const { decide } of steps) {
      const gated = await decide(message, verdict, judged);
      if (gated !== undefined) return gated;
    }
    return refused(message, t`no intake step took it`, deps.log);
  };
}

/** A message from before a question is no answer to it when it is handed over again. */
function whereNew(bus: Pick<MessageBus, 'trace'>, { before, ...gated }: Gated): Gated {
  const once = async () => {
    if ((await bus.trace(gated.entry.message.id)) === undefined) await before?.();
  };
  return { ...gated, before: once };
}

/** An owner in a private chat. */
const isOwnerDirect = (message: InboundMessage, verdict: SettledVerdict): boolean =>
  verdict.kind === 'admit' && verdict.role === 'owner' && message.addressing === 'direct';

function createSteps(deps: GateDeps): readonly IntakeStep[] {
  const { bus, pairing, people, commands, log, reply } = deps;
  const isPlain = (message: InboundMessage) => message.press === undefined && !isNote(message);

  return [
    {
      name: 'pairing code',
      decide: (message, _verdict, judged) =>
        judged.kind === 'redeem' && isPlain(message) ? redeem(message, judged.code) : undefined,
    },
    {
      name: 'link code',
      decide: (message, _verdict, judged) =>
        judged.kind === 'link' && isPlain(message)
          ? redeemLink(message, judged.code, judged.otherwise, deps)
          : undefined,
    },
    // A press is never a message for the agent, of any sender.
    {
      name: 'press',
      decide: (message, verdict) =>
        message.press === undefined ? undefined : pressed(message, verdict),
    },
    {
      name: 'edit or reaction',
      decide: (message, verdict) => (isNote(message) ? noted(message, verdict) : undefined),
    },
    {
      name: 'group talk',
      decide: (message, verdict) =>
        verdict.kind === 'hear' ? deps.groups.heard(message, verdict.gate) : undefined,
    },
    {
      name: 'refusal',
      decide(message, verdict) {
        if (verdict.kind !== 'refuse') return undefined;
        const { gate, wasCalled } = verdict;
        return wasCalled ? deps.groups.called(message, gate) : refused(message, gate, log);
      },
    },
    {
      name: 'where people are',
      async decide(message, verdict) {
        if (isOwnerDirect(message, verdict)) await deps.ownerWroteIn(message.chat);
        await people.persons.seen(message);
        return undefined;
      },
    },
    {
      name: 'numbered answer',
      async decide(message, verdict) {
        const press = await deps.questions.numbered(message);
        return press === undefined ? undefined : pressed({ ...message, press }, verdict);
      },
    },
    {
      name: 'answer in words',
      async decide(message, verdict) {
        const role = verdict.kind === 'admit' ? verdict.role : undefined;
        if (role === undefined || commands.find(message.text) !== undefined) return undefined;
        // Before the message is stored, so that it is repeated after a crash.
        const before = await deps.questions.heard(message, role);
        if (before === undefined) return undefined;
        const entry = { kind: 'record', message, gate: 'answer to a question' } as const;
        return whereNew(bus, { entry, counts: { role, as: 'command' }, before });
      },
    },
    {
      name: 'command or turn',
      decide: (message, verdict) =>
        verdict.kind === 'admit' ? admitted(message, verdict.role) : undefined,
    },
  ];

  function pressed(message: InboundMessage, verdict: SettledVerdict): Gated {
    if (verdict.kind !== 'admit' || verdict.role === undefined) {
      return refused(message, t`a button pressed by an unknown sender`, log);
    }
    const { role } = verdict;
    return {
      entry: { kind: 'record', message, gate: 'answer to a question' },
      counts: { role, as: 'command' },
      // Before it is stored, so that a kill afterwards loses no decision.
      before: () => deps.questions.choose(message, role),
      async afterwards(show) {
        const { words = '', isSaid } = (await deps.questions.press(message, role)) ?? {};
        if (words === '') return;
        show?.(message.id, words);
        if (isSaid !== true) await reply(message, words);
      },
    };
  }

  /** A change or a reaction asks nothing: a sender who is not admitted changes nothing. */
  async function noted(message: InboundMessage, verdict: SettledVerdict): Promise<Gated> {
    const talk = deps.groups.changed(message);
    if (verdict.kind !== 'admit' || verdict.role === undefined) {
      return { ...refused(message, t`a change or reaction by an unknown sender`, log), ...talk };
    }
    const press = await thumbed(message, deps);
    if (press !== undefined) return pressed({ ...message, press }, verdict);
    // A changed text, or a new answer, may cause a model call, as a new message does.
    const { amends } = message;
    const as = amends !== undefined && amends.kind !== 'withdrawn' ? 'message' : 'command';
    return { entry: { kind: 'queue', message }, counts: { role: verdict.role, as }, ...talk };
  }

  function admitted(asked: InboundMessage, role: AdmittedRole | undefined): Gated {
    const command = commands.find(asked.text);
    const as = command === undefined ? 'message' : 'command';
    // Internal senders have limits of their own.
    const counts = role === undefined ? {} : ({ counts: { role, as } } as const);
    if (command?.timing !== 'immediate') {
      const afterwards = async () => deps.fetchAttachments(asked);
      return { ...counts, entry: { kind: 'queue', message: asked }, afterwards };
    }
    const answer = async () => {
      const message = await people.routes.route(asked);
      await reply(message, await commands.run(command, { message, role }));
    };
    const answerOnce = async () => {
      if ((await bus.trace(asked.id)) === undefined) await answer();
    };
    return {
      ...counts,
      entry: { kind: 'record', message: asked, gate: `command /${command.name}` },
      ...(command.isRepeatable === true ? { before: answerOnce } : { afterwards: answer }),
    };
  }

  /** Undefined if the code is invalid. */
  async function redeem(message: InboundMessage, code: string): Promise<Gated | undefined> {
    const { sender, chat } = message;
    if (sender.kind !== 'person') return undefined;
    if (!(await pairing.redeem(chat.channel, sender, chat.chat, code))) return undefined;
    log.info('sender paired', { channel: chat.channel });
    await deps.ownerWroteIn(chat);
    return {
      entry: { kind: 'record', message, gate: 'paired by code' },
      async afterwards() {
        await people.persons.joinLocalChannels(message);
        await reply(message, t`You are paired as my owner.\n\n${WELCOME}`);
        await people.decisions.answerHeld(chat.channel, idsOf(sender), true);
      },
    };
  }
}

// What becomes of a message that must not be answered: a record of the reason, and a line in the
// log.

export function refused(message: InboundMessage, reason: string, log: Logger): Gated {
  return {
    entry: { kind: 'record', message, gate: reason },
    async afterwards() {
      const fields = { channel: message.chat.channel, messageId: message.id, reason };
      // Talk in groups that are not listed may be frequent.
      if (message.addressing === 'ambient') log.debug('message refused', fields);
      else log.info('message refused', fields);
    },
  };
}

// A thumb reaction on a question with two choices, on channels without buttons: up is the first
// choice, down the last. The question decides who may answer, as for any other answer.

type ThumbDeps = {
  readonly bus: Pick<MessageBus, 'sentAs'>;
  readonly questions: Pick<Questions, 'tokensOf'>;
};

const UP = '👍';
const DOWN = '👎';

/** The token of the choice that the reaction represents; undefined if it answers nothing. */
export async function thumbed(
  { chat, reaction }: InboundMessage,
  { bus, questions }: ThumbDeps,
): Promise<string | undefined> {
  const sign = reaction?.emoji?.replace(/\p{Emoji_Modifier}/gu, '');
  if (reaction === undefined || (sign !== UP && sign !== DOWN)) return undefined;
  const sent = await bus.sentAs(sessionKeyOf(chat), reaction.to);
  if (sent === undefined) return undefined;
  const tokens = await questions.tokensOf(sent.id);
  // With more than two choices a thumb is ambiguous.
  if (tokens.length !== 2) return undefined;
  return tokens.at(sign === UP ? 0 : -1);
}
