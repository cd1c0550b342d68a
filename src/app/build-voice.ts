// Builds what takes in the files of messages, listens to those that are sounds, and speaks answers.

import type { PaidCalls } from '../agent/spending.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { Channel } from '../channels/channel.ts';
import type { AccountName } from '../core/account.ts';
import { withoutCode } from '../core/admission.ts';
import type { Environment } from '../core/environment.ts';
import type { InboundMessage } from '../core/message.ts';
import type { InboundAttachments } from '../gateway/attachments.ts';
import type { Dispatcher } from '../gateway/dispatcher.ts';
import type { Judge } from '../gateway/judge.ts';
import { createListening } from '../gateway/listening.ts';
import { withFiles } from '../gateway/turns-with-files.ts';
import { type VoicingDeps, withVoice } from '../gateway/turns-with-voice.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { createPermits } from '../lib/permits.ts';
import type { MediaStore } from '../media/media.ts';
import type { BusStore, StateStore } from '../store/store.ts';
import { buildAttachments } from './build-media.ts';
import { policyOf } from './doors.ts';
import type { LiveConfig } from './live-config.ts';
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
  channel(name: AccountName): Channel | undefined;
};

export type Voice = Pick<InboundAttachments, 'begin'> & {
  /** The dispatcher whose turns have their files, and whose answers are spoken as it is set. */
  with(dispatcher: Dispatcher): Dispatcher;
};

/** Fetching and listening end with the resources. */
export function buildVoice(
  { live, store, bus, judge, env, channel, spending, tellOwner, ...parts }: VoiceParts,
  resources: AsyncDisposableStack,
): Voice {
  const { media, clock, log } = parts;
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
  return {
    begin: (message) => attachments.begin(message),
    with: (dispatcher) => withFiles(withVoice(dispatcher, voicing), attachments),
  };
}
