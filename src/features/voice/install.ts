// Installs voice: files of messages are taken in, those that are sounds are listened to, and answers are spoken.

import { withoutCode } from '../../kernel/access/admission.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { ATTACHMENTS, InboundAttachments } from '../../kernel/intake/attachments.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { createPermits } from '../../lib/async.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { PAID_CALLS } from '../spending/install.ts';
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

export function install(kernel: Kernel): void {
  const { live, clock, log, store, bus, media, judge, env, owners, add, mediumOf } = kernel;
  const spending = kernel.use(PAID_CALLS);
  const channel = kernel.channels.get;
  const tellOwner = owners.tell;
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
  const attachments = kernel.resources.use(
    new InboundAttachments({
      ...{ media, store, listening, clock, log, channel, random: Math.random },
      maxFileBytes: () => live.config.media.maxFileBytes,
    }),
  );
  let isOwnerTold = false;
  const voicing: VoicingDeps = {
    ...{ media, clock, log, channel, spending },
    send: (message) => bus.send(message),
    timeZone: () => live.config.sessions.timeZone,
    isChat: (name) => mediumOf(name) === 'chat',
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
  kernel.provide(ATTACHMENTS, attachments);
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
