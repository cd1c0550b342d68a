// The poll loop. An update is confirmed to Telegram only by the offset of a later poll, and that
// offset advances only after the messages are durable; a poll that stalls is replaced by a new one.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { BACKOFF, BusFullError, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { fieldsOf, integerOf, parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { backoffMs } from '../../lib/time/clock.ts';
import type { ChannelHost, ShowOutcome } from '../channel.ts';
import { type Bot, type GroupMoves, joinedOf, moveOf, TELEGRAM } from './chats.ts';
import { openPresses } from './choices.ts';
import type { BotApi } from './client.ts';
import { BotCallError, type BotCallFailure, describeFailure } from './client.ts';
import {
  ALBUM_WAIT_MS,
  joinAlbums,
  type OpenAlbums,
  toEntry,
  updateIdOf,
  wholeUpdates,
} from './inbound.ts';
import type { TelegramConfig } from './settings.ts';

export type RunDeps = {
  readonly api: BotApi;
  readonly bot: Bot;
  readonly host: ChannelHost;
  readonly random: () => number;
  readonly moves: GroupMoves;
  readonly settings: TelegramConfig;
};

type PollDeps = RunDeps & {
  /** The bot's user name, once known. */
  username(): string | undefined;
  /** Called once, after the first completed poll; resolves when the name was looked up. */
  onReady(): Promise<void>;
};

const POLL_TIMEOUT_SECS = 25;
const BATCH = 100;
/** A proxy before Telegram may answer long polls at once; the loop must not spin. */
const HASTY_POLL_MS = 500;
const HASTY_POLLS = 5;
const HASTY_PAUSE_MS = 1000;
/** While the queue is full. */
const FULL_MIN_MS = 500;
const FULL_MAX_MS = 15_000;
/** Updates without any id cannot be confirmed, only requested again. */
const UNREADABLE_PAUSE_MS = 5000;

export function runPolling(deps: PollDeps, signal: AbortSignal): Promise<void> {
  return new PollLoop(deps, signal).run();
}

type Polled =
  | {
      readonly kind: 'updates';
      readonly updates: readonly unknown[];
      /** The server was asked to wait and did not. */
      readonly isHasty: boolean;
    }
  | { readonly kind: 'failed'; readonly failure: BotCallFailure };

class PollLoop {
  readonly #deps: PollDeps;
  readonly #signal: AbortSignal;
  #place: Place | undefined;
  /** Consecutive failed polls, except conflicts. */
  #failures = 0;
  #conflicts = 0;
  #hastyPolls = 0;
  #isReady = false;
  /** Albums of the last poll that may be incomplete. */
  #albums: OpenAlbums | undefined;

  constructor(deps: PollDeps, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const { host, bot } = this.#deps;
    this.#place = readPlace(await host.cursor(), bot.botId);
    while (!this.#signal.aborted) {
      const polled = await this.#poll();
      if (this.#signal.aborted) return;
      if (polled.kind === 'failed') {
        await this.#sitOut(polled.failure);
        continue;
      }
      this.#completed();
      if (polled.updates.length > 0) await this.#takeWhole(polled.updates);
      else await this.#restAfter(polled.isHasty);
    }
  }

  async #poll(): Promise<Polled> {
    const { api, host } = this.#deps;
    const offset = offsetAfter(this.#place, host.clock.now());
    // The first poll, and the first after a failure, is short: its answer shows that the connection
    // works. Not after a conflict: a short poll always succeeds and would only hide the other
    // program.
    const isProbe = this.#conflicts === 0 && (!this.#isReady || this.#failures > 0);
    const payload = {
      timeout: isProbe ? 0 : POLL_TIMEOUT_SECS,
      limit: BATCH,
      allowed_updates: UPDATE_KINDS,
      ...(offset === undefined ? {} : { offset }),
    };
    const startedAt = host.clock.monotonic();
    try {
      const updates: unknown = await api.getUpdates(payload, this.#signal);
      const isHasty = !isProbe && host.clock.monotonic() - startedAt < HASTY_POLL_MS;
      if (Array.isArray(updates)) return { kind: 'updates', updates, isHasty };
      return { kind: 'failed', failure: { kind: 'unanswered', reason: t`no list of updates` } };
    } catch (error) {
      if (error instanceof BotCallError) return { kind: 'failed', failure: error.failure };
      throw error;
    }
  }

  async #restAfter(isHasty: boolean): Promise<void> {
    this.#hastyPolls = isHasty ? this.#hastyPolls + 1 : 0;
    if (this.#hastyPolls >= HASTY_POLLS) await this.#sleep(HASTY_PAUSE_MS);
  }

  #completed() {
    this.#failures = 0;
    this.#conflicts = 0;
    this.#reportRunning();
    if (this.#isReady) return;
    this.#isReady = true;
    void this.#reportName();
  }

  #reportRunning() {
    const { host, username } = this.#deps;
    const name = username();
    const account = name && `@${name}`;
    host.report({ kind: 'running', activeAt: host.clock.now(), account });
  }

  /** Before the long poll under way ends. A failure is the run's to report. */
  async #reportName(): Promise<void> {
    const { username, onReady } = this.#deps;
    const before = username();
    await onReady().catch(() => undefined);
    const isRunning = this.#failures + this.#conflicts === 0 && !this.#signal.aborted;
    if (isRunning && username() !== before) this.#reportRunning();
  }

  async #sitOut(failure: BotCallFailure): Promise<void> {
    const code = failure.kind === 'refused' ? failure.code : 0;
    if (code === 401 || code === 404) this.#stop(code);
    if (failure.kind === 'refused' && code === 409) return this.#sitOutConflict(failure);
    this.#failures += 1;
    const slowDownMs = failure.kind === 'refused' ? failure.retryAfterMs : undefined;
    const reason =
      slowDownMs === undefined ? describeFailure(failure) : t`Telegram asked for slower requests`;
    const limits = { minMs: NETWORK_MIN_MS, maxMs: NETWORK_MAX_MS, random: this.#deps.random };
    const waitMs = slowDownMs ?? backoffMs(this.#failures, limits);
    this.#reportTrouble(reason, waitMs, this.#failures);
    await this.#sleep(waitMs);
  }

  #stop(code: number): never {
    const { host } = this.#deps;
    const reason = t`Telegram refused the bot token (${code})`;
    const remedy =
      t`Get the current token from @BotFather (/mybots, then API Token) and run ` +
      t`\`nanobot channels login telegram\`; if channels.telegram.apiRoot is set, check it, too.`;
    host.report({ kind: 'stopped', reason, remedy });
    host.alert(`${reason}. ${remedy}`);
    throw new ChannelError('telegram_token_refused', reason, { remedy: NEVER });
  }

  /** Another program polls with this token: it may stop at any time, so the loop retries forever. */
  async #sitOutConflict({ description }: { readonly description: string }): Promise<void> {
    this.#conflicts += 1;
    const waitMs = Math.min(CONFLICT_MAX_MS, CONFLICT_MIN_MS * 2 ** (this.#conflicts - 1));
    const isWebhook = /webhook/i.test(description);
    const reason = isWebhook
      ? t`a webhook of this bot receives its messages; removing the webhook`
      : t`another program receives the messages of this bot with the same token. Stop it, or use a ` +
        t`different bot for this gateway`;
    this.#reportTrouble(reason, waitMs, this.#conflicts);
    if (!isWebhook && this.#conflicts === CONFLICTS_BEFORE_ALERT) {
      this.#deps.host.alert(t`Telegram: ${reason}.`);
    }
    if (this.#conflicts === 1) await this.#clearWebhook();
    await this.#sleep(waitMs);
  }

  #reportTrouble(reason: string, waitMs: number, failures: number): void {
    const { host } = this.#deps;
    host.log.warn('telegram poll failed', { reason, waitMs, failures });
    host.report({ kind: 'degraded', reason, retryAt: host.clock.now() + waitMs });
  }

  async #clearWebhook(): Promise<void> {
    try {
      await this.#deps.api.deleteWebhook({}, this.#signal);
    } catch (error) {
      if (!(error instanceof BotCallError)) throw error;
      this.#deps.host.log.warn('telegram webhook not removed', { error });
    }
  }

  /** An album that may be incomplete stays unconfirmed a moment longer. */
  async #takeWhole(updates: readonly unknown[]): Promise<void> {
    const { whole, open } = wholeUpdates(updates, this.#albums);
    this.#albums = open;
    if (whole.length > 0) await this.#take(whole);
    if (open !== undefined) await this.#sleep(ALBUM_WAIT_MS);
  }

  async #take(updates: readonly unknown[]): Promise<void> {
    const { host, bot } = this.#deps;
    const receivedAt = host.clock.now();
    for (const update of updates) await this.#noteGroup(update);
    const context = {
      ...bot,
      receivedAt,
      username: this.#deps.username(),
      senderChats: this.#deps.settings.groupSenderChats,
      namesOf: this.#deps.moves.names,
    };
    const parsed = updates.map((update) => toEntry(update, context));
    const entries = joinAlbums(updates, parsed);
    const ids = updates.map(updateIdOf).filter((id) => id !== undefined);
    if (ids.length === 0) {
      host.log.warn('telegram sent updates without ids', { count: updates.length });
      return this.#sleep(UNREADABLE_PAUSE_MS);
    }
    const place = { botId: bot.botId, lastUpdateId: Math.max(...ids), at: receivedAt };
    const { clock, log } = host;
    const deps = { api: this.#deps.api, clock, log, signal: this.#signal };
    const presses = openPresses(updates, (index) => parsed[index]?.message.id, deps);
    // If storing fails, they come again; the buttons are released anyway.
    await this.#store(entries, place, presses.show).finally(presses.release);
    this.#place = place;
  }

  async #noteGroup(update: unknown): Promise<void> {
    const { host, moves, settings } = this.#deps;
    const move = moveOf(update);
    if (move !== undefined) await moves.note(move);
    const joined = joinedOf(update);
    if (joined === undefined) return;
    const isListed = moves.names(joined.chat).some((id) => settings.groups.includes(String(id)));
    if (!isListed) host.tell(joined.text);
  }

  /** Telegram keeps unconfirmed updates, so a full queue only means waiting. */
  async #store(
    entries: readonly InboundEntry[],
    place: Place,
    pressed: ShowOutcome,
  ): Promise<void> {
    const { host, bot, random } = this.#deps;
    const cursor = { channel: TELEGRAM, account: bot.account, value: writePlace(place) };
    for (let tries = 1; !this.#signal.aborted; tries += 1) {
      try {
        return await host.receive(entries, { cursor, pressed });
      } catch (error) {
        if (!(error instanceof BusFullError)) throw error;
      }
      const waitMs = backoffMs(tries, { minMs: FULL_MIN_MS, maxMs: FULL_MAX_MS, random });
      const reason = t`the queue is full; Telegram keeps new messages until there is room`;
      host.report({ kind: 'degraded', reason, retryAt: host.clock.now() + waitMs });
      await this.#sleep(waitMs);
    }
    throw new ChannelError('telegram_stopped', t`stopped while the queue was full`, {
      remedy: BACKOFF,
    });
  }

  async #sleep(ms: number): Promise<void> {
    await this.#deps.host.clock.sleep(ms, this.#signal).catch(() => undefined);
  }
}

/**
 * Groups come as `message` too; `my_chat_member` reports that the bot was added to one. Reactions
 * come only if requested (Bot API, getUpdates), in groups only to a bot that is an admin.
 */
const UPDATE_KINDS = [
  'message',
  'edited_message',
  'callback_query',
  'message_reaction',
  'my_chat_member',
] as const;

const CONFLICT_MIN_MS = 5000;
const CONFLICT_MAX_MS = 60_000;
const NETWORK_MIN_MS = 1000;
const NETWORK_MAX_MS = 30_000;
/** One conflict is usual when a gateway restarts; this many in a row mean another program. */
const CONFLICTS_BEFORE_ALERT = 3;

// The position in Telegram's stream of updates, and when it may be used: after a week without
// updates the next id is random (Bot API, "Update"), and an old offset would discard new updates.

export type Place = {
  readonly botId: number;
  readonly lastUpdateId: number;
  /** Epoch milliseconds at which that update was stored. */
  readonly at: number;
};

/** A day less than Telegram's week. */
const STALE_MS = 6 * 24 * 3600 * 1000;

function writePlace(place: Place): string {
  return JSON.stringify({ bot: place.botId, update: place.lastUpdateId, at: place.at });
}

/** The stored position, if it is this bot's. */
function readPlace(value: string | undefined, botId: number): Place | undefined {
  const fields = value === undefined ? undefined : fieldsOf(parseJson(value));
  const lastUpdateId = integerOf(fields?.['update']);
  const at = integerOf(fields?.['at']);
  if (lastUpdateId === undefined || at === undefined || fields?.['bot'] !== botId) return undefined;
  return { botId, lastUpdateId, at };
}

/** The offset of the next poll; undefined requests everything not yet confirmed. */
function offsetAfter(place: Place | undefined, now: number): number | undefined {
  return place === undefined || now - place.at > STALE_MS ? undefined : place.lastUpdateId + 1;
}
