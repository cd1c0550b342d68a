// The login to a hosted tool server as a step of the setup on the page of a running gateway, which ends it at
// its own address.

import { NanobotError } from '../../kernel/message/errors.ts';
import { consentSecrets } from '../../lib/net/oauth-redirect.ts';
import { t } from '../../lib/texts.ts';
import { comesTrue } from '../../lib/time/clock.ts';
import type { Asker, SetupHost } from '../setup/asker.ts';
import { followConsent } from './follow-consent.ts';
import type { ToolServers } from './index.ts';
import { redirectUrl } from './login-commands.ts';

/** A change of the configuration is noticed within this time. */
const NOTICED_MS = 10_000;
const LOOK_MS = 100;

export async function logInToServer(
  { home, clock }: SetupHost,
  asker: Asker,
  name: string,
  { servers, publicUrl }: { readonly servers: ToolServers; readonly publicUrl: () => string },
): Promise<void> {
  const limits = { withinMs: NOTICED_MS, everyMs: LOOK_MS };
  await comesTrue(clock, limits, () => servers.login(name) !== undefined);
  const login = servers.login(name);
  if (login === undefined) {
    throw new NanobotError('tool_server_login', t`${name} is no hosted tool server that is on.`);
  }
  const { state } = consentSecrets();
  const link = await login.begin(await redirectUrl({ home, publicUrl }), state);
  const where = publicUrl() === '' ? t`a browser on this machine` : t`a browser`;
  await followConsent(asker, { login, link, state, where, clock });
  servers.loggedIn(name);
}
