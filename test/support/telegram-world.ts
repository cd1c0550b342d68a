// The whole program as a child process between a strict Telegram and a scripted model server, and what
// a test says and hears there. Who the people are and what the model does is the test's own.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import { type BotApi, startBotApi } from './bot-api.ts';
import type { Person, SeenMessage } from './bot-api-ledger.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from './gateway-process.ts';
import { type LlmServer, type Responder, startLlmServer } from './llm-server.ts';
import type { MemoryLimit } from './memory-limit.ts';
import { hasNone, type QueueState } from './queue-states.ts';

/** Below the limit of one test, so that what was not said is what fails. */
const HEAR_MS = 45_000;
/** The key of the model server, as the provider `openai`. */
export const MODEL_KEY = 'sk-world-of-one-test';

type TelegramInput = NonNullable<NonNullable<ConfigInput['channels']>['telegram']>;

export type TelegramWorldOptions = {
  readonly respond?: Responder;
  /**
   * Further fields of the channel; its allow list is empty by default. Drafts are off unless `streaming` is
   * set: on a busy machine one would be taken for the answer.
   */
  readonly channel?: TelegramInput;
  /** Takes the place of the ordinary sections; providers and channels are further ones. */
  readonly config?: ConfigInput;
  /** Files of the workspace by path, there before the first start. */
  readonly files?: Readonly<Record<string, string>>;
  /** Who is let in, by their id, once the program runs. */
  readonly pair?: Readonly<Record<number, 'owner' | 'trusted' | 'guest'>>;
  /** What each process of it has in its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its processes are held to it. */
  readonly memory?: MemoryLimit;
};

/** Closing it fails where the program broke Telegram's rules. */
export interface TelegramWorld extends AsyncDisposable {
  readonly telegram: BotApi;
  readonly model: LlmServer;
  readonly home: TestHome;
  /** The process of now. */
  readonly gateway: GatewayProcess;
  /** As `config` at the beginning, in place of it; counts from the next start. */
  configure(config: ConfigInput): Promise<void>;
  /** After `gateway.kill()`. */
  start(): Promise<void>;
  /** By kill -9. */
  restart(): Promise<void>;
  /** Until nothing is in these states. */
  hasNo(...states: readonly QueueState[]): Promise<void>;
  /** A command of the program, beside the gateway; what it printed. Fails where the command fails. */
  nanobot(...args: readonly string[]): Promise<string>;
  /** Where a file of the workspace is. */
  file(path: string): string;
  /** What the bot has said in the chat, as it stands there now. */
  bot(chat: number): readonly SeenMessage[];
  texts(chat: number): readonly string[];
  /** The first like this, after so many. */
  hears(chat: number, like: RegExp, after?: number): Promise<SeenMessage>;
  /** Presses in the owner's own chat; the message that says this then and did not before. */
  presses(owner: number, label: string, like: RegExp, by?: number | Person): Promise<SeenMessage>;
  /** What comes in the person's own chat, like this, after they said that. */
  asks(person: number | Person, words: string, like: RegExp): Promise<string>;
  /** What the model was asked last, as JSON. */
  lastBody(): string;
}

export async function startTelegramWorld(options: TelegramWorldOptions): Promise<TelegramWorld> {
  await using opened = new AsyncDisposableStack();
  const { respond, channel = {}, config = {}, files = {}, pair = {}, env = {}, memory } = options;
  const telegram = opened.use(await startBotApi());
  const model = opened.use(await startLlmServer(respond === undefined ? {} : { respond }));
  opened.defer(() => {
    if (telegram.violations.length > 0) throw new Error(telegram.violations.join('\n'));
  });
  const whole = (sections: ConfigInput) => wholeConfig(sections, { channel, telegram, model });
  const home = opened.use(await makeTestHome(whole(config)));
  const file = (path: string) => join(home.path, 'workspace', path);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(file(path)), { recursive: true });
    await writeFile(file(path), text);
  }
  let gateway = await home.start(env, memory);
  const nanobot = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await runNanobot(args, { home: home.path });
    if (code !== 0) throw new Error(`nanobot ${args.join(' ')} left with ${code}:\n${stderr}`);
    return stdout;
  };
  for (const [id, role] of Object.entries(pair)) await admit(gateway, id, role);
  const stack = opened.move();
  const start = async () => {
    gateway = await home.start(env, memory);
  };
  return {
    telegram,
    model,
    home,
    get gateway() {
      return gateway;
    },
    configure: (sections) => home.writeConfig({ ...whole(sections) }),
    start,
    async restart() {
      await gateway.kill();
      await start();
    },
    hasNo: (...states) => hasNone(gateway, ...states),
    nanobot,
    file,
    ...ears(telegram),
    lastBody: () => JSON.stringify(model.requests.at(-1)?.body),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Over its API, which is sooner than a program that does it. */
async function admit({ address, credentials }: GatewayProcess, userId: string, role: string) {
  const { ok, status } = await fetch(`${address}/api/v1/people/admissions`, {
    method: 'POST',
    headers: { ...credentials, 'content-type': 'application/json' },
    body: JSON.stringify({ channel: 'telegram', userId, role }),
  });
  if (!ok) throw new Error(`the gateway refused to let ${userId} in: ${status}`);
}

type Around = {
  readonly channel: TelegramInput;
  readonly telegram: BotApi;
  readonly model: LlmServer;
};

function wholeConfig(
  sections: ConfigInput,
  { channel, telegram: { token, apiRoot }, model }: Around,
): ConfigInput {
  return {
    agents: { defaults: { model: 'openai/sim-1' } },
    gateway: { port: 0 },
    coalesce: { quietMs: 0, continuationMs: 0 },
    ...sections,
    providers: {
      openai: { apiKey: MODEL_KEY, apiBase: model.openaiBase },
      ...sections.providers,
    },
    channels: {
      ...sections.channels,
      telegram: { enabled: true, token, apiRoot, streaming: false, ...channel },
    },
  };
}

function ears(
  telegram: BotApi,
): Pick<TelegramWorld, 'bot' | 'texts' | 'hears' | 'asks' | 'presses'> {
  const bot = (chat: number) => telegram.chat(chat).messages.filter(({ from }) => from === 'bot');
  const hears = (chat: number, like: RegExp, after = 0) => {
    const isLike = ({ text }: SeenMessage) => like.test(text);
    return telegram.waitFor(() => bot(chat).slice(after).find(isLike), HEAR_MS);
  };
  return {
    bot,
    texts: (chat) => bot(chat).map(({ text }) => text),
    hears,
    presses(owner, label, like, by = owner) {
      const before = new Map(bot(owner).map(({ id, text }) => [id, text]));
      telegram.press(by, owner, label);
      const isNew = ({ id, text }: SeenMessage) => like.test(text) && before.get(id) !== text;
      return telegram.waitFor(() => bot(owner).find(isNew), HEAR_MS);
    },
    async asks(person, words, like) {
      const chat = typeof person === 'number' ? person : person.id;
      const before = bot(chat).length;
      telegram.say(person, words);
      return (await hears(chat, like, before)).text;
    },
  };
}
