// Proves the platform channels for a person who sets them up or looks for what is wrong. What is
// imported here costs start-up time, so commands import this file when they need it.

import type { EmailConfig } from '../kernel/config/config.ts';
import type { LoginStep } from './channel.ts';
import { type MailProof, proveMailbox } from './email/prove.ts';
import type { LarkCredentials, ProvenLarkBot } from './lark/prove.ts';
import { type LinkOptions, linkChannel } from './link-channel.ts';

export { discoverMailbox } from './email/discover.ts';
export type { MailProof, MailProofStep } from './email/prove.ts';
export { proveMailbox } from './email/prove.ts';
export type { ProvenLarkBot } from './lark/prove.ts';
export { type ProvenBot, pairingLink, proveTelegram } from './telegram/prove.ts';
export { readLinkHealth, reconnectsOfLastDay } from './whatsapp/link-health.ts';

/** Both servers took the log-in; the mail to itself is left out. */
class LoginsProven extends Error {
  override readonly name = 'LoginsProven';
}

/** Logs in on both mail servers without sending anything. */
export async function checkMailLogins(
  config: EmailConfig,
  signal: AbortSignal,
): Promise<MailProof> {
  const onStep = (step: string) => {
    if (step === 'round trip') throw new LoginsProven();
  };
  try {
    return await proveMailbox(config, signal, { onStep });
  } catch (error) {
    if (error instanceof LoginsProven) return { kind: 'proven' };
    throw error;
  }
}

/** Lark's SDK is large: it is loaded by whoever asks. @throws ChannelError */
export async function proveLark(
  credentials: LarkCredentials,
  signal: AbortSignal,
): Promise<ProvenLarkBot> {
  const lark = await import('./lark/prove.ts');
  return lark.proveLark(credentials, signal);
}

/**
 * Links the WhatsApp account where no gateway runs; it holds the home meanwhile.
 * @throws HomeLockedError, ConfigError, ChannelError
 */
export function linkWhatsApp(options: LinkOptions, signal: AbortSignal): AsyncIterable<LoginStep> {
  return linkChannel('whatsapp', options, signal);
}
