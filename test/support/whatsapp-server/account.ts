// An account with its phone as the server keeps it: the linked device, the stanzas waiting for it,
// who is connected, and what the test wants of the next login. Chats are the people's.

import { type BinaryNode, S_WHATSAPP_NET } from '@whiskeysockets/baileys';
import { seconds } from './answers.ts';
import type { Connection } from './connection.ts';
import type { Ending, Phone, SavedPhone } from './contract.ts';
import type { Account, DeviceConnection, LinkedDevice, Plumbing } from './seams.ts';
import type { SavedSignalDevice } from './signal-device.ts';

const WAIT_MS = 45_000;
// Fewer than this, and the server asks the device for more.
const FEW_PRE_KEYS = 5;

type Outbound = { readonly id: string; readonly to: string; readonly at: number; acked: boolean };

export class LinkedAccount implements Account {
  readonly number: string;
  readonly lid: string;
  readonly name: string;
  readonly saved: SavedSignalDevice | undefined;
  readonly queue: BinaryNode[] = [];
  readonly counts = { logins: 0, registrations: 0, atOnce: 0 };
  readonly outbound: Outbound[] = [];
  device: LinkedDevice | undefined;
  withholdsMarker = false;
  wantsAllPreKeys = false;
  /** Meets every login until lifted. */
  refusal: Ending | undefined;
  /** Meets the next login and is used up. */
  refusalOnce: Ending | undefined;
  readonly #plumbing: Plumbing;
  readonly #sockets = new Set<Connection>();
  readonly #watchers = new Set<() => void>();
  #connection: DeviceConnection | undefined;
  #devices: number;

  constructor(plumbing: Plumbing, who: Pick<Phone, 'number' | 'lid' | 'name'>, saved?: SavedPhone) {
    this.#plumbing = plumbing;
    this.number = who.number;
    this.lid = who.lid;
    this.name = who.name;
    this.saved = saved?.phone;
    this.device = saved && { ...saved.linked, preKeys: new Map(saved.linked.preKeys) };
    this.#devices = saved?.linked.id ?? 0;
  }

  get connection(): DeviceConnection | undefined {
    return this.#connection;
  }

  set connection(connection: DeviceConnection | undefined) {
    this.#connection = connection;
    this.changed();
  }

  /** Device ids are never used twice. */
  nextDevice(): number {
    this.#devices += 1;
    return this.#devices;
  }

  /** What waited for a former device was encrypted for it, and is of no use to this one. */
  link(device: LinkedDevice): void {
    this.device = device;
    this.queue.length = 0;
    this.counts.registrations += 1;
    this.changed();
  }

  unlink(): void {
    this.device = undefined;
    this.queue.length = 0;
    this.changed();
  }

  takeRefusal(): Ending | undefined {
    const once = this.refusalOnce;
    this.refusalOnce = undefined;
    return once ?? this.refusal;
  }

  sent(id: string, to: string): void {
    this.outbound.push({ id, to, at: this.#plumbing.now(), acked: false });
    this.changed();
  }

  acked(id: string): void {
    const last = this.outbound.findLast((sent) => sent.id === id && !sent.acked);
    if (last !== undefined) last.acked = true;
    this.changed();
  }

  entered(socket: Connection): void {
    this.#sockets.add(socket);
    this.counts.logins += 1;
    this.counts.atOnce = Math.max(this.counts.atOnce, this.#sockets.size);
  }

  left(socket: Connection): void {
    this.#sockets.delete(socket);
    this.changed();
  }

  /** Logged in, whether or not it asked for its messages yet. */
  get sockets(): readonly Connection[] {
    return [...this.#sockets];
  }

  async deliver(stanza: BinaryNode): Promise<void> {
    this.queue.push(stanza);
    await this.#connection?.send(stanza);
  }

  settle(tag: string, stanzaId: string): void {
    const oldest = this.queue.findIndex(
      (stanza) => stanza.tag === tag && stanza.attrs['id'] === stanzaId,
    );
    if (oldest === -1) return;
    this.queue.splice(oldest, 1);
    this.changed();
  }

  takePreKey(): { readonly id: number; readonly key: Uint8Array } | undefined {
    const { device } = this;
    const next = device?.preKeys.entries().next().value;
    if (device === undefined || next === undefined) return undefined;
    const [id, key] = next;
    device.preKeys.delete(id);
    // Not queued: a device that is offline learns the count when it logs in.
    if (device.preKeys.size < FEW_PRE_KEYS) void this.#connection?.send(this.#preKeysLow(device));
    return { id, key };
  }

  #preKeysLow(device: LinkedDevice): BinaryNode {
    const id = this.#plumbing.stanzaId();
    const t = seconds(this.#plumbing.now());
    return {
      tag: 'notification',
      attrs: { id, from: S_WHATSAPP_NET, type: 'encrypt', t },
      content: [{ tag: 'count', attrs: { value: String(device.preKeys.size) } }],
    };
  }

  changed(): void {
    for (const look of this.#watchers) look();
  }

  /** Resolves with the first value that is not undefined. @throws after the time is up */
  until<T>(look: () => T | undefined, what: string, timeoutMs = WAIT_MS): Promise<T> {
    const first = look();
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      const watch = () => {
        const value = look();
        if (value === undefined) return;
        this.#watchers.delete(watch);
        clearTimeout(timer);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(watch);
        reject(new Error(`${what}: not within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#watchers.add(watch);
    });
  }
}
