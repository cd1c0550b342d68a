// A linked device logs in: who may, what it is told, and the delivery of what waited for it. What
// it asks and sends afterwards is for the handlers.

import { type BinaryNode, getAllBinaryNodeChildren, S_WHATSAPP_NET } from '@whiskeysockets/baileys';
import type { LinkedAccount } from './account.ts';
import { result, seconds } from './answers.ts';
import type { Connection, Session } from './connection.ts';
import type { Ending } from './contract.ts';
import type { ClientHello } from './noise-responder.ts';
import type { DeviceConnection, Plumbing, StanzaHandler } from './seams.ts';

const LOGGED_OUT: Ending = { kind: 'failure', reason: 401 };
const ROUTING_INFO = Buffer.from([8, 2, 8, 5]);

export type LoginDeps = {
  readonly plumbing: Plumbing;
  readonly handlers: readonly StanzaHandler[];
  /** The device has what waited for it. */
  online(account: LinkedAccount): Promise<void>;
};

/** Lets the device in or refuses it. */
export function beginLogin(
  deps: LoginDeps,
  account: LinkedAccount | undefined,
  connection: Connection,
  hello: ClientHello,
): Session {
  const refusal = account === undefined ? LOGGED_OUT : refusalOf(account, hello);
  if (account !== undefined && refusal === undefined) {
    return new LoggedIn(deps, account, connection);
  }
  void connection.end(refusal ?? LOGGED_OUT);
  return REFUSED;
}

const REFUSED: Session = {
  take: () => Promise.resolve(true),
  nack: () => undefined,
  ended: () => undefined,
  closed: () => undefined,
};

function refusalOf(account: LinkedAccount, hello: ClientHello): Ending | undefined {
  const wanted = account.takeRefusal();
  if (wanted !== undefined) return wanted;
  const { device } = account;
  if (device === undefined || device.id !== (hello.payload.device ?? 0)) return LOGGED_OUT;
  return Buffer.compare(device.noiseKey, hello.noiseKey) === 0 ? undefined : LOGGED_OUT;
}

class LoggedIn implements Session, DeviceConnection {
  readonly account: LinkedAccount;
  readonly #deps: LoginDeps;
  readonly #connection: Connection;
  #isEnded = false;

  constructor(deps: LoginDeps, account: LinkedAccount, connection: Connection) {
    this.#deps = deps;
    this.account = account;
    this.#connection = connection;
    const others = account.sockets;
    account.entered(connection);
    for (const other of others) void other.end({ kind: 'conflict' });
    void this.send({
      tag: 'success',
      attrs: {
        t: seconds(deps.plumbing.now()),
        lid: account.device?.lidJid ?? '',
        location: 'loopback',
        props: '1',
      },
    });
  }

  send(stanza: BinaryNode): Promise<void> {
    const { attrs } = stanza;
    if (stanza.tag === 'ack' && attrs['class'] === 'message' && attrs['error'] === undefined) {
      this.account.acked(attrs['id'] ?? '');
    }
    return this.#connection.send(stanza);
  }

  end(ending: Ending): Promise<void> {
    return this.#connection.end(ending);
  }

  ended(by: Ending | undefined): void {
    this.#isEnded = true;
    if (this.account.connection === this) this.account.connection = undefined;
    // A silent connection is still one that the client keeps.
    if (by?.kind !== 'silence') this.account.left(this.#connection);
  }

  closed(): void {
    this.account.left(this.#connection);
  }

  nack(stanza: BinaryNode, code: number): void {
    this.#note(stanza);
    const { id = '', to = '' } = stanza.attrs;
    const t = seconds(this.#deps.plumbing.now());
    void this.send({
      tag: 'ack',
      attrs: { class: 'message', id, from: to, t, error: String(code) },
    });
  }

  async take(stanza: BinaryNode): Promise<boolean> {
    this.#note(stanza);
    const asked = stanza.tag === 'iq' ? `${stanza.attrs['xmlns']} ${childTag(stanza)}` : '';
    if (asked === 'passive active') return this.#activate(stanza);
    if (asked === 'md remove-companion-device') return this.#logOut(stanza);
    for (const handle of this.#deps.handlers) {
      if (await handle(stanza, this)) return true;
    }
    return false;
  }

  #note({ tag, attrs }: BinaryNode): void {
    if (tag !== 'message' || attrs['category'] === 'peer') return;
    this.account.sent(attrs['id'] ?? '', attrs['to'] ?? '');
  }

  async #activate(iq: BinaryNode): Promise<boolean> {
    await this.send(result(iq));
    if (this.account.connection !== this && !this.#isEnded) await this.#deliverQueue();
    return true;
  }

  async #logOut(iq: BinaryNode): Promise<boolean> {
    await this.send(result(iq));
    this.account.unlink();
    await this.end({ kind: 'stream_error', code: 401 });
    return true;
  }

  /** In one go, so that nothing live comes between. */
  async #deliverQueue(): Promise<void> {
    const waiting = [...this.account.queue];
    const count = String(waiting.length);
    const stanzas: BinaryNode[] = [
      ib({ tag: 'edge_routing', attrs: {}, content: [routing()] }),
      ...(waiting.length > 0 ? [ib({ tag: 'offline_preview', attrs: { count } })] : []),
      ...waiting.map((stanza) => ({ ...stanza, attrs: { ...stanza.attrs, offline: '1' } })),
      ...(this.account.withholdsMarker ? [] : [ib({ tag: 'offline', attrs: { count } })]),
    ];
    const sent = stanzas.map((stanza) => this.send(stanza));
    this.account.connection = this;
    await Promise.all(sent);
    await this.#deps.online(this.account);
  }
}

function ib(child: BinaryNode): BinaryNode {
  return { tag: 'ib', attrs: { from: S_WHATSAPP_NET }, content: [child] };
}

function routing(): BinaryNode {
  return { tag: 'routing_info', attrs: {}, content: ROUTING_INFO };
}

function childTag(stanza: BinaryNode): string | undefined {
  return getAllBinaryNodeChildren(stanza)[0]?.tag;
}
