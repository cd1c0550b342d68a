// Several processes of the real program on one PostgreSQL and one shared folder, each in a home of
// its own, to be killed, stopped and continued at any moment.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import type { BotApi } from './bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from './gateway-process.ts';
import type { LlmServer } from './llm-server.ts';

export type Role = 'all' | 'channels' | 'workers';

export interface Member {
  readonly role: Role;
  readonly home: TestHome;
  /** Undefined while it is dead. */
  readonly process: GatewayProcess | undefined;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  freeze(): void;
  thaw(): void;
  /** Ctrl+C. */
  stop(): Promise<number | null>;
}

export interface ProcessCluster extends AsyncDisposable {
  readonly folder: string;
  readonly members: readonly Member[];
  /** @param own further variables of its environment */
  add(role: Role, extra?: ConfigInput, own?: Readonly<Record<string, string>>): Promise<Member>;
  /** A command in the home of the first one. */
  nanobot(...args: readonly string[]): Promise<string>;
}

/** Anybody may write by Telegram, and each message is answered at once, in a turn of its own. */
export const answersEach = (telegram: BotApi, model: LlmServer): ConfigInput => ({
  agents: { defaults: { model: 'openai/sim-1' } },
  coalesce: { quietMs: 0, continuationMs: 0 },
  queue: { mode: 'followup' },
  limits: { messages: { perMinute: 0, perDay: 0 } },
  providers: { openai: { apiKey: 'sk-processes', apiBase: model.openaiBase } },
  channels: {
    telegram: {
      ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot },
      ...{ allowFrom: ['*'], streaming: false },
    },
  },
});

/**
 * @param url of the database
 * @param variables further ones of the environment of each process
 */
export async function makeProcessCluster(
  url: string,
  config: (folder: string) => ConfigInput,
  variables: Readonly<Record<string, string>> = {},
): Promise<ProcessCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-shared-'));
  const members: Member[] = [];
  const env = { ...variables, DATABASE_URL: url };
  const whole = (extra: ConfigInput): ConfigInput => ({
    gateway: { port: 0 },
    store: { engine: 'postgres', url: { env: 'DATABASE_URL' } as unknown as string },
    storage: { path: folder },
    ...config(folder),
    ...extra,
  });
  return {
    folder,
    members,
    async add(role, extra = {}, own = {}) {
      const home = await makeTestHome(whole(extra));
      const member = createMember(role, home, { ...env, ...own });
      members.push(member);
      return member;
    },
    async nanobot(...args) {
      const home = members[0]?.home.path ?? '';
      const { code, stdout, stderr } = await runNanobot(args, { home, env });
      if (code !== 0) throw new Error(`nanobot ${args.join(' ')} left with ${code}:\n${stderr}`);
      return stdout;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(members.map(({ home }) => home[Symbol.asyncDispose]()));
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

function createMember(role: Role, home: TestHome, env: Readonly<Record<string, string>>): Member {
  let running: GatewayProcess | undefined;
  const signal = (name: NodeJS.Signals) => {
    if (running !== undefined) process.kill(running.pid, name);
  };
  return {
    role,
    home,
    get process() {
      return running;
    },
    async start() {
      running = await home.start(env, undefined, undefined, ['--role', role]);
    },
    async kill() {
      const killed = running;
      running = undefined;
      await killed?.kill();
    },
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    async stop() {
      const stopped = running;
      running = undefined;
      return (await stopped?.stop()) ?? null;
    },
  };
}
