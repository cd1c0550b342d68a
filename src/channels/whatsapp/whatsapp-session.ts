// One run of the channel: the parts that share the account's link, wired and running together. What
// each does is in its own file; this is the only one that knows them all.

import type { WASocket } from '@whiskeysockets/baileys';
import type { WhatsAppConfig } from '../../kernel/config/config.ts';
import type { ChannelHost } from '../channel.ts';
import { createGroupMembers, type GroupMembers } from './groups.ts';
import { createInbox, type Inbox } from './inbox.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { createLidDirectory } from './lid-directory.ts';
import { createLink, type Link } from './link.ts';
import { createMediaAgain, type MediaAgain } from './media-download.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createOwnerPause } from './pacer.ts';
import { createPeople, type People } from './people.ts';
import { createUnresolved } from './row-reader.ts';
import { createSessionRepository } from './session-repository.ts';
import { createUndecryptable, type Undecryptable } from './undecryptable.ts';
import type { Vault } from './vault.ts';

export type SessionDeps = {
  readonly config: WhatsAppConfig;
  readonly host: ChannelHost;
  readonly vault: Vault;
  /** 0 to 1; spreads waits. */
  readonly random: () => number;
  /** Who may write, as configured now. */
  allowFrom(): readonly string[];
  /** Told whenever the connection opens or is no longer of use. */
  onReady(isReady: boolean): void;
};

export class WhatsAppSession {
  readonly link: Link;
  readonly outbox: Outbox;
  readonly mediaAgain: MediaAgain;
  readonly #deps: SessionDeps;
  readonly #ledger: Ledger;
  readonly #inbox: Inbox;
  readonly #undecryptable: Undecryptable;
  readonly #groupMembers: GroupMembers;

  private constructor(deps: SessionDeps, ledger: Ledger) {
    this.#deps = deps;
    this.#ledger = ledger;
    this.#undecryptable = createUndecryptable(deps.host);
    this.#groupMembers = createGroupMembers(deps.host.clock);
    this.link = this.#createLink();
    const { clock, log } = deps.host;
    this.mediaAgain = createMediaAgain({ socket: () => this.link.socket, clock, log });
    const people = this.#createPeople();
    this.outbox = createOutbox({
      link: this.link,
      people,
      isPaused: (chat) => this.#inbox.isPaused(chat),
      unread: (chat) => this.#inbox.takeUnread(chat),
      settings: deps.config,
      host: deps.host,
      random: deps.random,
    });
    this.#inbox = this.#createInbox(people);
  }

  static async open(deps: SessionDeps): Promise<WhatsAppSession> {
    const { vault, host } = deps;
    const { state, clock, log } = host;
    const own = () => {
      const { me } = vault.auth.creds;
      if (me === undefined) return undefined;
      return { id: me.id, ...(me.lid === undefined ? {} : { lid: me.lid }) };
    };
    return new WhatsAppSession(deps, await openLedger({ state, clock, log, own }));
  }

  /** Until aborted; where one part fails, all end and the error is thrown. */
  async run(signal: AbortSignal): Promise<void> {
    const failing = new AbortController();
    const whole = AbortSignal.any([signal, failing.signal]);
    const taking = AbortSignal.any([whole, this.#deps.host.closing]);
    const parts = [
      this.link.run(whole),
      this.#inbox.run(taking),
      this.#undecryptable.run(taking),
    ].map((part) =>
      part.catch((error) => {
        failing.abort();
        throw error;
      }),
    );
    await Promise.allSettled(parts);
    await Promise.all(parts);
  }

  #createLink(): Link {
    const { config, host, vault, random } = this.#deps;
    const { clock, log } = host;
    const ledger = this.#ledger;
    return createLink({
      vault,
      ledger,
      settings: config,
      host,
      random,
      onReady: (isReady) => this.#deps.onReady(isReady),
      getMessage: (key) => this.outbox.getMessage(key),
      cachedGroupMetadata: this.#groupMembers.of,
      makeSignalRepository: createSessionRepository({ vault, ledger, clock, log }),
      onSocket: (socket) => this.#attach(socket),
    });
  }

  /** Before the socket can deliver anything. */
  #attach(socket: WASocket): Disposable {
    const stack = new DisposableStack();
    stack.use(this.outbox.attach(socket));
    stack.use(this.#undecryptable.attach(socket));
    stack.use(this.#groupMembers.attach(socket));
    stack.defer(() => this.#ledger.disconnected());
    socket.ws.prependListener('CB:message', (stanza) => this.#ledger.observe(stanza));
    return stack;
  }

  #createPeople(): People {
    const { host, vault } = this.#deps;
    const { state, clock, log } = host;
    const directory = createLidDirectory({
      keys: () => vault.auth.keys,
      mapping: () => this.link.socket?.signalRepository.lidMapping,
      clock,
      log,
    });
    return createPeople({ state, clock, log, directory, account: () => vault.account });
  }

  #createInbox(people: People): Inbox {
    const { config, host, vault, random, allowFrom } = this.#deps;
    const { state, clock } = host;
    return createInbox({
      host,
      people,
      ledger: this.#ledger,
      link: this.link,
      settings: config,
      pause: createOwnerPause({ state, clock, pauseMs: config.ownerPauseMins * 60_000 }),
      unresolved: createUnresolved({ host, allowFrom }),
      undecryptable: this.#undecryptable,
      account: () => vault.account,
      isOurs: (id) => this.outbox.isOurs(id),
      noteTrouble: (trouble) => this.link.noteTrouble(trouble),
      random,
    });
  }
}
