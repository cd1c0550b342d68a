// HTTP routes of the platform channels: their states, login of an account that a person's phone
// connects, and restart.
//
// GET  /api/channels                  {channels: [{name, label, status, canLogIn}]}
// A further account is named behind its channel: email@work.
// POST /api/channels/<name>/login     {phoneNumber?}; server-sent events, one per login step
// POST /api/channels/<name>/restart   {}; 202 once it was started again

import { z } from 'zod';
import type { ChannelReport } from '../kernel/gateway.ts';
import { Refusal, type RouteHandlers, valid } from '../kernel/http-routes.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { LoginStep } from './channel.ts';
import type { ConfiguredChannels } from './configured-channels.ts';

/** A login step as sent to the client, for which a QR code comes as a picture. */
export type SentLoginStep =
  | Exclude<LoginStep, { readonly kind: 'show_qr' }>
  | (Extract<LoginStep, { readonly kind: 'show_qr' }> & {
      /** An SVG as a `data:` URL. */
      readonly image: string;
    });

const channelParams = z.object({
  name: z.string().regex(/^[a-z0-9-]{1,64}(@[a-z0-9-]{1,32})?$/, 'is not a name'),
});
const loginBody = z.strictObject({
  phoneNumber: z
    .string()
    .regex(/^\d{8,15}$/, 'is an international number: 8 to 15 digits and nothing else')
    .optional(),
});

export type ChannelView = Omit<ChannelReport, 'enabled'>;

/** What may be done to channels over HTTP, by account name. */
export interface ChannelControl
  extends Pick<ConfiguredChannels, 'began' | 'login' | 'restartChannel'> {
  channels(): readonly ChannelView[];
}

export function channelRoutes(control: ChannelControl, log: Logger) {
  return {
    'GET /api/channels': () => ({ body: { channels: control.channels() } }),
    async 'POST /api/channels/:name/login'({ params, body }) {
      const { name } = valid(channelParams, params);
      const { phoneNumber } = valid(loginBody, body);
      if (known(control, name).status.kind === 'starting') await control.began();
      const view = known(control, name);
      if (!view.canLogIn) throw new Refusal(409, 'no_login', noLoginText(view));
      const asked = phoneNumber === undefined ? {} : { phoneNumber };
      return {
        events: (signal) => loginSteps(() => control.login(name, asked, signal), name, log, signal),
      };
    },
    async 'POST /api/channels/:name/restart'({ params, body }) {
      const { name } = valid(channelParams, params);
      valid(z.strictObject({}), body);
      const view = known(control, name);
      if (!(await control.restartChannel(name)))
        throw new Refusal(409, 'channel_off', offText(view));
      return { status: 202, body: { result: 'restarted' } };
    },
  } satisfies RouteHandlers;
}

function known(control: ChannelControl, name: string): ChannelView {
  const view = control.channels().find((channel) => channel.name === name);
  if (view !== undefined) return view;
  throw new Refusal(404, 'not_found', t`There is no channel with this name.`);
}

function noLoginText(view: ChannelView): string {
  return view.status.kind === 'off'
    ? offText(view)
    : t`${view.label} is connected in the configuration, not here.`;
}

function offText({ label, status }: ChannelView): string {
  const remedy = status.kind === 'off' ? status.remedy : t`Turn it on in the configuration.`;
  return t`${label} is off. ${remedy}`;
}

/** Turns an error into the last step, so that the client always gets an outcome. */
async function* loginSteps(
  begin: () => ReturnType<ChannelControl['login']>,
  name: string,
  log: Logger,
  signal: AbortSignal,
): AsyncGenerator<SentLoginStep, void, void> {
  try {
    const steps = begin();
    if (steps === undefined) throw new NanobotError('channel_gone', t`the channel was turned off`);
    for await (const step of steps) yield step.kind === 'show_qr' ? await withImage(step) : step;
  } catch (error) {
    if (signal.aborted) return;
    log.warn('login failed', { channel: name, error });
    const isOurs = error instanceof NanobotError;
    const reason = isOurs ? error.message : t`something went wrong in the gateway`;
    yield { kind: 'failed', reason, remedy: t`Try again, or see the gateway’s log.` };
  }
}

async function withImage(
  step: Extract<LoginStep, { readonly kind: 'show_qr' }>,
): Promise<SentLoginStep> {
  const { qrMatrix, qrSvg } = await import('../lib/qr-code.ts');
  const svg = Buffer.from(qrSvg(qrMatrix(step.qr))).toString('base64');
  return { ...step, image: `data:image/svg+xml;base64,${svg}` };
}
