// Channels over HTTP: login of an account that a person's phone connects, and restart. The page and
// the command line of this home use them.

import { z } from 'zod';
import type { ConfiguredChannels } from '../../channels/configured-channels.ts';
import type { ChannelReport } from '../../kernel/gateway.ts';
import { endpoint, Refusal, type RouteHandlers, streamed } from '../../kernel/http-routes.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { shownCode } from './page-asker.ts';
import { type LinkEvent, linkEvent } from './rules/views.ts';

const oneAccount = z.object({
  name: z
    .string()
    .regex(/^[a-z0-9-]{1,64}(@[a-z0-9-]{1,32})?$/, 'is not a name')
    .describe('email@work is a further account.'),
});
const loginBody = z.strictObject({
  phoneNumber: z
    .string()
    .regex(/^\d{8,15}$/, 'is an international number: 8 to 15 digits and nothing else')
    .exactOptional(),
});

/** What may be done to channels over HTTP, by account name. */
export type ChannelControl = Pick<
  ConfiguredChannels,
  'began' | 'channels' | 'login' | 'restartChannel'
>;

export function linkRoutes(control: ChannelControl, log: Logger) {
  return {
    'POST /api/v1/setup/channels/:name/login': streamed(
      {
        summary: t`Link an account by its owner’s phone: the codes to scan or to type`,
        params: oneAccount,
        body: loginBody,
        answer: linkEvent,
      },
      async ({ name }, asked, signal) => {
        if (known(control, name).status.kind === 'starting') await control.began();
        const channel = known(control, name);
        if (!channel.canLogIn) throw new Refusal(409, 'no_login', noLoginText(channel));
        return linkEvents(() => control.login(name, asked, signal), name, log, signal);
      },
    ),
    'POST /api/v1/setup/channels/:name/restart': endpoint(
      {
        summary: t`Start a channel again`,
        params: oneAccount,
        body: z.strictObject({}),
        status: 202,
        answer: z.object({ result: z.string() }),
      },
      async ({ name }) => {
        const channel = known(control, name);
        if (await control.restartChannel(name)) return { result: 'restarted' };
        throw new Refusal(409, 'channel_off', offText(channel));
      },
    ),
  } satisfies RouteHandlers;
}

function known(control: ChannelControl, name: string): ChannelReport {
  const found = control.channels().find((channel) => channel.name === name);
  if (found !== undefined) return found;
  throw new Refusal(404, 'not_found', t`There is no channel with this name.`);
}

function noLoginText(channel: ChannelReport): string {
  return channel.status.kind === 'off'
    ? offText(channel)
    : t`${channel.label} is connected in the configuration, not here.`;
}

function offText({ label, status }: ChannelReport): string {
  const remedy = status.kind === 'off' ? status.remedy : t`Turn it on in the configuration.`;
  return t`${label} is off. ${remedy}`;
}

/** Turns an error into the last step, so that the client always gets an outcome. */
async function* linkEvents(
  begin: () => ReturnType<ChannelControl['login']>,
  name: string,
  log: Logger,
  signal: AbortSignal,
): AsyncGenerator<LinkEvent, void, void> {
  try {
    const steps = begin();
    if (steps === undefined) throw new NanobotError('channel_gone', t`the channel was turned off`);
    for await (const step of steps) yield step.kind === 'show_qr' ? shownCode(step) : step;
  } catch (error) {
    if (signal.aborted) return;
    log.warn('login failed', { channel: name, error });
    const isOurs = error instanceof NanobotError;
    const reason = isOurs ? error.message : t`something went wrong in the gateway`;
    yield { kind: 'failed', reason, remedy: t`Try again, or see the gateway’s log.` };
  }
}
