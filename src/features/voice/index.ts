// Installs voice: transcription of received audio, and spoken answers.

import { type PaidCalls, SpendingRefusedError } from '../../agent/agent.ts';
import { withoutCode } from '../../kernel/access/admission.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Kernel } from '../../kernel/feature.ts';
import {
  ATTACHMENTS,
  InboundAttachments,
  type Listening,
} from '../../kernel/intake/attachments.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { accountName, messageId } from '../../kernel/message/ids.ts';
import type { Payer } from '../../kernel/message/message.ts';
import {
  type InboundMessage,
  type OutboundDraft,
  sessionKeyOf,
} from '../../kernel/message/message.ts';
import { isSpoken } from '../../kernel/turns/rules/live-reply.ts';
import type { HandledTurn, TurnStage } from '../../kernel/turns/stages.ts';
import { createPermits, readOnce } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { PAID_CALLS } from '../spending/index.ts';
import type { ListeningDeps } from './listening.ts';
import {
  type KnownAccess,
  type SpeechEngine,
  speakingCost,
  speechEngine,
  type TranscriptionEngine,
  transcriptionEngine,
} from './rules/voice-engine.ts';
import { charged, type Speaker, type Transcriber, VoiceError } from './voice.ts';

/** Scope of the store with the transcripts. */
const VOICE_SCOPE = 'voice';
const MISPLACED = t`The speech service does not know this address or model (404). Check apiBase and model of voice.speech.`;
/** Concurrent transcriptions. */
const AT_ONCE = 4;
const FOR_OWNERS =
  t`A Groq or OpenAI key is enough, or set voice.transcription in the configuration; ` +
  t`"nanobot doctor" checks it.`;
const FOR_OTHERS = t`Please write to me instead.`;

export function install(kernel: Kernel): void {
  const { live, clock, log, store, bus, media, judge, env, owners, add } = kernel;
  const spending = kernel.use(PAID_CALLS);
  const channel = kernel.channels.get;
  const tellOwner = owners.tell;
  const engines = createVoiceEngines(() => live.config, env, clock);
  const settings = () => live.config.voice;
  const isOwnerAlone = async (message: InboundMessage) => {
    const verdict = withoutCode(await judge(message));
    return verdict.kind === 'admit' && verdict.role === 'owner' && message.group === undefined;
  };
  const listeningParts: ListeningDeps = {
    ...{ media, clock, log, spending, tellOwner },
    known: store.scope(VOICE_SCOPE),
    permits: createPermits(AT_ONCE),
    limits: () => {
      const { maxBytes, maxSecs } = settings().transcription;
      return { maxBytes, maxMs: maxSecs * 1000 };
    },
    transcriber: engines.transcriber,
    remedy: async (message) => ((await isOwnerAlone(message)) ? FOR_OWNERS : FOR_OTHERS),
    timeZone: () => live.config.sessions.timeZone,
    send: (message) => bus.send(message),
  };
  const loaded = readOnce(async () =>
    (await import('./listening.ts')).createListening(listeningParts),
  );
  const listening: Listening = {
    listened: async (...sound) => (await loaded()).listened(...sound),
    told: async (...missed) => (await loaded()).told(...missed),
  };
  const attachments = kernel.resources.use(
    new InboundAttachments({
      ...{ media, store, listening, clock, log, channel, random: Math.random },
      maxFileBytes: () => live.config.media.maxFileBytes,
      isElsewhere: (account) =>
        store.shared !== undefined && store.shared.leaderOf(account) !== store.shared.owner,
    }),
  );
  let isOwnerTold = false;
  const voicing: VoicingDeps = {
    ...{ ...kernel, spending, speaker: engines.speaker },
    misplaced() {
      if (!isOwnerTold) tellOwner(MISPLACED);
      isOwnerTold = true;
    },
  };
  add.stage({
    name: 'attachments',
    arrival: (messages, signal) => attachments.ready(messages, signal),
  });
  add.stage(voiceStage(voicing));
  kernel.provide(ATTACHMENTS, attachments);
}

// The configured engines of transcription and speech, built when first needed and again when their
// settings changed.

type ChosenEngines = {
  readonly transcription: TranscriptionEngine | undefined;
  readonly speech: SpeechEngine | undefined;
};

export function chosenEngines(config: Config, env: Environment): ChosenEngines {
  const credentials = createCredentials(config, env, []);
  const access: KnownAccess = { to: credentials.accessTo, proxy: config.network.proxy };
  const { currency } = config.limits.budget;
  return {
    transcription: transcriptionEngine(config.voice, access, currency),
    speech: speechEngine(config.voice, access, currency),
  };
}

/** Their code is loaded with the first audio. */
function createVoiceEngines(config: () => Config, env: Environment, clock: Clock) {
  const deps = { clock, env };
  return {
    async transcriber(): Promise<Transcriber | undefined> {
      const { transcription } = chosenEngines(config(), env);
      if (transcription === undefined) return undefined;
      const { createTranscriber } = await import('./transcribe.ts');
      return createTranscriber(transcription, deps);
    },
    async speaker(): Promise<Speaker | undefined> {
      const { speech } = chosenEngines(config(), env);
      if (speech === undefined) return undefined;
      const { createSpeaker } = await import('./speak.ts');
      return createSpeaker(speech, deps);
    },
  };
}

// The turn stage of voice: adds audio to the text of an answer. The audio is made before the turn
// ends, and both are sent in the transaction that ends it, so neither is lost or doubled. If speech
// fails, the text is sent alone.

type VoicingDeps = Kernel & {
  readonly spending: PaidCalls;
  /** The engine answered 404: no such address or model. */
  misplaced(): void;
  /** Undefined: none is configured. */
  speaker(): Promise<Speaker | undefined>;
};

function voiceStage(deps: VoicingDeps): TurnStage {
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

/** Failures and answers of commands are not spoken. */
function isToBeSpoken({ ending, newest }: HandledTurn, deps: VoicingDeps): boolean {
  if (ending !== 'answered') return false;
  const { reply } = deps.live.config.voice;
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
  const { speakable } = await import('./rules/speakable.ts');
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

/** Tells the person the reason, at most once a day. */
async function silent(
  handled: HandledTurn,
  { chat }: OutboundDraft,
  { text }: SpendingRefusedError,
  { log, bus, clock, live }: VoicingDeps,
): Promise<HandledTurn> {
  log.info('answer not spoken: engine refused', { channel: chat.channel });
  const day = createDayText()(clock.now(), live.config.sessions.timeZone);
  const id = messageId(`unspoken/${sessionKeyOf(chat)}/${day}`);
  await bus.send({ id, chat, markdown: t`Answer without voice: ${text}` });
  return handled;
}

const carriesSound = ({ chat }: OutboundDraft, { channels, mediumOf }: VoicingDeps) =>
  mediumOf(chat.channel) === 'chat' && channels.get(accountName(chat))?.attachments !== undefined;

async function soundOf(
  text: string,
  { chat }: OutboundDraft,
  payer: Payer,
  signal: AbortSignal,
  { media, clock, log, speaker, channels, spending }: VoicingDeps,
): Promise<OutboundAttachment | undefined> {
  const voice = await speaker();
  if (voice === undefined) return undefined;
  const startedAt = clock.monotonic();
  const micros = speakingCost(voice.price, text);
  const { isElsewhere } = voice;
  const call = { payer, micros, isElsewhere, costOf: () => micros };
  const content = await charged(call, () => voice.speak(text, signal), { spending, signal });
  const tookMs = Math.round(clock.monotonic() - startedAt);
  const maxBytes = channels.get(accountName(chat))?.attachments?.maxUploadBytes ?? 0;
  const { id, mimeType, sizeBytes } = await media.put(content, { maxBytes, signal });
  const shape = shapeOf(mimeType);
  if (shape === undefined) {
    await media.remove(id);
    throw new VoiceError('voice_malformed', NO_SOUND, { detail: mimeType });
  }
  log.info('answer spoken', { channel: chat.channel, chars: text.length, sizeBytes, tookMs });
  return { ...shape, media: id, sizeBytes };
}

/** Audio types that no phone plays as a voice message. */
const OTHER_SOUNDS = [
  [/^audio\/(?:x-)?flac$/, 'flac'],
  [/^(?:audio|video)\/webm$/, 'webm'],
  [/^audio\/(?:x-)?aac$/, 'aac'],
  [/^audio\/amr$/, 'amr'],
  [/^audio\/(?:x-)?aiff$/, 'aiff'],
] as const;

const NO_SOUND = t`the engine returned no audio`;

type Shape = Pick<OutboundAttachment, 'kind' | 'name' | 'mimeType'>;

/**
 * Only OGG is a voice message everywhere; phones play MP3 and M4A as music. Undefined: no audio.
 */
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
