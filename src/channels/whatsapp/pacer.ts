// Applies the pacing limits (rules/pacing.ts): short waits here, long ones in the bus, which holds
// the message durably. First contacts and texts, which must survive a restart, are stored with each
// send.

import { createHash } from 'node:crypto';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { after, BACKOFF, notSent } from '../../kernel/message/errors.ts';
import type { ChatId } from '../../kernel/message/ids.ts';
import { readOnce } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import {
  CONTACT_WINDOW_MS,
  type PacedSend,
  type PaceState,
  type PacingLimits,
  paceSent,
  paceWait,
  type Sighting,
  TEXT_WINDOW_MS,
  textsAfter,
  UNPACED,
  upTo,
} from './rules/pacing.ts';

export type Pacer = ReturnType<typeof createPacer>;

type PacerDeps = Pick<ChannelHost, 'state' | 'clock'> & {
  readonly limits: PacingLimits;
  /** 0 to 1. */
  readonly random: () => number;
};

/** The bus handles longer waits. */
const MAX_WAIT_MS = 20_000;
/** The bus asks again at least this often, so that no message expires because of an estimate. */
const MAX_HOLD_MS = 3_600_000;
const TEXTS = 'pace/text/';
const CONTACTS = 'pace/contact/';
const DAY_MS = 86_400_000;
const TEXT_NAME_BYTES = 12;

/** An edit or a reaction in a chat that was written to before. */
export const answerTo = (chat: ChatId): PacedSend => ({
  chat,
  isFirstContact: false,
  isAnswer: true,
});

/** The name of a text in the rows. */
export const textName = (markdown: string) =>
  createHash('sha256').update(markdown.trim()).digest().toString('hex', 0, TEXT_NAME_BYTES);

export function createPacer({ state, clock, limits, random }: PacerDeps) {
  const texts = new Map<string, readonly Sighting[]>();
  let pace: PaceState = { ...UNPACED, texts };
  let expiredAt = Number.NEGATIVE_INFINITY;
  let newest = Number.POSITIVE_INFINITY;

  /** After a clock was set back, what lies in the future would be kept until then. */
  function timeNow(): number {
    const now = clock.now();
    if (now < newest) for (const [text, sightings] of texts) texts.set(text, upTo(sightings, now));
    newest = now;
    return now;
  }

  const loaded = readOnce(async () => {
    const stored = Map.groupBy(await sightingsOf(TEXTS, 1), ({ text }) => text);
    for (const [text, sightings] of stored) texts.set(text, sightings);
    pace = { ...pace, firstContacts: await sightingsOf(CONTACTS, 0) };
  });

  /** Rows of `<prefix>[<text>/]<chat>`, oldest first. */
  async function sightingsOf(prefix: string, texts: 0 | 1) {
    const rows = (await state.list(prefix)).map(({ key, value }) => {
      const names = key.slice(prefix.length).split('/');
      const text = names.slice(0, texts).join();
      return { text, chat: names.slice(texts).join('/'), at: Number(value) };
    });
    return rows.toSorted((a, b) => a.at - b.at);
  }

  async function ready(): Promise<void> {
    if (clock.monotonic() - expiredAt >= DAY_MS) {
      expiredAt = clock.monotonic();
      await state.expire(TEXTS, clock.now() - TEXT_WINDOW_MS);
      await state.expire(CONTACTS, clock.now() - CONTACT_WINDOW_MS);
    }
    await loaded();
  }

  function take(send: PacedSend): readonly KeyValueChange[] {
    const at = timeNow();
    const { text = '', chat } = send;
    const { expired, sightings } = textsAfter(pace, send, at);
    pace = paceSent(pace, send, limits, at, random());
    for (const one of expired) texts.delete(one);
    if (sightings !== undefined) {
      // The last to expire comes last.
      texts.delete(text);
      texts.set(text, sightings);
    }
    const isFirst = pace.firstContacts.some((one) => one.chat === chat && one.at === at);
    const value = String(at);
    return [
      ...(sightings === undefined ? [] : [{ key: `${TEXTS}${text}/${chat}`, value }]),
      ...(isFirst ? [{ key: CONTACTS + chat, value }] : []),
    ];
  }

  return {
    /**
     * Waits for this message's slot and takes it; the returned rows must be stored before it is
     * sent. `onWait` is called once if there is a wait.
     * @throws DeliveryError not_sent if the wait is long or the signal aborts
     */
    async admit(
      send: PacedSend,
      signal: AbortSignal,
      onWait?: () => Promise<void>,
    ): Promise<readonly KeyValueChange[]> {
      await ready();
      const giveUpAt = clock.monotonic() + MAX_WAIT_MS;
      let hasWaited = false;
      for (;;) {
        if (signal.aborted)
          throw notSent(t`stopped while waiting for its turn`, BACKOFF, 'whatsapp_stopped');
        const { waitMs, limit } = paceWait(pace, send, limits, timeNow());
        if (waitMs === 0) return take(send);
        if (clock.monotonic() + waitMs > giveUpAt) throw held(waitMs, limit);
        if (!hasWaited) {
          hasWaited = true;
          await onWait?.();
          continue;
        }
        await clock.sleep(waitMs, signal).catch(() => undefined);
      }
    },
    /** Takes a slot if one is free now: for messages that are skipped otherwise. */
    async takeFree(send: PacedSend): Promise<boolean> {
      await ready();
      if (paceWait(pace, send, limits, timeNow()).waitMs > 0) return false;
      take(send);
      return true;
    },
  };
}

function held(waitMs: number, limit: string) {
  const remedy = after(Math.min(waitMs, MAX_HOLD_MS));
  return notSent(t`delayed by the pace limit (${limit})`, remedy, 'whatsapp_pace');
}

// The agent is silent for a while in chats that the owner of the account answers by hand. The rows
// survive a restart; a chat has one once its owner wrote there.

export type OwnerPause = ReturnType<typeof createOwnerPause>;

type OwnerPauseDeps = Pick<ChannelHost, 'state' | 'clock'> & {
  /** 0: the agent is never silent. */
  readonly pauseMs: number;
};

const PREFIX = 'pause/';

export function createOwnerPause({ state, clock, pauseMs }: OwnerPauseDeps) {
  async function stored(chat: ChatId): Promise<number> {
    const until = Number((await state.get(`${PREFIX}${chat}`)) ?? 0);
    // Otherwise a damaged row would keep the owner's next message from being recorded.
    return Number.isFinite(until) ? until : 0;
  }

  return {
    /** The owner wrote in this chat; each message prolongs the pause. Epoch milliseconds. */
    async note(chat: ChatId, writtenAt: number): Promise<void> {
      if (pauseMs === 0) return;
      const until = Math.min(writtenAt, clock.now()) + pauseMs;
      if (until > (await stored(chat))) await state.set(`${PREFIX}${chat}`, String(until));
    },
    /**
     * Until when the owner answers by hand in a chat with these names, epoch milliseconds; 0: no
     * pause. Includes messages from before the owner wrote: they have read them.
     */
    async until(names: readonly ChatId[]): Promise<number> {
      if (pauseMs === 0) return 0;
      return Math.max(...(await Promise.all(names.map(stored))), 0);
    },
    /** Deletes what no rule uses any more: pauses that ended longer ago than this. */
    async expire(keepMs: number): Promise<void> {
      await state.expire(PREFIX, clock.now() - pauseMs - keepMs);
    },
  };
}
