// Requests of commands to the running gateway, over its HTTP server on this machine: log in to a
// channel, restart a channel, make a login link, answer a question.

import { z } from 'zod';
import type { LoginOptions, LoginStep } from '../../channels/channel.ts';
import { readServerEvents } from '../../channels/terminal/attached.ts';
import type { SetupHost } from '../../features/setup/asker.ts';
import { linkEvent } from '../../features/setup/rules/views.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import {
  authorization,
  findRunningGateway,
  type RunningGateway,
  tellGateway,
} from '../../kernel/home-state.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, comesTrue } from '../../lib/time/clock.ts';
import { CommandFailure, EXIT } from '../terminal.ts';

const REQUEST_TIMEOUT_MS = 10_000;
/**
 * The gateway applies a changed configuration within a second; the start of the channel comes on
 * top.
 */
const TAKE_UP_MS = 15_000;
const LOOK_MS = 250;

type RemoteGateway = {
  readonly address: string;
  readonly token: string;
  readonly clock: Clock;
};

const CHANNELS = '/api/v1/setup/channels';

const channelsSchema = z.object({
  channels: z.array(z.object({ name: z.string(), canLogIn: z.boolean() })),
});
const refusalSchema = z.object({ error: z.object({ message: z.string() }) });

/** @throws CommandFailure where this gateway has no address */
export function remoteGateway(
  { address, pid }: RunningGateway,
  token: string,
  clock: Clock,
): RemoteGateway {
  if (address !== undefined) return { address, token, clock };
  const message = t`process ${pid} uses this home without a web page; stop it first`;
  throw new CommandFailure(EXIT.homeHeld, message);
}

/** Waits until the channel is on, as a configuration just written may say. */
export async function* remoteLogin(
  gateway: RemoteGateway,
  channel: string,
  options: LoginOptions,
  signal: AbortSignal,
): AsyncGenerator<LoginStep, void, void> {
  await channelReady(gateway, channel, signal);
  yield* steps(gateway, `${CHANNELS}/${channel}/login`, linkEvent, signal, options);
}

/** Skips events of another shape. */
async function* steps<Step>(
  gateway: RemoteGateway,
  path: string,
  schema: z.ZodType<Step>,
  signal: AbortSignal,
  body: object,
): AsyncGenerator<Step, void, void> {
  const response = await ask(gateway, path, signal, body);
  if (response.body === null) return;
  for await (const data of readServerEvents(response.body)) {
    const step = schema.safeParse(data);
    if (step.success) yield step.data;
  }
}

export async function restartRemote(gateway: RemoteGateway, channel: string): Promise<void> {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  await ask(gateway, `${CHANNELS}/${channel}/restart`, signal, {});
}

const testStepSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('started') }),
  z.object({ kind: z.literal('hop'), channel: z.string(), hop: z.string(), ms: z.number() }),
  z.object({ kind: z.literal('passed'), channel: z.string() }),
  z.object({
    kind: z.literal('failed'),
    channel: z.string(),
    reason: z.string(),
    remedy: z.string(),
  }),
]);

export const remoteSelfTest = (gateway: RemoteGateway, signal: AbortSignal) =>
  steps(gateway, '/api/selftest', testStepSchema, signal, {});

const questionsSchema = z.object({
  questions: z.array(
    z.object({
      id: z.string(),
      choices: z.array(z.object({ label: z.string(), token: z.string() })),
    }),
  ),
});

/** Presses the button of an open question. Resolves with the answer for the owner. */
export async function remoteDecision(
  gateway: RemoteGateway,
  question: string,
  label: string,
): Promise<string> {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const people = await ask(gateway, '/api/v1/people', signal);
  const { questions } = questionsSchema.parse(await people.json());
  const asked = questions.find(({ id }) => id === question);
  const choice = asked?.choices.find((one) => one.label === label);
  if (choice === undefined) throw new CommandFailure(EXIT.notFound, t`this was already decided`);
  const answer = await ask(gateway, '/api/v1/people/answers', signal, { token: choice.token });
  return z.object({ result: z.string() }).parse(await answer.json()).result;
}

/** @throws CommandFailure where none runs in this home */
export async function runningGateway({ home, env, clock }: SetupHost): Promise<RemoteGateway> {
  const running = await findRunningGateway(home);
  if (running === undefined) {
    throw new CommandFailure(
      EXIT.notFound,
      t`the gateway is not running; start it: nanobot gateway`,
    );
  }
  return remoteGateway(running, (await loadConfig(home, env)).config.gateway.token, clock);
}

const codeSchema = z.object({ code: z.string() });

/** A one-time code for the web page; `revokeAll` first ends all open logins. */
export async function remoteCode(gateway: RemoteGateway, revokeAll: boolean): Promise<string> {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const response = await ask(gateway, '/api/links', signal, { revokeAll });
  return codeSchema.parse(await response.json()).code;
}

async function channelReady(gateway: RemoteGateway, channel: string, signal: AbortSignal) {
  const limits = { withinMs: TAKE_UP_MS, everyMs: LOOK_MS, signal };
  const isReady = async () => {
    const response = await ask(gateway, '/api/v1/setup', signal);
    const { channels } = channelsSchema.parse(await response.json());
    return channels.some(({ name, canLogIn }) => name === channel && canLogIn);
  };
  if (await comesTrue(gateway.clock, limits, isReady)) return;
  const message = t`the gateway could not start ${channel}; see why: nanobot channels status`;
  throw new CommandFailure(EXIT.failure, message);
}

/** @throws CommandFailure with the gateway's message */
async function ask(
  { address, token }: RemoteGateway,
  path: string,
  signal: AbortSignal,
  body?: object,
): Promise<Response> {
  const asking =
    body === undefined
      ? fetch(new URL(path, address), { headers: authorization(token), redirect: 'error', signal })
      : tellGateway({ address, token }, path, body, signal);
  const response = await asking.catch((error) => {
    signal.throwIfAborted();
    throw new CommandFailure(EXIT.failure, t`the gateway at ${address} does not answer: ${error}`);
  });
  if (response.ok) return response;
  const refusal = refusalSchema.safeParse(await response.json().catch(() => undefined));
  const said = refusal.success ? refusal.data.error.message : t`status ${response.status}`;
  throw new CommandFailure(EXIT.failure, t`the gateway refused: ${said}`);
}
