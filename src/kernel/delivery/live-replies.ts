// Shows running turns in the chat: typing, and a live preview of the answer. A draft is edited only
// after the last edit completed, and the final text waits for the current edit.

import type { Channel, Editing } from '../../channels/channel.ts';
import { withDeadline } from '../../lib/time/clock.ts';
import type { LiveDraft, SendContext } from '../bus/bus.ts';
import type { Kernel } from '../feature.ts';
import { DeliveryError } from '../message/errors.ts';
import type { NativeId, TurnId } from '../message/ids.ts';
import { accountNameOf } from '../message/ids.ts';
import type { LiveUpdate } from '../message/message.ts';
import {
  type DraftState,
  draftText,
  nextDraftStep,
  TYPING_DELAY_MS,
} from '../turns/rules/live-reply.ts';

type LiveRepliesDeps = Pick<Kernel, 'bus' | 'clock' | 'log'> & {
  readonly channel: Channel;
};

/** A platform call for a draft may take this long before the final text stops waiting for it. */
const STEP_DEADLINE_MS = 15_000;
const tooSlow = () => new Error('the platform did not answer in time');

/**
 * Tries of a final text that may end while finding its draft; later ones are sent beside a possible
 * draft.
 */
const MAX_FINDING_TRIES = 20;

export type LiveReplies = ReturnType<typeof createLiveReplies>;

export function createLiveReplies(deps: LiveRepliesDeps) {
  const turns = new Map<TurnId, LiveTurn>();
  return {
    /** Follows the channel's turns until aborted. */
    async run(signal: AbortSignal): Promise<void> {
      await removeOrphans(deps, signal);
      for await (const update of deps.bus.live.subscribe(accountNameOf(deps.channel), signal)) {
        deps.channel.liveView?.show(update);
        let turn = turns.get(update.turnId);
        if (update.result?.kind === 'moved') {
          turns.delete(update.turnId);
          void takeAway(deps, update, turn, signal);
          continue;
        }
        if (turn === undefined) {
          if (update.phase === 'ended') continue;
          turn = new LiveTurn(deps, update, signal);
          turns.set(update.turnId, turn);
        }
        if (update.phase === 'ended') {
          // Kept until the current edit has completed: the final text waits for it by `settle`.
          void turn.finish().finally(() => turns.delete(update.turnId));
        } else {
          turn.show(update);
        }
      }
    },
    /**
     * Ends the turn's draft after the current edit; returns its id if there is one in the chat. If
     * its placement was interrupted, it is found with the final text. @throws DeliveryError
     */
    async settle(
      turnId: TurnId,
      markdown: string,
      { signal, attempt }: Pick<SendContext, 'signal' | 'attempt'>,
    ): Promise<NativeId | undefined> {
      const settled = await turns.get(turnId)?.finish();
      if (settled !== undefined) return settled;
      try {
        return await standing(await deps.bus.draft(turnId), markdown, signal, deps);
      } catch (error) {
        const isFinal = error instanceof DeliveryError && error.remedy.kind === 'never';
        if (!isFinal && attempt < MAX_FINDING_TRIES) throw error;
        deps.log.info('preview not found', { turnId, error });
        return undefined;
      }
    },
  };
}

/** Used if finding a draft requires a text and there is none. */
const NO_TEXT = '…';

/**
 * The id of a draft in its chat; one whose placement was interrupted is placed again under its
 * name.
 */
async function standing(
  draft: LiveDraft | undefined,
  markdown: string,
  signal: AbortSignal,
  { channel, bus }: Pick<LiveRepliesDeps, 'channel' | 'bus'>,
): Promise<NativeId | undefined> {
  if (draft === undefined || draft.nativeId !== undefined) return draft?.nativeId;
  const { turnId, chat, replyTo } = draft;
  if (channel.editing?.isFoundAgain !== true) return undefined;
  const options = { signal, name: turnId, ...(replyTo === undefined ? {} : { replyTo }) };
  const text = markdown.trim() === '' ? NO_TEXT : markdown;
  const found = await channel.editing.place(chat, text, options);
  await bus.recordDraft(turnId, chat, found);
  return found;
}

/**
 * The turn continues in another chat: removes its drafts here, including those of an earlier
 * process.
 */
async function takeAway(
  deps: LiveRepliesDeps,
  { turnId, chat }: LiveUpdate,
  turn: LiveTurn | undefined,
  signal: AbortSignal,
) {
  const { channel, bus, log } = deps;
  try {
    const settled = await turn?.finish();
    const draft = settled ?? (await standing(await bus.draft(turnId), NO_TEXT, signal, deps));
    if (draft === undefined) return;
    await channel.editing?.remove(chat, draft, signal);
    await bus.forgetDraft(turnId);
  } catch (error) {
    log.info('preview not removed', { turnId, error });
  }
}

/** Drafts of an earlier process whose turn sends no more answers. */
async function removeOrphans(deps: LiveRepliesDeps, signal: AbortSignal) {
  const { channel, bus, log } = deps;
  if (channel.editing === undefined) return;
  for (const draft of await bus.orphanDrafts(accountNameOf(channel))) {
    const { turnId, chat } = draft;
    try {
      const found = await standing(draft, NO_TEXT, signal, deps);
      if (found !== undefined) await channel.editing.remove(chat, found, signal);
    } catch (error) {
      // Left in the chat: a remaining draft is no reason to stop the channel.
      log.info('preview not removed', { turnId, error });
    }
    await bus.forgetDraft(turnId);
  }
}

/** One turn as shown in one chat. */
class LiveTurn {
  readonly #deps: LiveRepliesDeps;
  readonly #signal: AbortSignal;
  readonly #started: LiveUpdate;
  #wanted = '';
  #draft: DraftState;
  #draftId: NativeId | undefined;
  #step: Promise<void> | undefined;
  #editTimer: Disposable | undefined;
  #typingTimer: Disposable | undefined;
  #acknowledged: Promise<void> | undefined;
  #over = false;

  constructor(deps: LiveRepliesDeps, update: LiveUpdate, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
    this.#started = update;
    this.#draft = {
      startedAt: deps.clock.monotonic(),
      lastEditAt: undefined,
      shown: '',
      isPlaced: false,
    };
    this.#typeAfter(TYPING_DELAY_MS);
    const { reactions } = deps.channel;
    if (reactions?.acknowledgement !== undefined) this.#react(reactions.acknowledgement);
  }

  show(update: LiveUpdate): void {
    const running = update.tools.filter((tool) => tool.status === 'running').at(-1);
    const activity = running === undefined ? update.notice : `${running.name} ${running.detail}`;
    this.#wanted = draftText(update.markdown, activity?.trim());
    this.#advance();
  }

  async finish(): Promise<NativeId | undefined> {
    if (this.#acknowledged !== undefined && !this.#over) this.#react(undefined);
    this.#over = true;
    this.#editTimer?.[Symbol.dispose]();
    this.#typingTimer?.[Symbol.dispose]();
    await this.#step;
    return this.#draftId;
  }

  /** The reaction on the question while the agent works. In order, and nothing waits for it. */
  #react(emoji: string | undefined): void {
    const { reactions } = this.#deps.channel;
    const { replyTo } = this.#started;
    if (reactions === undefined || replyTo === undefined) return;
    const before = this.#acknowledged ?? Promise.resolve();
    this.#acknowledged = before
      .then(() => this.#inTime((signal) => reactions.react(replyTo, emoji, signal)))
      .catch((error) => this.#failed(error));
  }

  #typeAfter(ms: number): void {
    const { typing } = this.#deps.channel;
    if (typing === undefined) return;
    this.#typingTimer = this.#deps.clock.timer(ms, () => {
      if (this.#over || this.#signal.aborted) return;
      const { chat } = this.#started;
      this.#inTime((signal) => typing.show(chat, signal)).catch((error) => this.#failed(error));
      this.#typeAfter(typing.intervalMs);
    });
  }

  #advance(): void {
    const { editing } = this.#deps.channel;
    if (editing === undefined || this.#over || this.#step !== undefined) return;
    // No step is ever due earlier than the one that is waited for.
    if (this.#editTimer !== undefined) return;
    const now = this.#deps.clock.monotonic();
    const step = nextDraftStep(this.#draft, this.#wanted, editing.minIntervalMs, now);
    if (step.kind === 'idle') return;
    if (step.kind === 'wait') {
      this.#editTimer = this.#deps.clock.timer(step.ms, () => {
        this.#editTimer = undefined;
        this.#advance();
      });
      return;
    }
    const text = this.#wanted;
    this.#step = this.#inTime((signal) => this.#write(editing, text, signal))
      .catch((error) => this.#failed(error))
      .finally(() => {
        this.#step = undefined;
        this.#advance();
      });
  }

  async #write(editing: Editing, text: string, signal: AbortSignal): Promise<void> {
    const { chat, replyTo, turnId } = this.#started;
    // A turn that is retried after a crash continues in its earlier draft.
    this.#draftId ??= (await this.#deps.bus.draft(turnId))?.nativeId;
    if (this.#draftId === undefined && (await this.#deps.bus.isDelivering(chat))) {
      // After the previous answer, whose last parts are still being sent.
      this.#draft = { ...this.#draft, startedAt: this.#deps.clock.monotonic() };
      return;
    }
    // Counted from the attempt, so that a refused edit is not retried at once.
    this.#draft = { ...this.#draft, lastEditAt: this.#deps.clock.monotonic(), shown: text };
    if (this.#draftId !== undefined) return this.#edit(editing, this.#draftId, text, signal);
    const options = { signal, name: turnId, ...(replyTo === undefined ? {} : { replyTo }) };
    this.#draft = { ...this.#draft, isPlaced: true };
    if (editing.isFoundAgain) await this.#deps.bus.placingDraft(turnId, chat, replyTo);
    this.#draftId = await editing.place(chat, text, options);
    await this.#deps.bus.recordDraft(turnId, chat, this.#draftId);
  }

  async #edit(editing: Editing, draft: NativeId, text: string, signal: AbortSignal): Promise<void> {
    const { chat, turnId } = this.#started;
    await editing.edit(chat, draft, text, signal);
    const whole = (await editing.editEnd?.(chat, draft, text, signal)) ?? draft;
    if (whole === draft) return;
    this.#draftId = whole;
    await this.#deps.bus.recordDraft(turnId, chat, whole);
  }

  #inTime<T>(step: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline(this.#deps.clock, STEP_DEADLINE_MS, tooSlow, this.#signal, step);
  }

  #failed(error: unknown): void {
    if (this.#signal.aborted) return;
    this.#deps.log.info('live preview failed', { turnId: this.#started.turnId, error });
  }
}
