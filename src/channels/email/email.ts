// Email as a channel: the contract only. The mail libraries are loaded when the channel runs.

import { BACKOFF, ChannelError, notSent } from '../../kernel/message/errors.ts';
import {
  type AccountId,
  accountPath,
  channelName,
  DEFAULT_ACCOUNT,
} from '../../kernel/message/ids.ts';
import { t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import {
  ArchiveError,
  AttachmentError,
  type Channel,
  createReadiness,
  InboxError,
} from '../channel.ts';
import { MAX_UPLOAD_BYTES } from './answers.ts';
import type { MailSession, SessionDeps } from './mail-session.ts';
import type { EmailConfig } from './settings.ts';

/** A mail has no length limit that requires splitting. */
const TEXT_UNITS = 1_000_000;
/** RFC 5321 section 4.5.4.1: give up after four to five days. */
const LIFETIME_MS = 4 * 86_400_000;

export type EmailDeps = Omit<SessionDeps, 'at' | 'config' | 'host'> & {
  /** The mailbox; default: the first. */
  readonly account?: AccountId;
};

export function createEmailChannel(
  config: EmailConfig,
  { account = DEFAULT_ACCOUNT, ...deps }: EmailDeps = {},
): Channel {
  const name = channelName('email');
  const readiness = createReadiness();
  let session: MailSession | undefined;

  /** @throws the error that `missing` makes while the channel does not run */
  function opened(missing: () => Error): MailSession {
    if (session === undefined) throw missing();
    return session;
  }

  return {
    name,
    account,
    limits: { textUnits: TEXT_UNITS },
    onUnknown: 'reconcile',
    lifetimeMs: LIFETIME_MS,
    readiness,
    coalesces: true,
    attachments: {
      maxUploadBytes: MAX_UPLOAD_BYTES,
      isInOnePiece: true,
      fetch: (ref, signal) => opened(noFile).file(ref, signal),
    },
    async run(host, signal) {
      host.report({ kind: 'starting' });
      try {
        const { MailSession } = await import('./mail-session.ts');
        session = await MailSession.open({ at: { channel: name, account }, config, host, ...deps });
        readiness.set(true);
        await session.run(AbortSignal.any([signal, host.closing]));
        if (!signal.aborted) await aborted(signal);
      } catch (error) {
        if (error instanceof ChannelError && error.code === 'mail_settings') {
          const remedy = t`correct ${accountPath({ channel: name, account })} in the configuration`;
          host.report({ kind: 'stopped', reason: error.message, remedy });
        }
        throw error;
      } finally {
        readiness.set(false);
        session = undefined;
      }
    },
    selfTest: { run: (nonce, signal) => opened(notRunning).selfTest(nonce, signal) },
    send: async (message, context) => opened(notRunning).send(message, context),
    inbox: {
      find: async (question, signal) => opened(noInbox).inbox.find(question, signal),
      read: async (id, signal) => opened(noInbox).inbox.read(id, signal),
    },
    archive: async (id, signal) => opened(noArchive).archive(id, signal),
    reconcile: async (message, signal) => opened(notRunning).reconcile(message, signal),
    async admit(message, hasBegun) {
      return (await session?.limits.admit(message, hasBegun)) ?? { kind: 'answer' };
    },
    waiting: () => session?.limits.waiting(),
  };
}

const NOT_RUNNING = t`the email channel is not running`;
const notRunning = () => notSent(NOT_RUNNING, BACKOFF);
const noFile = () => new AttachmentError('mail_not_running', NOT_RUNNING, { isFinal: false });
const noInbox = () => new InboxError('the mailbox is not connected at the moment');
const noArchive = () => new ArchiveError('no_archive', 'the mailbox is not connected');
