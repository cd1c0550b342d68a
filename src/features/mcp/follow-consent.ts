// Follows a login to a hosted server that was begun: shows the consent page, and waits until it is ended by
// the redirect, by the gateway, or by the address that the person pastes.

import { CommandFailure, EXIT } from '../../cli/terminal.ts';
import { readRedirect } from '../../lib/net/oauth-redirect.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';
import { type Asker, pastedAddress, whileConsenting } from '../setup/asker.ts';
import type { ServerLogin } from './login.ts';

const LOOK_MS = 500;

type Consent = {
  readonly login: ServerLogin;
  readonly link: URL;
  readonly state: string;
  /** As in "Open this address in a browser". */
  readonly where: string;
  readonly clock: Clock;
  /** Where this process itself listens for it. */
  readonly redirect?: Promise<string>;
};

/** @throws CommandFailure, LoginFailed */
export async function followConsent(
  asker: Asker,
  { login, link, state, where, clock, redirect }: Consent,
): Promise<void> {
  const asking = new AbortController();
  asker.say(t`Open this address in ${where} and allow the access:\n${link.href}`);
  const isOurs = (answer: string) => readRedirect(answer, state).kind !== 'foreign';
  const pasted = pastedAddress(asker, '', isOurs, asking.signal);
  try {
    const address = await whileConsenting(asker, t`Cancelled.`, (signal) => {
      // The gateway ends a login at its public address by itself.
      const ended = untilEnded(login, state, clock, signal);
      const ends = [redirect, ended, pasted].filter((end) => end !== undefined);
      return orAborted(Promise.race(ends), signal);
    });
    if (address !== undefined) await login.finish(address);
  } finally {
    asking.abort();
  }
}

async function untilEnded(
  login: ServerLogin,
  state: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<undefined> {
  while (await login.isOurs(`?state=${state}`)) await clock.sleep(LOOK_MS, signal);
  if (!(await login.isLoggedInBy(state)))
    throw new CommandFailure(EXIT.failure, t`the login failed`);
}
