// The turn stage of voice: speaks the answers of a turn besides their text. The audio is made before the
// turn ends, and both go on the bus in the transaction that ends it, so neither is lost or doubled. When
// speech fails, the text goes alone.

import { type PaidCalls, SpendingRefusedError } from '../../agent/spending.ts';
import type { Channel } from '../../channels/channel.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import { type AccountName, accountName } from '../../kernel/message/account.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { type ChannelName, messageId } from '../../kernel/message/ids.ts';
import {
  type OutboundDraft,
  type OutboundMessage,
  sessionKeyOf,
} from '../../kernel/message/message.ts';
import { isSpoken } from '../../kernel/turns/rules/live-reply.ts';
import type { HandledTurn, TurnStage } from '../../kernel/turns/stages.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { charged } from '../spending/paid-call.ts';
import type { Payer } from '../spending/rules/budget-limits.ts';
import { speakable } from './rules/speakable.ts';
import { speakingCost } from './rules/voice-engine.ts';
import { type Speaker, VoiceError } from './voice.ts';

export type VoicingDeps = {
  readonly media: Pick<MediaStore, 'put' | 'remove'>;
  readonly clock: Clock;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
  /** Whether a sound of its own belongs into such a chat. */
  isChat(name: ChannelName): boolean;
  reply(): 'mirror' | 'always' | 'never';
  readonly spending: PaidCalls;
  send(message: OutboundMessage): Promise<unknown>;
  timeZone(): string;
  /** The engine knows no such address or model. */
  misplaced(): void;
  /** Undefined: none is set. */
  speaker(): Promise<Speaker | undefined>;
};

export function voiceStage(deps: VoicingDeps): TurnStage {
  return {
    name: 'voice',
    async run(turn, next) {
      const handled = await next(turn);
      if (!isToBeSpoken(handled, deps)) return handled;
      const [{ message: payer }] = turn.messages;
      return spoken(handled, payer, turn.signal, deps);
    },
  };
}

/** Failures and replies of commands are read, not heard. */
function isToBeSpoken({ ending, newest }: HandledTurn, deps: VoicingDeps): boolean {
  if (ending !== 'answered') return false;
  const reply = deps.reply();
  return reply === 'always' || (reply === 'mirror' && newest !== undefined && isSpoken(newest));
}

async function spoken(
  handled: HandledTurn,
  payer: Payer,
  signal: AbortSignal,
  deps: VoicingDeps,
): Promise<HandledTurn> {
  const { outbound } = handled;
  const [first] = outbound;
  if (first === undefined || !carriesSound(first, deps)) return handled;
  const text = speakable(outbound.map(({ markdown }) => markdown).join('\n\n'));
  if (text === '') return handled;
  try {
    const sound = await soundOf(text, first, payer, signal, deps);
    if (sound === undefined) return handled;
    const { chat, replyTo } = first;
    const said = { chat, markdown: '', attachments: [sound] };
    const draft = replyTo === undefined ? said : { ...said, replyTo };
    return { ...handled, outbound: [...outbound, draft] };
  } catch (error) {
    if (error instanceof SpendingRefusedError) return silent(handled, first, error, deps);
    if (error instanceof VoiceError && error.code === 'voice_not_found') deps.misplaced();
    deps.log.warn('answer not spoken', { channel: first.chat.channel, error });
    return handled;
  }
}

/** The person hears once a day why. */
async function silent(
  handled: HandledTurn,
  { chat }: OutboundDraft,
  { text }: SpendingRefusedError,
  { log, send, clock, timeZone }: VoicingDeps,
): Promise<HandledTurn> {
  log.info('answer not spoken: refused', { channel: chat.channel });
  const day = createDayText()(clock.now(), timeZone());
  const id = messageId(`unspoken/${sessionKeyOf(chat)}/${day}`);
  await send({ id, chat, markdown: `I leave the voice away: ${text}` });
  return handled;
}

const carriesSound = ({ chat }: OutboundDraft, { channel, isChat }: VoicingDeps) =>
  isChat(chat.channel) && channel(accountName(chat))?.attachments !== undefined;

async function soundOf(
  text: string,
  { chat }: OutboundDraft,
  payer: Payer,
  signal: AbortSignal,
  { media, clock, log, speaker, channel, spending }: VoicingDeps,
): Promise<OutboundAttachment | undefined> {
  const voice = await speaker();
  if (voice === undefined) return undefined;
  const startedAt = clock.monotonic();
  const micros = speakingCost(voice.price, text);
  const { isElsewhere } = voice;
  const call = { payer, micros, isElsewhere, costOf: () => micros };
  const content = await charged(call, () => voice.speak(text, signal), { spending, signal });
  const tookMs = Math.round(clock.monotonic() - startedAt);
  const maxBytes = channel(accountName(chat))?.attachments?.maxUploadBytes ?? 0;
  const { id, mimeType, sizeBytes } = await media.put(content, { maxBytes, signal });
  const shape = shapeOf(mimeType);
  if (shape === undefined) {
    await media.remove(id);
    throw new VoiceError('voice_malformed', NO_SOUND, { detail: mimeType });
  }
  log.info('answer spoken', { channel: chat.channel, chars: text.length, sizeBytes, tookMs });
  return { ...shape, media: id, sizeBytes };
}

/** Sounds that no phone plays as a message. */
const OTHER_SOUNDS = [
  [/^audio\/(?:x-)?flac$/, 'flac'],
  [/^(?:audio|video)\/webm$/, 'webm'],
  [/^audio\/(?:x-)?aac$/, 'aac'],
  [/^audio\/amr$/, 'amr'],
  [/^audio\/(?:x-)?aiff$/, 'aiff'],
] as const;

const NO_SOUND = 'the engine gave something that is no sound';

type Shape = Pick<OutboundAttachment, 'kind' | 'name' | 'mimeType'>;

/** Only OGG is a voice message everywhere; phones play MP3 and M4A as music. Undefined: no sound. */
function shapeOf(mimeType: string): Shape | undefined {
  if (/^(?:audio|application)\/(?:ogg|opus)$/.test(mimeType)) {
    return { kind: 'voice', name: 'answer.ogg', mimeType: 'audio/ogg' };
  }
  if (mimeType === 'audio/mpeg') return { kind: 'audio', name: 'answer.mp3', mimeType };
  const ending = OTHER_SOUNDS.find(([pattern]) => pattern.test(mimeType))?.[1];
  if (ending !== undefined) return { kind: 'document', name: `answer.${ending}`, mimeType };
  if (/^(?:audio|video)\/(?:mp4|x-m4a)$/.test(mimeType)) {
    return { kind: 'audio', name: 'answer.m4a', mimeType: 'audio/mp4' };
  }
  return /^audio\//.test(mimeType) ? { kind: 'document', name: 'answer.wav', mimeType } : undefined;
}
