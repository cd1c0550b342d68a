// A strict Telegram Bot API server on 127.0.0.1: it keeps Telegram's rules, fails by script, and
// shows each chat as the person in it sees it. It survives any number of gateway restarts. An
// unknown method or parameter is a violation, which every test checks at its end.

import { buttonRows, callbackQuery } from './bot-api-buttons.ts';
import type { BotApi, BotApiOptions, SayOptions, SentFile } from './bot-api-contract.ts';
import { type ArmedFault, type Call, type FaultRule, FaultScript } from './bot-api-faults.ts';
import { FILE_METHODS, Files, fileFields } from './bot-api-files.ts';
import {
  botJoined,
  chatObject,
  entitiesOf,
  type GroupInfo,
  topicFields,
} from './bot-api-groups.ts';
import { HttpFront } from './bot-api-http.ts';
import { type Chat, Ledger, type Person, type SeenMessage, type Update } from './bot-api-ledger.ts';
import { type Answer, METHODS, type Payload, type World } from './bot-api-methods.ts';
import { POLL_PARAMS, Polls } from './bot-api-polls.ts';

export type { BotApi, BotApiOptions, SayOptions, SentFile } from './bot-api-contract.ts';

const DEFAULT_TOKEN = '4242:simulated-token-of-forty-two-characters';
const DEFAULT_BOT: Person = {
  id: 4242,
  first_name: 'Nano',
  username: 'nano_sim_bot',
  is_bot: true,
};
/** Between two looks while nothing happens here. */
const LOOK_MS = 20;
const WAIT_MS = 45_000;
/** Telegram's bot behind which hidden admins and the server itself stand. */
const ANONYMOUS: Person = { id: 1087968824, first_name: 'Group', is_bot: true };

export async function startBotApi(options: BotApiOptions = {}): Promise<BotApi> {
  const simulator = new Simulator(options);
  await simulator.listen(options.port ?? 0);
  return simulator;
}

class Simulator implements BotApi {
  readonly token: string;
  readonly bot: Person;
  readonly calls: Call[] = [];
  readonly violations: string[] = [];
  readonly commands: unknown[] = [];
  readonly pressed = new Set<string>();
  readonly toasts: string[] = [];
  readonly #undeletable = new Set<number>();
  readonly #files = new Files();
  readonly #ledger: Ledger;
  readonly #faults = new FaultScript();
  readonly #polls: Polls;
  readonly #world: World;
  readonly #front: HttpFront;
  readonly #handedOut = new Map<number, number>();
  #isRevoked = false;

  constructor(options: BotApiOptions) {
    this.token = options.token ?? DEFAULT_TOKEN;
    this.bot = options.bot ?? DEFAULT_BOT;
    this.#ledger = new Ledger(options.onMessage, options.chats);
    this.#polls = new Polls(this.#ledger, options.maxPollMs ?? Number.POSITIVE_INFINITY);
    this.#world = {
      ledger: this.#ledger,
      bot: this.bot,
      commands: this.commands,
      webhook: '',
      perChatPerSecond: options.perChatPerSecond ?? Number.POSITIVE_INFINITY,
      recentSends: new Map(),
      pressed: this.pressed,
      toasts: this.toasts,
      unmodified: 0,
      undeletable: this.#undeletable,
      files: this.#files,
      violate: (text) => void this.violations.push(text),
    };
    this.#front = new HttpFront({
      faults: this.#faults,
      onCall: (call) => {
        this.calls.push(call);
        this.#ledger.changed();
      },
      download: (token, path) => (token === this.token ? this.#files.download(path) : undefined),
      answer: ({ token, method, payload, gone }) =>
        token === this.token && !this.#isRevoked
          ? this.#answer(method, payload, gone)
          : { ok: false, error_code: 401, description: 'Unauthorized' },
    });
  }

  get port(): number {
    return this.#front.port;
  }

  get apiRoot(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get unmodified(): number {
    return this.#world.unmodified;
  }

  get unconfirmed(): readonly Update[] {
    return this.#ledger.waiting(Number.POSITIVE_INFINITY);
  }

  listen(port: number): Promise<void> {
    return this.#front.listen(port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#front.close();
  }

  say(user: number | Person, text: string, options: SayOptions = {}): Update {
    const from = typeof user === 'number' ? { id: user, first_name: `Person ${user}` } : user;
    const chatId = options.chatId ?? from.id;
    const { replyTo } = options;
    const body = { text, entities: [], source: text, parseMode: undefined };
    const chat = this.#ledger.open(chatId);
    const { thread } = options;
    const place = { replyTo: replyTo?.id, thread };
    const seen = this.#ledger.add(chatId, { ...body, from: 'person', ...place });
    const entities = entitiesOf(text);
    const date = options.date ?? Math.floor(Date.now() / 1000);
    const message = {
      message_id: seen.id,
      from: { is_bot: false, ...from },
      chat: chatObject(chat, from),
      date,
      text,
      ...(entities.length === 0 ? {} : { entities }),
      ...(thread === undefined ? {} : topicFields(chat, thread, replyTo !== undefined)),
      ...(replyTo === undefined
        ? {}
        : { reply_to_message: this.#asMessage(replyTo, from, chatId) }),
      ...options.extra,
    };
    return this.offer({ message });
  }

  sendFile(user: number | Person, file: SentFile, options: SayOptions = {}): Update {
    const extra = { ...fileFields(file, this.#files), text: undefined, ...options.extra };
    return this.say(user, file.caption ?? '', { ...options, extra });
  }

  sendAlbum(user: number | Person, files: readonly SentFile[], options: SayOptions = {}): Update[] {
    const extra = { media_group_id: `${Date.now()}${files.length}`, ...options.extra };
    return files.map((file) => this.sendFile(user, file, { ...options, extra }));
  }

  expirePaths(): void {
    this.#files.expirePaths();
  }

  edit(update: Update, text: string): Update {
    const message = update['message'] as { message_id: number; chat: { id: number } };
    const { message_id, chat } = message;
    this.#ledger.change(chat.id, message_id, { text, source: text, entities: [] });
    const edit_date = Math.floor(Date.now() / 1000);
    const entities = entitiesOf(text);
    return this.offer({ edited_message: { ...message, text, entities, edit_date } });
  }

  react(user: number | Person, chatId: number, id: number, emoji: string | undefined): void {
    // Telegram keeps reactions from a bot that does not ask for them.
    const asked = this.calls.findLast(({ method }) => method === 'getUpdates')?.payload;
    const kinds = asked?.['allowed_updates'];
    if (!Array.isArray(kinds) || !kinds.includes('message_reaction')) return;
    const from = typeof user === 'number' ? { id: user, first_name: `Person ${user}` } : user;
    this.offer({
      message_reaction: {
        chat: chatObject(this.chat(chatId), from),
        message_id: id,
        user: { is_bot: false, ...from },
        date: Math.floor(Date.now() / 1000),
        old_reaction: [],
        new_reaction: emoji === undefined ? [] : [{ type: 'emoji', emoji }],
      },
    });
  }

  age(id: number): void {
    this.#undeletable.add(id);
  }

  press(
    user: number | Person,
    chatId: number,
    label: string,
    { isOld = false }: { readonly isOld?: boolean } = {},
  ): Update {
    const from = typeof user === 'number' ? { id: user, first_name: `Person ${user}` } : user;
    const { seen, button } = buttonRows(this.chat(chatId), label);
    const query = callbackQuery(this.#asMessage(seen, from, chatId), { from, seen, button, isOld });
    this.pressed.add(query.id);
    return this.offer({ callback_query: query });
  }

  #asMessage(seen: SeenMessage, person: Person, chatId: number) {
    return {
      message_id: seen.id,
      from: seen.from === 'bot' ? { ...this.bot, is_bot: true } : { is_bot: false, ...person },
      chat: chatObject(this.#ledger.open(chatId), person),
      date: Math.floor(seen.at / 1000),
      text: seen.text,
    };
  }

  offer(update: Readonly<Record<string, unknown>>): Update {
    const complete: Update = { update_id: this.#ledger.takeUpdateId(), ...update };
    this.#ledger.offer(complete);
    return complete;
  }

  group(id: number, options: Partial<GroupInfo> = {}): Chat {
    const chat = this.#ledger.open(id);
    chat.group = { type: 'supergroup', title: 'Plans', isForum: false, ...options };
    return chat;
  }

  addBot(chatId: number, by: Person): Update {
    return this.offer(botJoined(this.chat(chatId), this.bot, by));
  }

  topic(chatId: number): number {
    const thread = this.#ledger.takeMessageId();
    this.#ledger.open(chatId).topics.push(thread);
    return thread;
  }

  removeTopic(chatId: number, thread: number): void {
    const chat = this.#ledger.open(chatId);
    chat.topics = chat.topics.filter((id) => id !== thread);
  }

  migrate(chatId: number, to: number, isTold: boolean): void {
    const old = this.#ledger.open(chatId);
    const fresh = this.group(to, { ...old.group, type: 'supergroup' });
    old.migratedTo = to;
    if (!isTold) return;
    const date = Math.floor(Date.now() / 1000);
    const sign = () => ({ message_id: this.#ledger.takeMessageId(), date, from: ANONYMOUS });
    this.offer({ message: { ...sign(), chat: chatObject(old), migrate_to_chat_id: to } });
    this.offer({ message: { ...sign(), chat: chatObject(fresh), migrate_from_chat_id: chatId } });
  }

  chat(id: number): Chat {
    return this.#ledger.open(id);
  }

  chats(): readonly Chat[] {
    return this.#ledger.chats();
  }

  nextMessage(chatId: number, timeoutMs = WAIT_MS): Promise<SeenMessage> {
    return this.waitFor(() => {
      const last = this.#handedOut.get(chatId) ?? 0;
      const next = this.chat(chatId).messages.find(({ id, from }) => from === 'bot' && id > last);
      if (next !== undefined) this.#handedOut.set(chatId, next.id);
      return next;
    }, timeoutMs);
  }

  waitFor<T>(look: () => T | undefined | false, timeoutMs = WAIT_MS): Promise<T> {
    const first = look();
    if (first !== undefined && first !== false) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      const stopped = new DisposableStack();
      const stop = () => stopped.dispose();
      const timer = setTimeout(() => {
        stop();
        const newest = this.#ledger.chats().map(({ messages }) => messages.at(-1)?.text ?? '');
        const seen = `the newest texts are ${JSON.stringify(newest.slice(0, 5))}`;
        reject(
          new Error(
            `the simulated Bot API saw nothing of the kind within ${timeoutMs} ms; ${seen}`,
          ),
        );
      }, timeoutMs);
      const lookAgain = () => {
        const value = look();
        if (value === undefined || value === false) return;
        stop();
        resolve(value);
      };
      stopped.defer(() => clearTimeout(timer));
      stopped.use(this.#ledger.onChange(lookAgain));
      // A test may look at more than this chat platform, such as what the model was asked.
      const looking = setInterval(lookAgain, LOOK_MS);
      stopped.defer(() => clearInterval(looking));
    });
  }

  fail(rule: FaultRule): ArmedFault {
    return this.#faults.arm(rule);
  }

  setWebhook(url: string): void {
    this.#world.webhook = url;
  }

  block(chatId: number): void {
    this.#ledger.open(chatId).isBlocked = true;
  }

  unblock(chatId: number): void {
    this.#ledger.open(chatId).isBlocked = false;
  }

  jumpTo(updateId: number): void {
    this.#ledger.jumpTo(updateId);
  }

  revoke(): void {
    this.#isRevoked = true;
  }

  erase(chatId: number, id: number): void {
    this.#ledger.remove(chatId, id);
  }

  async #answer(method: string, payload: Payload, gone: AbortSignal): Promise<Answer> {
    const entry = METHODS[method] ?? FILE_METHODS[method];
    const params = method === 'getUpdates' ? POLL_PARAMS : entry?.params;
    if (params === undefined) {
      this.violations.push(`unknown method ${method}`);
      return { ok: false, error_code: 404, description: 'Not Found: method not found' };
    }
    for (const name of Object.keys(payload)) {
      if (!params.includes(name)) this.violations.push(`unknown parameter ${method}.${name}`);
    }
    if (entry !== undefined) return entry.run(payload, this.#world);
    return this.#polls.poll(payload, this.#world.webhook, gone);
  }
}
