// The HTTP server over a door with a host in memory, and requests with any header one likes.

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { SpendingGuard } from '../../src/agent/agent.ts';
import type { Channel } from '../../src/channels/channel.ts';
import { LOCAL_OWNER, type LocalChannel } from '../../src/channels/local-channel.ts';
import { createLocalChannel } from '../../src/channels/web/durable-channel.ts';
import { type RuleControl, ruleRoutes } from '../../src/features/approvals/rule-routes.ts';
import { type PeopleRoutesDeps, peopleRoutes } from '../../src/features/people/people-routes.ts';
import type { ChannelControl } from '../../src/features/setup/link-routes.ts';
import { setupRoutes } from '../../src/features/setup/setup-routes.ts';
import { lendingRoutes } from '../../src/features/spending/lending-routes.ts';
import { type Access, openAccess } from '../../src/http/access.ts';
import type { Health, HttpServerOptions } from '../../src/http/routes.ts';
import { createHttpServer } from '../../src/http/server.ts';
import type { KeyValueStore } from '../../src/kernel/bus/store/store.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { createRegistries } from '../../src/kernel/contributions.ts';
import type { RouteName } from '../../src/kernel/http-routes.ts';
import { channelName } from '../../src/kernel/message/ids.ts';
import { createPeople } from '../../src/kernel/people/people.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import {
  createMemoryHost,
  createMemoryStore,
  type MemoryHost,
  memoryRows,
} from '../support/memory-host.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';

export type HttpRig = AsyncDisposable & {
  readonly address: string;
  readonly port: number;
  readonly door: Channel & LocalChannel;
  readonly host: MemoryHost;
  readonly clock: MovableClock;
  readonly access: Access;
  /** What the rig's own requests carry; nothing where the test names the token. */
  readonly credentials: Headers;
  /** How often everything was revoked. */
  readonly revocations: readonly true[];
  /** `door/chat` of each stop asked for. */
  readonly stops: readonly string[];
  ask(path: string, init?: Ask): Promise<Answer>;
  /** Sends JSON as the page does. */
  post(path: string, body: unknown, headers?: Headers): Promise<Answer>;
  close(): Promise<void>;
};

type Headers = Readonly<Record<string, string>>;
export type Ask = { readonly method?: string; readonly headers?: Headers; readonly body?: string };
export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

const noChannels: ChannelControl = {
  channels: () => [],
  login: () => undefined,
  began: async () => undefined,
  restartChannel: async () => false,
};

/** Nobody lends here. */
const noMoney = async () => ({ kind: 'refused', text: 'Nothing is left.' }) as const;

const nobody = (): PeopleRoutesDeps => ({
  people: createPeople({
    ...{ rows: memoryRows(), state: createMemoryStore(), localChannels: [], clock: systemClock },
    policy: () => ({ allowFrom: [], strangers: 'silent', owners: [] }),
    ...{ randomBytes, release: async () => undefined, settled: async () => false },
  }),
  questions: {
    open: async () => [],
    answer: async () => 'This can no longer be answered.',
    withdraw: async () => false,
  },
  configured: () => ({
    ...{ approvals: { owner: 'normal', trusted: 'normal' }, people: [], groups: [] },
  }),
  ...{ owner: LOCAL_OWNER, audit: { note: () => undefined }, clock: systemClock },
});
const noRules: RuleControl = { list: async () => [], takeBack: async () => 0 };

/** Largest file the door takes. */
export const MAX_FILE_BYTES = 2_000_000;

/** The token of a server whose test names none; requests carry it by themselves. */
export const HTTP_TOKEN = 'the-token-of-every-http-test';

export type HttpRigOptions = Partial<HttpServerOptions> & {
  /** Named by tests that show it themselves, or not. */
  readonly token?: string;
  /** Holds the logins over a restart of the server. */
  readonly logins?: KeyValueStore;
  readonly status?: () => GatewayStatus;
  readonly control?: ChannelControl;
  readonly people?: PeopleRoutesDeps;
  readonly rules?: RuleControl;
  readonly spending?: Pick<SpendingGuard, 'reserve'>;
};

export type GatewayStatus = Health & { readonly model: string };

const demoStatus = (): GatewayStatus => ({ model: 'demo/demo', channels: [], storeWaitMs: 0 });

/** Of the features that have some. */
function routesOf({
  control = noChannels,
  people = nobody(),
  rules = noRules,
  spending,
  status = demoStatus,
  clock = systemClock,
}: HttpRigOptions) {
  const { add, contributed } = createRegistries();
  for (const handlers of [
    peopleRoutes(people),
    ruleRoutes({
      ...{ standing: rules, owner: LOCAL_OWNER, clock: systemClock },
      audit: { note: () => undefined },
    }),
    lendingRoutes(spending ?? { reserve: noMoney }),
    setupRoutes({
      ...{ home: homeOf({ NANOBOT_HOME: '/nowhere' }), env: {}, clock, channels: control },
      model: () => ({ name: status().model, isDemo: false }),
      extras: () => ({ voice: {}, search: { engines: [] } }),
      logIn: async () => undefined,
      ...{ audit: { note: () => undefined }, log: silentLogger, redact: (text) => text },
    }),
    { 'GET /api/status': async () => ({ body: status() }) },
  ]) {
    add.routes(Object.keys(handlers) as RouteName[], async () => handlers);
  }
  return contributed.routes();
}

export async function startHttp(given: HttpRigOptions = {}): Promise<HttpRig> {
  const {
    token,
    logins,
    status: _status,
    control: _control,
    people: _people,
    rules: _rules,
    spending: _spending,
    ...options
  } = given;
  const clock = createMovableClock();
  const time = options.clock ?? clock;
  const door = createLocalChannel({
    name: channelName('web'),
    coalesces: true,
    choices: 'buttons',
    maxFileBytes: () => MAX_FILE_BYTES,
    clock: time,
  });
  const host = createMemoryHost(time);
  const intake = new AbortController();
  const running = door.run(host, intake.signal);
  const stops: string[] = [];
  const access = await openAccess({
    token: token ?? HTTP_TOKEN,
    state: logins ?? createMemoryStore(),
    clock: time,
    log: silentLogger,
    randomBytes,
  });
  const credentials: Headers = token === undefined ? { authorization: `Bearer ${HTTP_TOKEN}` } : {};
  const revocations: true[] = [];
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    access,
    revokeAll: async () => {
      revocations.push(true);
      await access.revokeAll();
    },
    allowedHosts: [],
    metrics: undefined,
    gauges: () => Promise.reject(new Error('nobody asks')),
    audit: { note: () => undefined },
    localChannels: { web: door },
    stop: async (name, chat) => void stops.push(`${name}/${chat}`),
    health: given.status ?? demoStatus,
    routes: routesOf(given),
    redact: (text) => text,
    typed: (text) => text,
    log: silentLogger,
    clock,
    ...options,
  });
  const { address } = await server.listen();
  const port = Number(new URL(address).port);
  const close = async () => {
    await server[Symbol.asyncDispose]();
    intake.abort();
    await running;
  };
  const ask: HttpRig['ask'] = (path, init = {}) =>
    askPort(port, path, { ...init, headers: { ...credentials, ...init.headers } });
  return {
    address,
    port,
    door,
    host,
    clock,
    access,
    credentials,
    revocations,
    stops,
    ask,
    post: (path, body, headers = {}) =>
      ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function askPort(port: number, path: string, init: Ask): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = init;
  const target = { host: '127.0.0.1', port, path, method, agent: false } as const;
  const outgoing = request({ ...target, headers });
  outgoing.end(body);
  const [response] = await once(outgoing, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return { status: response.statusCode, headers: response.headers, body: text };
}

/** A connection that speaks bytes. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** The status of what is answered to these bytes; NaN where the connection just ends. */
export async function askRaw(port: number, bytes: string): Promise<number> {
  const socket = await openSocket(port);
  socket.write(bytes);
  const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.destroy();
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(String(answer))?.[1]);
}

export type ServerEvent = { readonly id?: string; readonly data: unknown };

/** Follows a chat until `isLast`, then hangs up. Heartbeats are counted. */
export async function followEvents(
  address: string,
  path: string,
  isLast: (events: readonly ServerEvent[], heartbeats: number) => boolean,
  more: Readonly<Record<string, string>> = {},
): Promise<readonly ServerEvent[]> {
  const headers = { authorization: `Bearer ${HTTP_TOKEN}`, ...more };
  const hangUp = new AbortController();
  const response = await fetch(new URL(path, address), { headers, signal: hangUp.signal });
  if (response.body === null || !response.ok) throw new Error(`status ${response.status}`);
  const events: ServerEvent[] = [];
  let heartbeats = 0;
  let rest = '';
  const decoder = new TextDecoder();
  for await (const piece of response.body) {
    const blocks = (rest + decoder.decode(piece, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.startsWith(':')) heartbeats += 1;
      else events.push(parseEvent(block));
    }
    if (isLast(events, heartbeats)) break;
  }
  hangUp.abort();
  return events;
}

function parseEvent(block: string): ServerEvent {
  const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s)));
  const id = fields['id'];
  return { data: JSON.parse(String(fields['data'])), ...(id === undefined ? {} : { id }) };
}
