// Transcribes the audio of messages, each once per engine, and tells people when their audio could
// not be transcribed.

import { type PaidCalls, SpendingRefusedError } from '../../agent/agent.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { Listening } from '../../kernel/intake/attachments.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import {
  type Attachment,
  isUnheard,
  missedReason,
  type Spoken,
} from '../../kernel/message/attachment.ts';
import { type MessageId, messageId } from '../../kernel/message/ids.ts';
import type { Payer } from '../../kernel/message/message.ts';
import {
  type InboundMessage,
  type OutboundMessage,
  sessionKeyOf,
} from '../../kernel/message/message.ts';
import type { Permits } from '../../lib/async.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { believedMs, listeningCost, longestMs } from './rules/voice-engine.ts';
import { charged, type SpokenWords, type Transcriber, VoiceError } from './voice.ts';

export type ListeningDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly media: Pick<MediaStore, 'read'>;
  /** Stored transcripts by engine and content. */
  readonly known: KeyValueStore;
  readonly permits: Permits;
  limits(): { readonly maxBytes: number; readonly maxMs: number };
  readonly spending: PaidCalls;
  /** Undefined: none is configured. */
  transcriber(): Promise<Transcriber | undefined>;
  /** What the author of the message can do about a missing engine. */
  remedy(message: InboundMessage): Promise<string>;
  timeZone(): string;
  send(message: OutboundMessage): Promise<unknown>;
  tellOwner(text: string): void;
};

const MISPLACED =
  t`The transcription service does not know this address or model (404). Check apiBase ` +
  t`and model of voice.transcription; with an address of your own the model is whisper-1 unless you set it.`;
const isMisplaced = (error: unknown) =>
  error instanceof VoiceError && error.code === 'voice_not_found';
const NO_BUDGET = t`today’s budget is used up`;
const KEPT_HERE = t`transcription uses a service, and this conversation stays on your own machines (/local only)`;
const NO_ENGINE = t`no transcription engine is set`;
const KEPT_MS = 30 * 86_400_000;

export function createListening(deps: ListeningDeps): Listening {
  const dayText = createDayText();
  let isOwnerTold = false;
  const tellOnce = () => {
    if (!isOwnerTold) deps.tellOwner(MISPLACED);
    isOwnerTold = true;
  };
  /** The message bus accepts an id once. */
  const dailyId = ({ chat }: InboundMessage): MessageId => {
    const day = dayText(deps.clock.now(), deps.timeZone());
    return messageId(`unheard/${sessionKeyOf(chat)}/${day}`);
  };

  return {
    async listened(attachment: Attachment, payer: Payer, signal: AbortSignal): Promise<Attachment> {
      if (!isUnheard(attachment)) return attachment;
      const spoken = await listen(attachment, payer, deps, signal).catch(
        (error: unknown): Spoken => {
          signal.throwIfAborted();
          if (error instanceof SpendingRefusedError) {
            return { kind: 'unheard', reason: error.because === undefined ? NO_BUDGET : KEPT_HERE };
          }
          if (isMisplaced(error)) tellOnce();
          deps.log.warn('voice message not transcribed', { kind: attachment.kind, error });
          const reason = error instanceof VoiceError ? error.reason : t`something went wrong`;
          return { kind: 'unheard', reason };
        },
      );
      return { ...attachment, spoken };
    },

    async told(message: InboundMessage, attachments: readonly Attachment[]): Promise<void> {
      const reason = attachments.map(missedReason).find((found) => found !== undefined);
      if (reason === undefined) return;
      const isUnset = reason === NO_ENGINE;
      const remedy = isUnset ? await deps.remedy(message) : t`Please write it, or try again later.`;
      const id = isUnset ? dailyId(message) : messageId(`${message.id}/unheard`);
      const markdown = isUnset
        ? t`I cannot transcribe voice messages: ${reason}. ${remedy}`
        : t`I could not transcribe your voice message: ${reason}. ${remedy}`;
      await deps.send({ id, chat: message.chat, markdown, replyTo: message.id });
    },
  };
}

async function listen(
  { content, mimeType = '', sizeBytes = 0, durationMs = 0 }: Attachment,
  payer: Payer,
  deps: ListeningDeps,
  signal: AbortSignal,
): Promise<Spoken> {
  const { known, clock, log } = deps;
  const transcriber = await deps.transcriber();
  if (transcriber === undefined) return { kind: 'unheard', reason: NO_ENGINE };
  const { maxBytes, maxMs } = deps.limits();
  if (sizeBytes > maxBytes) return { kind: 'unheard', reason: t`it is too large` };
  if (durationMs > maxMs) return { kind: 'unheard', reason: t`it is too long` };
  if (content.kind !== 'stored') return { kind: 'unheard', reason: t`it is not there` };
  const key = `${content.media} ${transcriber.id}`;
  const before = await known.get(key);
  if (before !== undefined) return spokenOf(JSON.parse(before));
  using _permit = await deps.permits.acquire(signal);
  const sound = await deps.media.read(content.media);
  if (sound === undefined) return { kind: 'unheard', reason: t`it is no longer stored` };
  const startedAt = clock.monotonic();
  const { price, isElsewhere } = transcriber;
  const worstMs = longestMs(sound.length, durationMs, maxMs);
  const costOf = ({ durationMs: tookMs }: SpokenWords) =>
    listeningCost(price, believedMs(tookMs, durationMs, worstMs));
  const words = await charged(
    { payer, micros: listeningCost(price, worstMs), isElsewhere, costOf },
    () => transcriber.transcribe({ content: sound, mimeType }, signal),
    { spending: deps.spending, signal },
  );
  const tookMs = Math.round(clock.monotonic() - startedAt);
  const { language } = words;
  log.info('voice message transcribed', { bytes: sound.length, durationMs, tookMs, language });
  await known.set(key, JSON.stringify(words));
  await known.expire('', clock.now() - KEPT_MS);
  return spokenOf(words);
}

const spokenOf = ({ text, language }: SpokenWords): Spoken =>
  text === ''
    ? { kind: 'unheard', reason: t`it contains no words` }
    : { kind: 'words', text, ...defined({ language }) };
