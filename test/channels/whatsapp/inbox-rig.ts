// An inbox on the real embedded store and ledger, without a connection: rows are laid into the ledger
// by hand, the clock is moved by the test.

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { proto } from '@whiskeysockets/baileys';
import { createContexts } from '../../../src/channels/whatsapp/context.ts';
import { createInbox, type Inbox } from '../../../src/channels/whatsapp/inbox.ts';
import {
  arrivalKey,
  encodeRow,
  type Ledger,
  openLedger,
} from '../../../src/channels/whatsapp/ledger.ts';
import { createOwnerPause } from '../../../src/channels/whatsapp/pacer.ts';
import {
  createLidDirectory,
  createPeople,
  type People,
} from '../../../src/channels/whatsapp/people.ts';
import { createUnresolved } from '../../../src/channels/whatsapp/row-reader.ts';
import { normaliseAllowed } from '../../../src/channels/whatsapp/rules/jid.ts';
import {
  createUndecryptable,
  type Undecryptable,
} from '../../../src/channels/whatsapp/undecryptable.ts';
import { admit, isUnknownSender } from '../../../src/kernel/access/admission.ts';
import { openEmbeddedStore } from '../../../src/kernel/bus/store/embedded.ts';
import type { KeyValueStore } from '../../../src/kernel/bus/store/store.ts';
import type { InboundMessage } from '../../../src/kernel/message/message.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';
import { createMovableClock, type MovableClock } from '../../support/movable-clock.ts';

export const OWN = { number: '4917000000', lid: '90000' };
export const HOUR_MS = 3_600_000;
const MANY_STEPS = 2000;

export type Put = {
  /** The chat as the server names it. */
  readonly chat: string;
  readonly alt?: string;
  readonly text?: string;
  readonly message?: proto.IMessage;
  readonly id?: string;
  readonly fromMe?: boolean;
  readonly participant?: string;
  readonly participantAlt?: string;
  /** Milliseconds before now. */
  readonly ago?: number;
  readonly name?: string;
};

export type InboxRig = AsyncDisposable & {
  readonly host: MemoryHost;
  readonly clock: MovableClock;
  readonly inbox: Inbox;
  readonly people: People;
  readonly ledger: Ledger;
  readonly state: KeyValueStore;
  readonly undecryptable: Undecryptable;
  /** Ids the agent itself sent. */
  readonly ours: Set<string>;
  /** Ids of people let in by hand or by a code. */
  readonly approved: Set<string>;
  /** LIDs and numbers as the vendor's library stored them. */
  readonly mappings: Map<string, string>;
  /** While true the inbox waits, as it does while offline messages come in. */
  catchingUp(is: boolean): void;
  /** Why nothing came through, and undefined where it did again, in the order it was told. */
  readonly troubles: readonly (string | undefined)[];
  /** Lays messages into the ledger, in this order of arrival; their ids. */
  put(...messages: readonly Put[]): Promise<readonly string[]>;
  /** Lets the inbox do all it can do now. */
  drained(): Promise<void>;
  /** As after a crash: a new inbox on the same rows. */
  restart(): Promise<void>;
};

export type InboxSettings = {
  readonly allowFrom?: readonly string[];
  readonly selfChat?: boolean;
  readonly ownerPauseMins?: number;
  readonly maxAgeHours?: number;
};

export async function openInboxRig(settings: InboxSettings = {}): Promise<InboxRig> {
  const clock = createMovableClock();
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-inbox-'));
  const path = join(folder, 'state.db');
  const store = await openEmbeddedStore({ path, clock, log: silentLogger });
  const state = store.scope('channel:whatsapp:default');
  const { allowFrom = ['*'] } = settings;
  const approved = new Set<string>();
  const isUnknown = async (message: InboundMessage) => {
    const isApproved = message.sender.kind === 'person' && approved.has(message.sender.id);
    const verdict = admit(message, {
      allowFrom: allowFrom.map(normaliseAllowed),
      owners: [],
      role: isApproved ? 'trusted' : undefined,
      acceptUnverified: false,
      strangers: 'silent',
    });
    return isUnknownSender(verdict);
  };
  const host = Object.assign(createMemoryHost(clock), { state, isUnknownSender: isUnknown });
  const ours = new Set<string>();
  const mappings = new Map<string, string>();
  const gate = createGate();
  let arrivals = 0;
  const troubles: (string | undefined)[] = [];

  async function start() {
    const ledger = await openLedger({ state, clock, log: silentLogger, own: () => undefined });
    const keys = { get: async (_: string, ids: string[]) => found(mappings, ids) };
    const directory = createLidDirectory({
      keys: () => keys,
      mapping: () => undefined,
      clock,
      log: silentLogger,
    });
    const people = createPeople({
      state,
      clock,
      log: silentLogger,
      directory,
      account: () => OWN,
    });
    const pauseMs = (settings.ownerPauseMins ?? 30) * 60_000;
    const undecryptable = createUndecryptable(host);
    const inbox = createInbox({
      host,
      ledger,
      people,
      contexts: createContexts(state),
      undecryptable,
      pause: createOwnerPause({ state, clock, pauseMs }),
      unresolved: createUnresolved({ host, allowFrom: () => allowFrom }),
      link: gate,
      settings: {
        selfChat: settings.selfChat ?? false,
        maxAgeHours: settings.maxAgeHours ?? 72,
      },
      account: () => OWN,
      isOurs: async (id) => ours.has(id),
      random: () => 0,
      noteTrouble: (trouble) => void troubles.push(trouble?.reason),
    });
    const controller = new AbortController();
    const runs = [inbox.run(controller.signal), undecryptable.run(controller.signal)];
    return { ledger, people, inbox, undecryptable, controller, runs };
  }

  let current = await start();

  async function stop() {
    current.controller.abort();
    await Promise.all(current.runs);
  }

  return {
    host,
    clock,
    state,
    ours,
    approved,
    mappings,
    get inbox() {
      return current.inbox;
    },
    get people() {
      return current.people;
    },
    get ledger() {
      return current.ledger;
    },
    get undecryptable() {
      return current.undecryptable;
    },
    troubles,
    catchingUp: gate.set,
    async put(...messages) {
      const ids: string[] = [];
      const rows = messages.map((message) => {
        const id = message.id ?? randomUUID();
        ids.push(id);
        arrivals += 1;
        return { key: arrivalKey(arrivals), value: rowOf(message, id, clock.now()) };
      });
      await state.setMany(rows);
      current.ledger.stored();
      return ids;
    },
    async drained() {
      for (let step = 0; step < MANY_STEPS; step += 1) {
        await clock.advance(70);
        if ((await current.ledger.list(1)).length > 0) continue;
        await clock.advance(70);
        return;
      }
      throw new Error('the ledger was not emptied');
    },
    async restart() {
      await stop();
      current = await start();
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function rowOf(put: Put, id: string, now: number): string {
  const { chat, alt, participant, participantAlt, text = 'hello', name, ago = 0 } = put;
  const bytes = proto.Message.encode(
    proto.Message.fromObject(put.message ?? { conversation: text }),
  ).finish();
  const envelope = {
    key: {
      remoteJid: chat,
      ...(alt === undefined ? {} : { remoteJidAlt: alt }),
      fromMe: put.fromMe ?? false,
      id,
      ...(participant === undefined ? {} : { participant }),
      ...(participantAlt === undefined ? {} : { participantAlt }),
    },
    sentAt: now - ago,
    pushName: name,
  };
  return encodeRow(envelope, now, bytes);
}

function found(mappings: ReadonlyMap<string, string>, ids: readonly string[]) {
  const rows = ids.flatMap((id) => {
    const value = mappings.get(id);
    return value === undefined ? [] : [[id, value]];
  });
  return Object.fromEntries(rows);
}

/** A link that is catching up while the test says so. */
function createGate() {
  let isCatchingUp = false;
  let changed = Promise.withResolvers<void>();
  return {
    get isCatchingUp() {
      return isCatchingUp;
    },
    set(is: boolean) {
      isCatchingUp = is;
      changed.resolve();
      changed = Promise.withResolvers();
    },
    async caughtUp(signal: AbortSignal) {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
      aborted.catch(() => undefined);
      while (isCatchingUp) await Promise.race([changed.promise, aborted]);
    },
  };
}
