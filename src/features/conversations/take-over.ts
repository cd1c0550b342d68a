// An owner takes a conversation over and answers in the agent's place. While it is taken over, what
// the person writes is recorded in the conversation and no model is called; a running answer stops.
// What the owner writes is a message on the bus: recorded and queued for sending in one commit, in the
// order of the conversation, and once however often the page repeats it. The agent sees it all when
// the conversation is handed back.

import { configuredAccount } from '../../channels/index.ts';
import { type Turn, TurnTakenOver } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { Refusal } from '../../kernel/http-routes.ts';
import { accountName, messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, type InboundMessage, writtenNow } from '../../kernel/message/message.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { verbatim, wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { jsonRows } from '../../kernel/rows.ts';
import type { HandledTurn, NextStage, TurnStage } from '../../kernel/turns/stages.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { flag, number, rowShape } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { following } from '../../lib/time/clock.ts';

/** `isTold`: the owner got a notice of a message since they wrote last. */
type TakenOver = { readonly at: number; readonly isTold: boolean };

const TAKEN_OVER = rowShape<TakenOver>({ at: number, isTold: flag });
const OWNERS_ID = 'owner/';
const WRITTEN = t`what your owner answered here in your place`;
const REASON = t`taken over by the owner`;

type TakeOverDeps = {
  nameOf(session: SessionKey): Promise<string | undefined>;
  /** The state of a conversation changed. */
  changed(): void;
};

/** Questions of the agent to the person, which nobody waits for any more. */
export async function dropQuestions({ questions }: Kernel, session: SessionKey): Promise<void> {
  for (const kind of ['ask', 'fallback']) await questions.drop(kind, session);
}

/** Whether this entry is what an owner wrote in the agent's place. */
export const isOwners = (entry: TranscriptEntry): boolean =>
  entry.role === 'user' && entry.messageId?.startsWith(OWNERS_ID) === true;

export type TakeOver = ReturnType<typeof createTakeOver>;

export function createTakeOver(kernel: Kernel, { nameOf, changed }: TakeOverDeps) {
  const { bus, clock, live, owners, people } = kernel;
  const rows = kernel.rows({
    ...jsonRows(TAKEN_OVER),
    ...{ scope: 'conversations', prefix: 'taken-over:', isCached: true },
  });
  /** Of running turns. */
  const stops = new Map<SessionKey, AbortController>();

  const isTakenOver = async (session: SessionKey) => (await rows.get(session)) !== undefined;

  /** Whether a person other than the owner is there, on a channel that can be written on. */
  async function isPossible(session: SessionKey): Promise<boolean> {
    const chat = chatRefOf(session);
    const isPlatform = chat && configuredAccount(accountName(chat), live.config.channels);
    if (chat === undefined || isPlatform === undefined) return false;
    return (await people.persons.inChat(chat))?.role !== 'owner';
  }

  async function take(session: SessionKey): Promise<void> {
    if (!(await isPossible(session))) {
      throw new Refusal(409, 'not_possible', t`This conversation cannot be taken over.`);
    }
    await rows.change(session, (row) => row ?? { at: clock.now(), isTold: false });
    stops.get(session)?.abort(new TurnTakenOver(REASON));
    await dropQuestions(kernel, session);
    changed();
  }

  async function answer(session: SessionKey, id: string, text: string): Promise<void> {
    const chat = chatRefOf(session);
    const taken = await rows.change(session, (row) => row && { ...row, isTold: false });
    if (taken === undefined || chat === undefined) {
      throw new Refusal(409, 'not_taken_over', t`Take the conversation over first.`);
    }
    const message = {
      ...{ id: messageId(`${OWNERS_ID}${session}/${id}`), chat, session, text },
      sender: { kind: 'system', source: 'owner' },
      announces: { attachments: [] },
    } as const;
    await bus.accept([{ kind: 'queue', message: writtenNow(message, clock.now()) }]);
  }

  return {
    stage: stageOf(kernel, { isTakenOver, stops, wrote }),
    isTakenOver,
    isPossible,
    take,
    /** From the next message on the agent answers. */
    async handBack(session: SessionKey): Promise<void> {
      await rows.change(session, (row) => row && 'remove');
      changed();
    },
    /** `id`: of the page; a repeat changes nothing. Durable when it resolves. */
    answer,
  };

  /** The first message since the owner wrote last is reported. */
  async function wrote(session: SessionKey, { chat }: Pick<InboundMessage, 'chat'>) {
    const told = await rows.change(session, (row) =>
      row === undefined || row.isTold ? undefined : { ...row, isTold: true },
    );
    if (told === undefined) return;
    const name = verbatim((await nameOf(session)) ?? session);
    const words =
      t`${name} wrote in a conversation that you have taken over, and I do not answer there. ` +
      t`Answer, or hand it back, in the Inbox of the web page.`;
    owners.tell(words, accountName(chat));
  }
}

type StageDeps = {
  readonly stops: Map<SessionKey, AbortController>;
  isTakenOver(session: SessionKey): Promise<boolean>;
  wrote(session: SessionKey, message: InboundMessage): Promise<void>;
};

function stageOf(kernel: Kernel, deps: StageDeps): TurnStage {
  const { stops } = deps;

  /** Runs the turn; once the conversation is taken over, its messages are only recorded. */
  async function run(turn: Turn, next: NextStage): Promise<HandledTurn> {
    const stop = new AbortController();
    // Before the row is read: taking over afterwards stops this turn.
    stops.set(turn.session, stop);
    try {
      if (await deps.isTakenOver(turn.session)) stop.abort(new TurnTakenOver(REASON));
      const result = await next(asNew(turn, stop.signal), ({ agent }) => ({
        agent: {
          ...agent,
          async *run(input, context, signal) {
            using either = following(signal, stop.signal);
            return yield* agent.run(input, context, either.signal);
          },
        },
      }));
      if (!stop.signal.aborted || result.ending !== 'stopped') return result;
      await deps.wrote(turn.session, turn.messages[0].message);
      return { ...result, note: REASON };
    } finally {
      if (stops.get(turn.session) === stop) stops.delete(turn.session);
    }
  }

  return {
    name: 'taken-over',
    run: (turn, next) =>
      turn.messages[0].message.id.startsWith(OWNERS_ID) ? said(turn, kernel) : run(turn, next),
  };
}

/** Nobody is asked whether a changed message is to be answered again: the new text is recorded. */
function asNew(turn: Turn, stop: AbortSignal): Turn {
  const [{ message, ...first }, ...rest] = turn.messages;
  if (!stop.aborted || message.amends?.kind !== 'edited') return turn;
  const { amends: _changed, ...now } = message;
  return { ...turn, messages: [{ ...first, message: now }, ...rest] };
}

async function said(turn: Turn, { sessions, clock, mediumOf }: Kernel): Promise<HandledTurn> {
  const [{ seq, message }] = turn.messages;
  const { id, text: markdown, chat } = message;
  // A mail belongs to the thread of the message that it answers.
  const isThreaded = mediumOf(chat.channel) === 'mail';
  const earlier = isThreaded ? await sessions.load(turn.session) : [];
  const replyTo = earlier.findLast((entry) => entry.role === 'user' && entry.seq !== undefined);
  const text = wrapUntrusted(WRITTEN, [{ text: markdown }], newBoundary());
  const entry = { role: 'user', turnId: turn.id, messageId: id, text, at: clock.now() } as const;
  await sessions.append(turn.session, [entry], { durable: false, epoch: turn.epoch });
  const to = replyTo?.role === 'user' && replyTo.messageId;
  const draft = { chat, markdown, isDictated: true, ...(to ? { replyTo: to } : {}) } as const;
  return { throughSeq: seq, outbound: [draft] };
}
