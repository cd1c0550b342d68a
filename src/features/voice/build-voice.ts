// Builds what takes in the files of messages, listens to those that are sounds, and speaks answers.

import type { PaidCalls } from '../../agent/spending.ts';
import { buildAttachments } from '../../app/build-media.ts';
import { withoutCode } from '../../kernel/access/admission.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { BusStore, StateStore } from '../../kernel/bus/store/store.ts';
import type { ChannelDirectory } from '../../kernel/channels.ts';
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
import { createListening } from './listening.ts';
import { type VoicingDeps, voiceStage } from './stage.ts';
import { createVoiceEngines } from './voice-engines.ts';

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
