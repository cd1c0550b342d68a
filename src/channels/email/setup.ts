// Onboarding of email: the mailbox, its servers found from the address or typed, its login by
// password or OAuth2, tested both ways by one mail to itself. A secret from the environment is
// saved by its name.

import type { Asker } from '../../cli/onboard/asker.ts';
import { currentConfig, type Settings, save, tryOut } from '../../cli/onboard/asker.ts';
import { CommandFailure, EXIT, type Terminal } from '../../cli/terminal.ts';
import type { JsonValue } from '../../kernel/config/json.ts';
import {
  type AccountId,
  accountPath,
  channelName,
  DEFAULT_ACCOUNT,
} from '../../kernel/message/ids.ts';
import { discoverMailbox, type MailProof, proveMailbox } from '../channel-setup.ts';
import { domainOf } from './rules/address.ts';
import {
  addressesOf,
  type EmailConfig,
  knownTokenEndpoint,
  mailboxesOf,
  mailboxSchema,
  usesOAuth2,
} from './settings.ts';

const EMAIL = channelName('email');
const DISCOVERY_TIMEOUT_MS = 15_000;
const PROOF_TIMEOUT_MS = 180_000;

export type EmailFlags = CredentialFlags & {
  /** An address, or false for --no-email. */
  readonly email?: string | false;
  /** A further mailbox, by its short name. */
  readonly account?: AccountId;
  readonly emailUsername?: string;
  readonly imapHost?: string;
  readonly imapPort?: number;
  readonly imapSecurity?: EmailConfig['imapSecurity'];
  readonly smtpHost?: string;
  readonly smtpPort?: number;
  readonly smtpSecurity?: EmailConfig['smtpSecurity'];
  readonly emailAllow?: readonly string[];
};

export async function setUpEmail(
  terminal: Terminal,
  asker: Asker,
  flags: EmailFlags,
  isRetry = false,
): Promise<string | undefined> {
  if (flags.email === false) return undefined;
  const isWanted = isRetry || flags.email !== undefined;
  if (!isWanted && !(await asker.confirm('Connect a mailbox?', false))) return undefined;
  const { account = DEFAULT_ACCOUNT } = flags;
  const settings = await mailSettings(terminal, asker, flags, account);
  const { channels } = await tryOut(terminal, settings);
  const mailbox = mailboxesOf(channels.email).get(account) ?? channels.email;
  const proof = await prove(asker, mailbox);
  if (proof.kind !== 'proven') {
    const problem = `${proof.step}: ${proof.problem.replace(/\.$/, '')}. ${proof.remedy}`;
    throw new CommandFailure(EXIT.failure, `the mailbox test failed at ${problem}`);
  }
  await save(terminal, settings);
  return `email ${mailbox.from || mailbox.username}`;
}

async function prove(asker: Asker, email: EmailConfig): Promise<MailProof> {
  return asker.during(
    `Logging in to ${email.imapHost} and ${email.smtpHost}, and sending one test email to the mailbox itself`,
    () => proveMailbox(email, AbortSignal.timeout(PROOF_TIMEOUT_MS)),
    (proof) => (proof.kind === 'proven' ? 'Sending and receiving work.' : 'The test failed.'),
  );
}

async function mailSettings(
  terminal: Terminal,
  asker: Asker,
  flags: EmailFlags,
  account: AccountId,
): Promise<Settings> {
  const path = accountPath({ channel: EMAIL, account });
  const { email } = (await currentConfig(terminal)).channels;
  const written = mailboxesOf(email).get(account);
  const known = written ?? { ...mailboxSchema.parse({}), accounts: {} };
  const initial = known.from || known.username;
  const address =
    flags.email ||
    (await asker.text({
      message: 'Email address of the agent',
      flag: '--email',
      ...(initial === '' ? {} : { initial }),
      check: (answer) =>
        /^[^\s@]+@[^\s@]+$/.test(answer) ? undefined : 'Enter an address such as name@example.org.',
    }));
  const servers = await mailServers(
    asker,
    flags,
    address,
    address === initial ? known : besideFirst(email, account, address),
  );
  const allowFrom = await allowed(asker, flags, known.allowFrom);
  return {
    ...prefixed(path, servers),
    ...(await credentialSettings(terminal, asker, flags, {
      path,
      variables: account === DEFAULT_ACCOUNT ? 'EMAIL' : `EMAIL_${upperCase(account)}`,
      imapHost: servers.imapHost,
      written: known,
      before: address === initial ? known : undefined,
    })),
    [`${path}.enabled`]: true,
    [`${path}.from`]: address,
    [`${path}.allowFrom`]: allowFrom,
  };
}

type Servers = Pick<
  EmailConfig,
  'imapHost' | 'imapPort' | 'imapSecurity' | 'smtpHost' | 'smtpPort' | 'smtpSecurity' | 'username'
>;

/** Servers for a further mailbox of the same provider. */
function besideFirst(first: EmailConfig, account: AccountId, address: string): Servers | undefined {
  const [own] = addressesOf(first);
  const isSame = own !== undefined && domainOf(own) === domainOf(address.toLowerCase());
  return isSame && account !== DEFAULT_ACCOUNT ? { ...first, username: address } : undefined;
}

/** Order: the flags, the earlier setup, what is discovered, what is typed. */
async function mailServers(
  asker: Asker,
  flags: EmailFlags,
  address: string,
  known: Servers | undefined,
): Promise<Servers> {
  const before = known?.imapHost === '' || known?.smtpHost === '' ? undefined : known;
  const isGiven = flags.imapHost !== undefined && flags.smtpHost !== undefined;
  const base = before ?? (isGiven ? undefined : await discover(asker, address));
  const host = (kind: 'IMAP' | 'SMTP', flag: string) =>
    asker.text({ message: `${kind} server`, flag });
  const imapSecurity = flags.imapSecurity ?? base?.imapSecurity ?? 'tls';
  const smtpSecurity = flags.smtpSecurity ?? base?.smtpSecurity ?? 'tls';
  return {
    imapHost: flags.imapHost ?? base?.imapHost ?? (await host('IMAP', '--imap-host')),
    imapPort: flags.imapPort ?? base?.imapPort ?? (imapSecurity === 'starttls' ? 143 : 993),
    imapSecurity,
    smtpHost: flags.smtpHost ?? base?.smtpHost ?? (await host('SMTP', '--smtp-host')),
    smtpPort: flags.smtpPort ?? base?.smtpPort ?? (smtpSecurity === 'starttls' ? 587 : 465),
    smtpSecurity,
    username: flags.emailUsername ?? base?.username ?? address,
  };
}

async function discover(asker: Asker, address: string): Promise<Servers | undefined> {
  const found = await asker.during(
    `Looking up the mail servers of ${address}`,
    () => discoverMailbox(address, AbortSignal.timeout(DISCOVERY_TIMEOUT_MS)),
    (mailbox) =>
      mailbox === undefined
        ? 'Not found; enter them.'
        : `Found ${mailbox.imap.host} and ${mailbox.smtp.host}.`,
  );
  if (found === undefined) return undefined;
  if (found.hint !== undefined) asker.warn(found.hint);
  const { imap, smtp, username } = found;
  return {
    imapHost: imap.host,
    imapPort: imap.port,
    imapSecurity: imap.security,
    smtpHost: smtp.host,
    smtpPort: smtp.port,
    smtpSecurity: smtp.security,
    username,
  };
}

async function allowed(
  asker: Asker,
  flags: EmailFlags,
  known: readonly string[],
): Promise<readonly string[]> {
  if (flags.emailAllow !== undefined) return flags.emailAllow;
  if (!asker.interactive) return known;
  const answer = await asker.text({
    message: 'Whose email may the agent answer? Addresses, separated by commas',
    flag: '--email-allow',
    ...(known.length === 0 ? {} : { initial: known.join(', ') }),
  });
  return answer.split(/[\s,;]+/).filter((one) => one !== '');
}

const upperCase = (account: string) => account.toUpperCase().replaceAll('-', '_');

function prefixed(path: string, servers: Servers): Settings {
  const entries = Object.entries(servers).map(([key, value]) => [`${path}.${key}`, value]);
  return Object.fromEntries(entries);
}

// Onboarding: the login of the mailbox, by password or OAuth2. A secret in the environment is saved
// by its name; one that is already configured stays.

export type CredentialFlags = {
  readonly emailPassword?: string;
  readonly emailClientId?: string;
  readonly emailClientSecret?: string;
  readonly emailRefreshToken?: string;
  readonly emailTokenUrl?: string;
  readonly emailScope?: string;
};

type CredentialContext = {
  /** Path of the settings of the mailbox. */
  readonly path: string;
  /** Prefix of the variables that may hold its secrets: `EMAIL` for `EMAIL_PASSWORD`. */
  readonly variables: string;
  readonly imapHost: string;
  /** The current configuration, possibly of another mailbox. */
  readonly written: EmailConfig;
  /** The same, if it is of this mailbox. */
  readonly before: EmailConfig | undefined;
};

async function credentialSettings(
  terminal: Terminal,
  asker: Asker,
  flags: CredentialFlags,
  context: CredentialContext,
): Promise<Settings> {
  const settings = (await wantsOAuth2(terminal, asker, flags, context))
    ? await oauth2Settings(terminal, asker, flags, context)
    : await passwordSettings(terminal, asker, flags, context);
  // An empty value removes what is configured; nothing is written if nothing is.
  const { password, oauth2 } = context.written;
  const written = { password, ...oauth2 };
  const isSaid = ([path, value]: readonly [string, JsonValue]) =>
    value !== '' || Object.entries(written).some(([key, old]) => path.endsWith(key) && old !== '');
  return Object.fromEntries(Object.entries(settings).filter(isSaid));
}

/**
 * Order: a flag or the environment, the earlier setup, then, for providers that commonly use it,
 * the person.
 */
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
    'Log in with OAuth2 (client id and refresh token) instead of a password?',
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
    () => asker.secret({ message: 'Refresh token', flag: '--email-refresh-token' }),
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
      clientId || (await asker.text({ message: 'OAuth2 client id', flag: '--email-client-id' })),
    ...refreshToken,
    ...clientSecret,
    [`${oauth2}.tokenUrl`]: await tokenUrlOf(asker, flags.emailTokenUrl, imapHost, known),
    [`${oauth2}.scope`]: flags.emailScope ?? known?.scope ?? '',
  };
}

/** Empty if the provider's own is known. */
async function tokenUrlOf(
  asker: Asker,
  given: string | undefined,
  imapHost: string,
  known: EmailConfig['oauth2'] | undefined,
): Promise<string> {
  const settled = given ?? known?.tokenUrl ?? '';
  if (settled !== '' || knownTokenEndpoint(imapHost) !== undefined) return settled;
  return asker.text({ message: 'Token address of the provider', flag: '--email-token-url' });
}

async function passwordSettings(
  { env }: Terminal,
  asker: Asker,
  flags: CredentialFlags,
  { before, path, variables }: CredentialContext,
): Promise<Settings> {
  const message = 'Password (an app password, if the provider has them)';
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
