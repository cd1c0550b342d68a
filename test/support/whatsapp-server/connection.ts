// One websocket of a client: handshake, frames, stanzas in order both ways through the faults, and
// its end. What the stanzas mean is up to the session that the handshake began.

import { setTimeout as pause } from 'node:timers/promises';
import { deflateSync } from 'node:zlib';
import { type BinaryNode, decodeBinaryNode, encodeBinaryNode } from '@whiskeysockets/baileys';
import type { WebSocket } from 'ws';
import type { NoiseIdentity } from './certificate.ts';
import type { Ending } from './contract.ts';
import { farewell, socketFate } from './endings.ts';
import type { FaultScript } from './faults.ts';
import { FrameReader, frame } from './frames.ts';
import { type ClientHello, NoiseResponder } from './noise-responder.ts';

// The client takes its transport keys into use only after its last handshake message left.
const KEY_CHANGE_PAUSE_MS = 10;
const COMPRESSED = 2;

/** What a connection turned out to be: a registration, or a login. */
export interface Session {
  /** @returns false where nobody knows the stanza */
  take(stanza: BinaryNode): Promise<boolean>;
  /** The message is refused by a fault. */
  nack(stanza: BinaryNode, code: number): void;
  /** The server ended it (`by`), or the socket closed; comes once. */
  ended(by: Ending | undefined): void;
  /** The socket is gone; comes once, after `ended`. */
  closed(): void;
}

export type ConnectionDeps = {
  readonly identity: NoiseIdentity;
  readonly faults: FaultScript;
  /** The handshake is done. */
  begin(connection: Connection, hello: ClientHello): Session;
  unhandled(stanza: BinaryNode): void;
  violation(text: string): void;
};

export class Connection {
  readonly #socket: WebSocket;
  readonly #deps: ConnectionDeps;
  readonly #reader = new FrameReader();
  readonly #noise: NoiseResponder;
  #phase: 'hello' | 'finish' | 'stanzas' = 'hello';
  #session: Session | undefined;
  #isEnded = false;
  #work: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, deps: ConnectionDeps) {
    this.#socket = socket;
    this.#deps = deps;
    this.#noise = new NoiseResponder(deps.identity);
    socket.on('message', (data) => {
      if (data instanceof Buffer) this.#enqueue(() => this.#read(data));
      else this.#breakOff(new Error('a message in parts'));
    });
    // A reset connection is an ordinary end; `close` follows.
    socket.on('error', () => undefined);
    // Behind the jobs under way: what came before the close still counts.
    socket.on('close', () => {
      this.#work = this.#work.then(() => {
        this.#end(undefined);
        this.#session?.closed();
      });
    });
  }

  /** Passes the faults; resolves when the bytes left, or at once where they never will. */
  send(stanza: BinaryNode): Promise<void> {
    const sent: Promise<void>[] = [];
    this.#deps.faults.pass('down', stanza, {
      on: (passed, frame) => void sent.push(this.#write(passed, frame)),
      nack: () => undefined,
    });
    return Promise.all(sent).then(() => undefined);
  }

  async end(ending: Ending): Promise<void> {
    if (this.#isEnded) return;
    const last = farewell(ending);
    if (last !== undefined) await this.#write(last);
    this.#end(ending);
    const fate = socketFate(ending);
    if (fate === 'close') this.#socket.close();
    if (fate === 'drop') this.#socket.terminate();
  }

  /** Without a word, as when the server's process dies. */
  cut(): void {
    this.#end(undefined);
    this.#socket.terminate();
  }

  #end(by: Ending | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#session?.ended(by);
  }

  #enqueue(job: () => Promise<void> | void): void {
    this.#work = this.#work.then(async () => {
      if (this.#isEnded) return;
      try {
        await job();
      } catch (error) {
        this.#breakOff(error);
      }
    });
  }

  #breakOff(error: unknown): void {
    this.#deps.violation(error instanceof Error ? (error.stack ?? error.message) : String(error));
    this.cut();
  }

  async #read(bytes: Buffer): Promise<void> {
    for (const body of this.#reader.push(bytes)) {
      if (this.#phase === 'hello') {
        void this.#transmit(this.#noise.hello(body));
        this.#phase = 'finish';
      } else if (this.#phase === 'finish') {
        const hello = this.#noise.finish(body);
        this.#phase = 'stanzas';
        await pause(KEY_CHANGE_PAUSE_MS);
        if (!this.#isEnded) this.#session = this.#deps.begin(this, hello);
      } else {
        await this.#pass(await decodeBinaryNode(this.#noise.open(body)));
      }
    }
  }

  async #pass(stanza: BinaryNode): Promise<void> {
    const passed: BinaryNode[] = [];
    let isLater = false;
    this.#deps.faults.pass('up', stanza, {
      on: (next) => {
        if (isLater) this.#enqueue(() => this.#take(next));
        else passed.push(next);
      },
      nack: (code) => this.#session?.nack(stanza, code),
    });
    isLater = true;
    for (const next of passed) await this.#take(next);
  }

  async #take(stanza: BinaryNode): Promise<void> {
    const isKnown = await this.#session?.take(stanza);
    if (isKnown === false) this.#deps.unhandled(stanza);
  }

  async #write(stanza: BinaryNode, frame?: 'compressed'): Promise<void> {
    if (this.#isEnded) return;
    const plain = encodeBinaryNode(stanza);
    await this.#transmit(this.#noise.seal(frame === undefined ? plain : compressed(plain)));
  }

  #transmit(body: Uint8Array): Promise<void> {
    // A socket that is closing takes nothing more; the client's end is told by `close`.
    return new Promise((resolve) => this.#socket.send(frame(body), () => resolve()));
  }
}

/** Of an encoded stanza the first byte says how it is packed. */
function compressed(plain: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([COMPRESSED]), deflateSync(plain.subarray(1))]);
}
