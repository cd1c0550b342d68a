// Onboarding: how the mailbox is logged in to, by a password or by OAuth2. A secret that stands in the
// environment is noted by its name; one that is written already stays.

import type { Asker } from '../../cli/onboard/asker.ts';
import type { Settings } from '../../cli/onboard/owner-step.ts';
import type { Terminal } from '../../cli/terminal.ts';
import type { EmailConfig } from '../../kernel/config/config.ts';
import type { JsonValue } from '../../kernel/config/json.ts';
import { knownTokenEndpoint, usesOAuth2 } from './rules/oauth.ts';

export type CredentialFlags = {
  readonly emailPassword?: string;
  readonly emailClientId?: string;
  readonly emailClientSecret?: string;
  readonly emailRefreshToken?: string;
  readonly emailTokenUrl?: string;
  readonly emailScope?: string;
};

export type CredentialContext = {
  /** Where the settings of the mailbox stand. */
  readonly path: string;
  /** How the variables begin in which its secrets may stand: `EMAIL` for `EMAIL_PASSWORD`. */
  readonly variables: string;
  readonly imapHost: string;
  /** What the configuration says now, perhaps of another mailbox. */
  readonly written: EmailConfig;
  /** The same, where it is of this mailbox. */
  readonly before: EmailConfig | undefined;
};

export async function credentialSettings(
  terminal: Terminal,
  asker: Asker,
  flags: CredentialFlags,
  context: CredentialContext,
): Promise<Settings> {
  const settings = (await wantsOAuth2(terminal, asker, flags, context))
    ? await oauth2Settings(terminal, asker, flags, context)
    : await passwordSettings(terminal, asker, flags, context);
  // An empty value takes back what is written, and is worth no line where nothing is.
  const { password, oauth2 } = context.written;
  const written = { password, ...oauth2 };
  const isSaid = ([path, value]: readonly [string, JsonValue]) =>
    value !== '' || Object.entries(written).some(([key, old]) => path.endsWith(key) && old !== '');
  return Object.fromEntries(Object.entries(settings).filter(isSaid));
}

/** What a flag or the environment says, else what was, else, where it is usual, the person. */
async function wantsOAuth2(
  { env }: Terminal,
  asker: Asker,
  flags: CredentialFlags,
  { imapHost, before, variables }: CredentialContext,
): Promise<boolean> {
  if (flags.emailPassword !== undefined) return false;
  if (flags.emailClientId !== undefined || flags.emailRefreshToken !== undefined) return true;
  if ((env[`${variables}_REFRESH_TOKEN`] ?? '') !== '') return true;
  if (before !== undefined && usesOAuth2(before.oauth2)) return true;
  if (knownTokenEndpoint(imapHost) === undefined || !asker.interactive) return false;
  return asker.confirm(
    'Log in by OAuth2 (a client id and a refresh token) and no password?',
    false,
  );
}

async function oauth2Settings(
  { env }: Terminal,
  asker: Asker,
  flags: CredentialFlags,
  { imapHost, before, path, variables }: CredentialContext,
): Promise<Settings> {
  const oauth2 = `${path}.oauth2`;
  const known = before?.oauth2;
  const clientId = flags.emailClientId ?? known?.clientId ?? '';
  const refreshToken = await secretSetting(
    `${oauth2}.refreshToken`,
    { given: flags.emailRefreshToken, variable: `${variables}_REFRESH_TOKEN`, env },
    known?.refreshToken ?? '',
    () => asker.secret({ message: 'The refresh token', flag: '--email-refresh-token' }),
  );
  const clientSecret = await secretSetting(
    `${oauth2}.clientSecret`,
    { given: flags.emailClientSecret, variable: `${variables}_CLIENT_SECRET`, env },
    known?.clientSecret ?? '',
    async () => '',
  );
  return {
    [`${path}.password`]: '',
    [`${oauth2}.clientId`]:
      clientId ||
      (await asker.text({ message: 'The id of the OAuth2 client', flag: '--email-client-id' })),
    ...refreshToken,
    ...clientSecret,
    [`${oauth2}.tokenUrl`]: await tokenUrlOf(asker, flags.emailTokenUrl, imapHost, known),
    [`${oauth2}.scope`]: flags.emailScope ?? known?.scope ?? '',
  };
}

/** Empty where the provider's own is known. */
async function tokenUrlOf(
  asker: Asker,
  given: string | undefined,
  imapHost: string,
  known: EmailConfig['oauth2'] | undefined,
): Promise<string> {
  const settled = given ?? known?.tokenUrl ?? '';
  if (settled !== '' || knownTokenEndpoint(imapHost) !== undefined) return settled;
  return asker.text({ message: 'The token address of its provider', flag: '--email-token-url' });
}

async function passwordSettings(
  { env }: Terminal,
  asker: Asker,
  flags: CredentialFlags,
  { before, path, variables }: CredentialContext,
): Promise<Settings> {
  const message = 'Its password (an app password, where the provider has them)';
  const source = { given: flags.emailPassword, variable: `${variables}_PASSWORD`, env };
  return {
    [`${path}.oauth2.refreshToken`]: '',
    ...(await secretSetting(`${path}.password`, source, before?.password ?? '', () =>
      asker.secret({ message, flag: '--email-password' }),
    )),
  };
}

type SecretSource = {
  readonly given: string | undefined;
  readonly variable: string;
  readonly env: Terminal['env'];
};

async function secretSetting(
  path: string,
  { given = '', variable, env }: SecretSource,
  known: string,
  ask: () => Promise<string>,
): Promise<Settings> {
  const fromEnvironment = env[variable] ?? '';
  if (given === '' && known !== '') return {};
  if (fromEnvironment !== '' && (given === '' || given === fromEnvironment)) {
    return { [path]: `\${${variable}}` };
  }
  return { [path]: given !== '' ? given : await ask() };
}
