// Builds what takes in the files of messages, listens to those that are sounds, and speaks answers.

import type { PaidCalls } from '../../agent/spending.ts';
import { buildAttachments } from '../../app/build-media.ts';
import { withoutCode } from '../../kernel/access/admission.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { BusStore, StateStore } from '../../kernel/bus/store/store.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import type { InboundAttachments } from '../../kernel/intake/attachments.ts';
import { policyOf } from '../../kernel/intake/doors.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { createPermits } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { createListening } from './listening.ts';
import {
  type AccessTo,
  type SpeechEngine,
  speechEngine,
  type TranscriptionEngine,
  transcriptionEngine,
} from './rules/voice-engine.ts';
import { type VoicingDeps, voiceStage } from './stage.ts';
import type { Speaker, Transcriber } from './voice.ts';

/** Where the words of sounds live in the store. */
const VOICE_SCOPE = 'voice';
const MISPLACED =
  'What speaks answers says that it knows no such address or model (404). Check apiBase and model of ' +
  'voice.speech.';
/** Sounds that are listened to at once. */
const AT_ONCE = 4;
const FOR_OWNERS =
  'A Groq or OpenAI key is enough, or set voice.transcription in the configuration; ' +
  '"nanobot doctor" checks it.';
const FOR_OTHERS = 'Please write to me instead.';

export type VoiceParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore & Pick<BusStore, 'setAttachments'>;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly media: MediaStore;
  readonly judge: Judge;
  readonly spending: PaidCalls;
  readonly env: Environment;
  tellOwner(text: string): void;
  readonly channels: Pick<ChannelDirectory, 'get'>;
  readonly add: Contributions;
};

export type Voice = Pick<InboundAttachments, 'begin'>;

/** Fetching and listening end with the resources. */
export function buildVoice(
  { live, store, bus, judge, env, channels, spending, tellOwner, add, ...parts }: VoiceParts,
  resources: AsyncDisposableStack,
): Voice {
  const { media, clock, log } = parts;
  const channel = channels.get;
  const engines = createVoiceEngines(() => live.config, env, clock);
  const settings = () => live.config.voice;
  const isOwnerAlone = async (message: InboundMessage) => {
    const verdict = withoutCode(await judge(message));
    return verdict.kind === 'admit' && verdict.role === 'owner' && message.group === undefined;
  };
  const listening = createListening({
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
  });
  const fetching = { live, clock, log, media, store, listening };
  const attachments = buildAttachments(fetching, channel, resources);
  let isOwnerTold = false;
  const voicing: VoicingDeps = {
    ...{ media, clock, log, channel, spending },
    send: (message) => bus.send(message),
    timeZone: () => live.config.sessions.timeZone,
    isChat: (name) => policyOf(name, live.config).medium === 'chat',
    reply: () => settings().reply,
    speaker: engines.speaker,
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
  return { begin: (message) => attachments.begin(message) };
}

// Which engines listen and speak by the configuration in force, built when they are first needed and
// again when their settings changed.

export type ChosenEngines = {
  readonly transcription: TranscriptionEngine | undefined;
  readonly speech: SpeechEngine | undefined;
};

export function chosenEngines(config: Config, env: Environment): ChosenEngines {
  const credentials = createCredentials(config, env, []);
  const accessTo: AccessTo = (vendor) => credentials.accessTo(vendor);
  const { currency } = config.limits.budget;
  return {
    transcription: transcriptionEngine(config.voice, accessTo, currency),
    speech: speechEngine(config.voice, accessTo, currency),
  };
}

export interface VoiceEngines {
  transcriber(): Promise<Transcriber | undefined>;
  speaker(): Promise<Speaker | undefined>;
}

/** Their code is loaded with the first sound. */
export function createVoiceEngines(
  config: () => Config,
  env: Environment,
  clock: Clock,
): VoiceEngines {
  const deps = { clock, env };
  return {
    async transcriber() {
      const { transcription } = chosenEngines(config(), env);
      if (transcription === undefined) return undefined;
      const { createTranscriber } = await import('./transcribe.ts');
      return createTranscriber(transcription, deps);
    },
    async speaker() {
      const { speech } = chosenEngines(config(), env);
      if (speech === undefined) return undefined;
      const { createSpeaker } = await import('./speak.ts');
      return createSpeaker(speech, deps);
    },
  };
}
