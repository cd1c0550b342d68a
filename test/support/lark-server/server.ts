// A strict Lark on loopback: the REST API as far as we use it, and the long connection its events come
// over. An event stays until its receipt is good; unknown calls and bad frames are violations.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { readCard } from './cards.ts';
import type {
  LarkCall,
  LarkChat,
  LarkFault,
  LarkMessage,
  LarkPerson,
  LarkServer,
  Saying,
} from './contract.ts';
import { CONTROL, DATA, decodeFrame, encodeFrame, eventFrames } from './frames.ts';
import { answerRest, type RestContext } from './rest.ts';
import { World } from './world.ts';

const SERVICE = 7;

export async function startLarkServer(): Promise<LarkServer> {
  const server = new Server();
  await server.listen();
  return server;
}

type Waiting = { readonly id: string; readonly body: string; sentOn: WebSocket | undefined };

class Server implements LarkServer {
  readonly appId = 'cli_0123456789abcdef';
  readonly appSecret = 'lark-app-secret-7Qx2';
  readonly botId = 'ou_bot00001';
  readonly violations: string[] = [];
  readonly calls: LarkCall[] = [];
  readonly secrets: string[] = [this.appSecret];
  readonly acknowledged: string[] = [];
  refusals = 0;
  isOpen = true;
  chunks = 1;
  isHasty = false;
  pingSecs = 120;
  isDeaf = false;
  pings = 0;
  readonly #world = new World();
  readonly #tokens = new Set<string>();
  readonly #faults: { readonly fault: LarkFault; left: number }[] = [];
  readonly #waiting = new Map<string, Waiting>();
  readonly #receipts = new Map<string, unknown>();
  readonly #sockets = new Set<WebSocket>();
  /** Those that have pinged. */
  readonly #ready = new WeakSet<WebSocket>();
  readonly #listeners = new Set<() => void>();
  readonly #http = createServer((request, response) => void this.#serve(request, response));
  readonly #ws = new WebSocketServer({ noServer: true });

  async listen() {
    this.#http.on('upgrade', (request, socket, head) => {
      if (!this.isOpen || !request.url?.startsWith('/ws?')) return socket.destroy();
      this.#ws.handleUpgrade(request, socket, head, (connection) => this.#connected(connection));
    });
    this.#http.listen(0, '127.0.0.1');
    await once(this.#http, 'listening');
  }

  get url() {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  get connections() {
    return this.#sockets.size;
  }

  person = (name: string) => this.#world.person(name);
  direct = (person: LarkPerson) => this.#world.direct(person);
  group = (title: string, kind: 'group' | 'topic' = 'group') => this.#world.chat(kind, title);
  store = (content: Buffer) => this.#world.file('file_', 'sent', content);

  say(person: LarkPerson, text: string, saying: Saying = {}): string {
    const chat = this.#world.chats.get(saying.chat ?? this.direct(person).id);
    if (chat === undefined) throw new Error('no such chat');
    const {
      mentionsBot = false,
      mentions: named = [],
      type = 'text',
      content,
      senderType,
      ...rest
    } = saying;
    const all = [
      ...(mentionsBot ? [{ openId: this.botId, unionId: 'on_bot', name: 'Nano' }] : []),
      ...named,
    ];
    const mentions = all.map(({ openId, unionId, name }, index) => ({
      key: `@_user_${index + 1}`,
      id: { open_id: openId, union_id: unionId },
      name,
    }));
    const message = this.#world.add({
      ...rest,
      ...{ chat: chat.id, from: person.openId, type, mentions },
      content: JSON.stringify(content ?? { text }),
    });
    this.#told(message, person, chat, senderType ?? 'user');
    return message.id;
  }

  #told(message: LarkMessage, { openId, unionId }: LarkPerson, chat: LarkChat, senderType: string) {
    this.event('im.message.receive_v1', {
      sender: { sender_id: { open_id: openId, union_id: unionId }, sender_type: senderType },
      message: {
        message_id: message.id,
        ...(message.root === undefined ? {} : { root_id: message.root }),
        ...(message.parent === undefined ? {} : { parent_id: message.parent }),
        ...(message.thread === undefined ? {} : { thread_id: message.thread }),
        create_time: String(message.createdAt),
        chat_id: chat.id,
        chat_type: chat.kind === 'p2p' ? 'p2p' : 'group',
        message_type: message.type,
        content: message.content,
        mentions: message.mentions,
      },
    });
  }

  event(type: string, event: unknown, header: object = {}): string {
    const id = this.#world.id('ev');
    const head = {
      event_id: id,
      event_type: type,
      create_time: String(Date.now()),
      app_id: this.appId,
    };
    const body = JSON.stringify({ schema: '2.0', header: { ...head, ...header }, event });
    this.#waiting.set(id, { id, body, sentOn: undefined });
    this.#deliver();
    return id;
  }

  async press(person: LarkPerson, chat: LarkChat, label: string): Promise<unknown> {
    const found = this.seen(chat)
      .toReversed()
      .flatMap((message) =>
        message.type === 'interactive'
          ? readCard(message.content).buttons.map((button) => ({ message, button }))
          : [],
      )
      .find(({ button }) => button.label === label);
    if (found === undefined) throw new Error(`nothing to press is called ${label}`);
    const id = this.event('card.action.trigger', {
      operator: { open_id: person.openId, union_id: person.unionId },
      token: 'c-token',
      action: { value: found.button.value, tag: 'button' },
      host: 'im_message',
      context: { open_message_id: found.message.id, open_chat_id: chat.id },
    });
    return this.until(() => this.#receipts.get(id));
  }

  react(person: LarkPerson, message: string, type: string, isTakenBack = false): void {
    const change = isTakenBack ? 'deleted' : 'created';
    this.event(`im.message.reaction.${change}_v1`, {
      message_id: message,
      reaction_type: { emoji_type: type },
      operator_type: 'user',
      user_id: { open_id: person.openId, union_id: person.unionId },
    });
  }

  recall(id: string): void {
    const message = this.message(id);
    message.isDeleted = true;
    const recalled = { message_id: id, chat_id: message.chat, recall_type: 'message_owner' };
    this.event('im.message.recalled_v1', recalled);
  }

  message(id: string): LarkMessage {
    const message = this.#world.messages.get(id);
    if (message === undefined) throw new Error(`no message ${id}`);
    return message;
  }

  seen(chat: LarkChat): readonly LarkMessage[] {
    return [...this.#world.messages.values()].filter(
      (message) => message.chat === chat.id && message.from === 'bot' && !message.isDeleted,
    );
  }

  textOf(message: LarkMessage): string {
    return message.type === 'interactive' ? readCard(message.content).text : '';
  }

  fileOf(message: LarkMessage) {
    const content = JSON.parse(message.content) as Record<string, string>;
    return this.#world.files.get(content['image_key'] ?? content['file_key'] ?? '');
  }

  fault(fault: LarkFault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  redeliver(): void {
    for (const waiting of this.#waiting.values()) waiting.sentOn = undefined;
    this.#deliver();
  }

  raw(bytes: Uint8Array): void {
    for (const socket of this.#sockets) socket.send(bytes);
  }

  revokeTokens(): void {
    this.#tokens.clear();
  }

  until<T>(look: () => T | undefined | false, timeoutMs = 45_000): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#listeners.delete(check);
        reject(new Error(`Lark saw nothing of the kind within ${timeoutMs} ms`));
      }, timeoutMs);
      const check = () => {
        const value = look();
        if (value === undefined || value === false) return;
        clearTimeout(timer);
        this.#listeners.delete(check);
        resolve(value);
      };
      this.#listeners.add(check);
      check();
    });
  }

  async [Symbol.asyncDispose]() {
    this.dropConnections();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #changed() {
    for (const listener of [...this.#listeners]) listener();
  }

  #connected(socket: WebSocket) {
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      for (const waiting of this.#waiting.values()) {
        if (waiting.sentOn === socket) waiting.sentOn = undefined;
      }
      this.#changed();
    });
    socket.on('message', (bytes: Buffer) => this.#framed(socket, bytes));
    if (this.isHasty) this.#deliver();
    this.#changed();
  }

  #deliver() {
    const socket = [...this.#sockets].at(-1);
    if (socket === undefined || !(this.isHasty || this.#ready.has(socket))) return;
    for (const waiting of this.#waiting.values()) {
      if (waiting.sentOn !== undefined) continue;
      waiting.sentOn = socket;
      for (const frame of eventFrames(SERVICE, waiting.id, waiting.body, this.chunks)) {
        socket.send(encodeFrame(frame));
      }
    }
  }

  #framed(socket: WebSocket, bytes: Buffer) {
    const { service, method, headers, payload } = decodeFrame(bytes);
    if (service !== SERVICE) this.violations.push(`a frame for service ${service}`);
    if (method === CONTROL && headers['type'] === 'ping') {
      this.pings += 1;
      this.#changed();
      if (this.isDeaf) return;
      const pong = {
        PingInterval: this.pingSecs,
        ReconnectCount: -1,
        ReconnectInterval: 0,
        ReconnectNonce: 0,
      };
      const answer = { ...{ service, method }, headers: { type: 'pong' } };
      socket.send(encodeFrame({ ...answer, payload: Buffer.from(JSON.stringify(pong)) }));
      this.#ready.add(socket);
      this.#deliver();
    } else if (method === DATA && headers['message_id'] !== undefined) {
      this.#receipt(headers['message_id'], JSON.parse(payload.toString()));
    } else {
      this.violations.push('a frame that is neither ping nor receipt');
    }
    this.#changed();
  }

  #receipt(id: string, { code, data }: { readonly code: number; readonly data?: string }) {
    if (code !== 200) {
      this.refusals += 1;
      return;
    }
    this.#waiting.delete(id);
    this.acknowledged.push(id);
    const shown = data === undefined ? {} : JSON.parse(Buffer.from(data, 'base64').toString());
    this.#receipts.set(id, shown);
  }

  async #serve(request: IncomingMessage, response: ServerResponse) {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const url = new URL(request.url ?? '/', this.url);
    const path = url.pathname.replace(/^\/(?:open-apis|callback\/ws)\//, '');
    const method = request.method ?? '';
    const fault = this.#faultFor(method, path);
    if (fault?.kind === 'drop' && fault.stage === 'before') return request.socket.destroy();
    if (fault?.kind === 'error') {
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      return response.end(JSON.stringify({ code: fault.code, msg: 'by script' }));
    }
    const body = Buffer.concat(pieces);
    const answer =
      path === 'endpoint'
        ? this.#endpoint(body)
        : answerRest(
            { method, path, query: url.searchParams, headers: request.headers, body },
            this.#context(),
          );
    this.#noteCall(method, path, body);
    if (fault?.kind === 'drop') return request.socket.destroy();
    if (fault?.kind === 'hang') return;
    const isFile = Buffer.isBuffer(answer.body);
    const type = isFile ? 'application/octet-stream' : 'application/json';
    const disposition = isFile ? { 'content-disposition': 'attachment; filename="sent"' } : {};
    response.writeHead(answer.status, { 'content-type': type, ...disposition });
    response.end(isFile ? answer.body : JSON.stringify(answer.body));
  }

  #noteCall(method: string, path: string, body: Buffer) {
    const isJson = body.toString('utf8', 0, 1) === '{';
    this.calls.push({ method, path, body: isJson ? JSON.parse(body.toString()) : undefined });
    this.#changed();
  }

  #endpoint(body: Buffer) {
    const { AppID: id, AppSecret: secret } = JSON.parse(body.toString());
    if (id !== this.appId || secret !== this.appSecret) {
      return { status: 200, body: { code: 514, msg: 'auth failed' } };
    }
    const ticket = this.#world.id('ticket-');
    this.secrets.push(ticket);
    const address = this.url.replace('http:', 'ws:');
    const data = {
      URL: `${address}/ws?device_id=1&service_id=${SERVICE}&ticket=${ticket}`,
      ClientConfig: {
        PingInterval: this.pingSecs,
        ReconnectCount: -1,
        ReconnectInterval: 0,
        ReconnectNonce: 0,
      },
    };
    return { status: 200, body: { code: 0, msg: '', data } };
  }

  #context(): RestContext {
    const { appId, appSecret, botId, secrets } = this;
    const violate = (text: string) => void this.violations.push(text);
    return {
      ...{ appId, appSecret, botId, secrets, violate },
      world: this.#world,
      tokens: this.#tokens,
    };
  }

  #faultFor(method: string, path: string): LarkFault['effect'] | undefined {
    const armed = this.#faults.find(
      ({ fault, left }) =>
        left > 0 &&
        fault.path.test(path) &&
        (fault.method === undefined || fault.method === method),
    );
    if (armed === undefined) return undefined;
    armed.left -= 1;
    return armed.fault.effect;
  }
}
