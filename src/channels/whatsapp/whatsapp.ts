// WhatsApp as a channel: one linked account. Who it is linked to is the vault's, how the connection
// lives the link's, what comes in the inbox's and what goes out the outbox's.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import type { WhatsAppConfig } from '../../kernel/config/config.ts';
import { BACKOFF, ChannelError, DeliveryError } from '../../kernel/message/errors.ts';
import { DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { orAborted } from '../../lib/time/clock.ts';
import {
  type Attachments,
  type Channel,
  type ChannelHost,
  createReadiness,
  type Editing,
  type LoginOptions,
  type Reactions,
  type Retracting,
  type Typing,
} from '../channel.ts';
import { MIN_EDIT_INTERVAL_MS } from './edits.ts';
import { WHATSAPP } from './hand-over.ts';
import type { MediaAgain } from './media-download.ts';
import { downloadMedia } from './media-download.ts';
import { LINK_REMEDY } from './rules/endings.ts';
import { CAPTION_UNITS } from './send-media.ts';
import { TYPING_SHOWN_MS } from './typing.ts';
import { LINK_DAMAGED, openFreshVault, openVault, type Vault } from './vault.ts';
import { WhatsAppSession } from './whatsapp-session.ts';

export type WhatsAppDeps = {
  /** 0 to 1; spreads waits. */
  readonly random: () => number;
  /** Who may write, as configured now. */
  allowFrom(): readonly string[];
};

/** Longest text a person can send in one message, UTF-16 units; ours are cut shorter, see edits.ts. */
const INBOUND_UNITS = 65_536;
/** What is sent is held in memory, encrypted and uploaded; WhatsApp itself takes far more. */
const MAX_UPLOAD_BYTES = 100_000_000;
/** A paced answer may wait until the next day, see `pacing.firstContactsPerDay`. */
const LIFETIME_MS = 3 * 86_400_000;

export function createWhatsAppChannel(config: WhatsAppConfig, deps: WhatsAppDeps): Channel {
  return new WhatsAppChannel(config, deps);
}

class WhatsAppChannel implements Channel {
  readonly name = WHATSAPP;
  readonly account = DEFAULT_ACCOUNT;
  readonly limits = { textUnits: INBOUND_UNITS };
  readonly onUnknown = 'idempotent';
  readonly lifetimeMs = LIFETIME_MS;
  readonly coalesces = true;
  readonly readiness = createReadiness();
  readonly attachments: Attachments;
  readonly login = { begin: this.#login.bind(this) };
  readonly retracting: Retracting = {
    retract: (...given) => this.#running().outbox.edits.retract(...given),
  };
  readonly typing: Typing;
  readonly editing?: Editing;
  readonly reactions?: Reactions;
  readonly #config: WhatsAppConfig;
  readonly #deps: WhatsAppDeps;
  /** Of the run under way, or of the next. */
  #opened = Promise.withResolvers<WhatsAppSession>();
  #loginWanted = Promise.withResolvers<void>();
  #session: WhatsAppSession | undefined;

  constructor(config: WhatsAppConfig, deps: WhatsAppDeps) {
    this.#config = config;
    this.#deps = deps;
    this.attachments = {
      maxUploadBytes: MAX_UPLOAD_BYTES,
      maxCaptionUnits: CAPTION_UNITS,
      fetch: (ref, signal) => {
        const { socketUrl } = config;
        const again: MediaAgain = async (file) => this.#session?.mediaAgain(file);
        return downloadMedia(ref, { socketUrl, again }, signal);
      },
    };
    this.typing = {
      intervalMs: TYPING_SHOWN_MS,
      show: async (chat, signal) => this.#session?.outbox.typing.show(chat, signal),
    };
    if (config.ackReaction !== '') {
      this.reactions = {
        acknowledgement: config.ackReaction,
        react: (...given) => this.#running().outbox.reactions.react(...given),
      };
    }
    if (config.streaming) {
      this.editing = {
        minIntervalMs: MIN_EDIT_INTERVAL_MS,
        place: (...given) => this.#drafts().place(...given),
        edit: (...given) => this.#drafts().edit(...given),
        remove: (...given) => this.#drafts().remove(...given),
      };
    }
  }

  async run(host: ChannelHost, signal: AbortSignal): Promise<void> {
    let vault: Vault | undefined;
    try {
      vault = await this.#openVault(host, signal);
      const session = await WhatsAppSession.open({
        ...this.#deps,
        config: this.#config,
        host,
        vault,
        onReady: (isReady) => this.readiness.set(isReady),
      });
      this.#session = session;
      this.#opened.resolve(session);
      await session.run(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.readiness.set(false);
      this.#session = undefined;
      this.#opened = Promise.withResolvers();
      this.#loginWanted = Promise.withResolvers();
      await vault?.close();
    }
  }

  async send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    return this.#running().outbox.send(message, context);
  }

  async *#login(options: LoginOptions, signal: AbortSignal) {
    this.#loginWanted.resolve();
    const { link } = await orAborted(this.#opened.promise, signal);
    yield* link.login.begin(options, signal);
  }

  /** Where what is stored is damaged, a person decides to begin anew: by a login. */
  async #openVault(host: ChannelHost, signal: AbortSignal): Promise<Vault> {
    try {
      return await openVault(host);
    } catch (error) {
      if (!(error instanceof ChannelError) || error.code !== LINK_DAMAGED) throw error;
      host.log.error('the stored whatsapp link is damaged', { error });
      host.report({ kind: 'stopped', reason: error.message, remedy: LINK_REMEDY });
      host.alert(`${error.message} ${LINK_REMEDY}`);
      await orAborted(this.#loginWanted.promise, signal);
      return openFreshVault(host);
    }
  }

  #running(): WhatsAppSession {
    if (this.#session !== undefined) return this.#session;
    throw new DeliveryError('the WhatsApp channel does not run', {
      certainty: 'not_sent',
      remedy: BACKOFF,
      code: 'whatsapp_stopped',
    });
  }

  #drafts(): Editing {
    return this.#running().outbox.edits;
  }
}
