// Onboarding of email: the mailbox, its servers found from the address or typed, its login by
// password or OAuth2, tested both ways by one mail to itself. A secret from the environment is
// saved by its name; one that is already configured stays.

import { isDeepStrictEqual } from 'node:util';
import { parseList } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT } from '../../cli/terminal.ts';
import {
  type Asker,
  currentConfig,
  pastedAddress,
  type Settings,
  type SetupHost,
  save,
  tryOut,
  whileConsenting,
} from '../../features/setup/asker.ts';
import type { JsonValue } from '../../kernel/config/json.ts';
import { findRunningGateway, withOpenState } from '../../kernel/home-state.ts';
import {
  type AccountId,
  accountName,
  accountPath,
  channelName,
  channelScope,
  DEFAULT_ACCOUNT,
} from '../../kernel/message/ids.ts';
import { t } from '../../lib/texts.ts';
import { discoverMailbox, proveMailbox } from '../channel-setup.ts';
import { type GrantRows, keepGrant } from './access-tokens.ts';
import { domainOf } from './rules/address.ts';
import {
  addressesOf,
  type EmailConfig,
  knownProvider,
  mailboxesOf,
  mailboxSchema,
  providerOf,
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
  host: SetupHost,
  asker: Asker,
  flags: EmailFlags,
  isRetry = false,
): Promise<string | undefined> {
  if (flags.email === false) return undefined;
  const isWanted = isRetry || flags.email !== undefined;
  if (!isWanted && !(await asker.confirm(t`Connect a mailbox?`, false))) return undefined;
  const { account = DEFAULT_ACCOUNT } = flags;
  const before = mailboxesOf((await currentConfig(host)).channels.email).get(account);
  const settings = await mailSettings(host, asker, flags, { account, isRetry });
  const { channels } = await tryOut(host, settings);
  const mailbox = mailboxesOf(channels.email).get(account) ?? channels.email;
  await withOpenState(host.home, host.clock, async ({ store }) => {
    const rows = store.scope(channelScope({ channel: EMAIL, account }));
    if (usesOAuth2(mailbox) && mailbox.oauth2.refreshToken === '') {
      await grantAccess(host, asker, mailbox, rows, flags.emailDevice === true);
    }
    await prove(asker, mailbox, rows);
  });
  await save(host, settings);
  if (isDeepStrictEqual(before, mailbox)) await restartRunning(host, account);
  return t`email ${mailbox.from || mailbox.username}`;
}

/** @throws CommandFailure with the step that failed */
async function prove(asker: Asker, email: EmailConfig, state: GrantRows): Promise<void> {
  const proof = await asker.during(
    t`Logging in to ${email.imapHost} and ${email.smtpHost}, and sending one test email to the mailbox itself`,
    () => proveMailbox(email, AbortSignal.timeout(PROOF_TIMEOUT_MS), { state }),
    ({ kind }) => (kind === 'proven' ? t`Sending and receiving work.` : t`The test failed.`),
  );
  if (proof.kind === 'proven') return;
  const problem = `${proof.step}: ${proof.problem.replace(/\.$/, '')}. ${proof.remedy}`;
  throw new CommandFailure(EXIT.failure, t`the mailbox test failed at ${problem}`);
}

/** A channel that stopped for want of a login starts again; changed settings restart it anyway. */
async function restartRunning(host: SetupHost, account: AccountId): Promise<void> {
  if ((await findRunningGateway(host.home)) === undefined) return;
  const { restartRemote, runningGateway } = await import('../../cli/login/remote-login.ts');
  const name = accountName({ channel: EMAIL, account });
  await restartRemote(await runningGateway(host), name);
}

/** The owner of the mailbox consents, in a browser or on another device; the tokens are stored. */
async function grantAccess(
  { env, clock }: SetupHost,
  asker: Asker,
  { oauth2: settings, imapHost, username, proxy }: EmailConfig,
  rows: GrantRows,
  onDevice: boolean,
): Promise<void> {
  const { consentInBrowser, consentOnDevice } = await import('./consent.ts');
  const provider = providerOf(settings, imapHost);
  if (onDevice && provider.deviceUrl === '') {
    const message = t`${imapHost} offers no login on another device; run the command without --device`;
    throw new CommandFailure(EXIT.usage, message);
  }
  const say = (text: string) => asker.say(text);
  const consent = { settings, provider, username, proxy, clock, say };
  const usesDevice = onDevice || (provider.deviceUrl !== '' && !hasBrowser(env, process.platform));
  const pasted = (isOfLogin: (address: string) => boolean, signal: AbortSignal) =>
    pastedAddress(asker, '--device', isOfLogin, signal);
  const stopped = t`Cancelled; nothing was saved.`;
  const grant = await whileConsenting(asker, stopped, (signal) =>
    usesDevice
      ? consentOnDevice({ ...consent, signal })
      : consentInBrowser({ ...consent, signal }, pasted),
  );
  await keepGrant(rows, settings, username, grant);
}

/** Whether a browser on this machine can be reached by its user. */
function hasBrowser(env: SetupHost['env'], platform: string): boolean {
  const has = (name: string) => (env[name] ?? '') !== '';
  if (has('SSH_CONNECTION')) return false;
  return platform !== 'linux' || has('DISPLAY') || has('WAYLAND_DISPLAY') || has('WSL_DISTRO_NAME');
}

async function mailSettings(
  host: SetupHost,
  asker: Asker,
  flags: EmailFlags,
  { account, isRetry }: { readonly account: AccountId; readonly isRetry: boolean },
): Promise<Settings> {
  const path = accountPath({ channel: EMAIL, account });
  const { email } = (await currentConfig(host)).channels;
  const written = mailboxesOf(email).get(account);
  const known = written ?? { ...mailboxSchema.parse({}), accounts: {} };
  const initial = known.from || known.username;
  const address =
    flags.email ||
    (await asker.text({
      message: t`Email address of the agent`,
      flag: '--email',
      ...(initial === '' ? {} : { initial }),
      check: (answer) =>
        /^[^\s@]+@[^\s@]+$/.test(answer)
          ? undefined
          : t`Enter an address such as name@example.org.`,
    }));
  const servers = await mailServers(
    asker,
    flags,
    address,
    address === initial ? known : besideFirst(email, account, address),
    known.proxy,
  );
  const allowFrom = await allowed(asker, flags, known.allowFrom);
  return {
    ...prefixed(path, servers),
    ...(await credentialSettings(host, asker, flags, {
      path,
      variables: account === DEFAULT_ACCOUNT ? 'EMAIL' : `EMAIL_${upperCase(account)}`,
      imapHost: servers.imapHost,
      written: known,
      before: address === initial ? known : undefined,
      isRetry,
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
  proxy: string,
): Promise<Servers> {
  const before = known?.imapHost === '' || known?.smtpHost === '' ? undefined : known;
  const isGiven = flags.imapHost !== undefined && flags.smtpHost !== undefined;
  const base = before ?? (isGiven ? undefined : await discover(asker, address, proxy));
  const host = (kind: 'IMAP' | 'SMTP', flag: string) =>
    asker.text({ message: t`${kind} server`, flag });
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

async function discover(
  asker: Asker,
  address: string,
  proxy: string,
): Promise<Servers | undefined> {
  const found = await asker.during(
    t`Looking up the mail servers of ${address}`,
    () => discoverMailbox(address, AbortSignal.timeout(DISCOVERY_TIMEOUT_MS), { proxy }),
    (mailbox) =>
      mailbox === undefined
        ? t`Not found; enter them.`
        : t`Found ${mailbox.imap.host} and ${mailbox.smtp.host}.`,
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
    message: t`Whose email may the agent answer? Addresses, separated by commas`,
    flag: '--email-allow',
    ...(known.length === 0 ? {} : { initial: known.join(', ') }),
  });
  return parseList(answer);
}

const upperCase = (account: string) => account.toUpperCase().replaceAll('-', '_');

function prefixed(path: string, servers: Servers): Settings {
  const entries = Object.entries(servers).map(([key, value]) => [`${path}.${key}`, value]);
  return Object.fromEntries(entries);
}

export type CredentialFlags = {
  readonly emailPassword?: string;
  readonly emailClientId?: string;
  readonly emailClientSecret?: string;
  readonly emailRefreshToken?: string;
  readonly emailAuthorizeUrl?: string;
  readonly emailDeviceUrl?: string;
  readonly emailTokenUrl?: string;
  readonly emailScope?: string;
  /** Consent on another device. */
  readonly emailDevice?: boolean;
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
  /** The login failed before: a configured password is asked for again. */
  readonly isRetry: boolean;
};

async function credentialSettings(
  host: SetupHost,
  asker: Asker,
  flags: CredentialFlags,
  context: CredentialContext,
): Promise<Settings> {
  const login = await loginKind(host, asker, flags, context);
  const settings =
    login === 'password'
      ? await passwordSettings(host, asker, flags, context)
      : await oauth2Settings(host, asker, flags, context, login);
  // An empty value removes what is configured; nothing is written if nothing is.
  const { password, oauth2 } = context.written;
  const written = { password, ...oauth2 };
  const isSaid = ([path, value]: readonly [string, JsonValue]) =>
    value !== '' || Object.entries(written).some(([key, old]) => path.endsWith(key) && old !== '');
  return Object.fromEntries(Object.entries(settings).filter(isSaid));
}

type LoginKind = 'password' | 'consent' | 'refreshToken';

/** Order: a flag or the environment, the earlier setup, the person where OAuth2 is common. */
async function loginKind(
  { env }: SetupHost,
  asker: Asker,
  flags: CredentialFlags,
  { imapHost, before, variables }: CredentialContext,
): Promise<LoginKind> {
  if (flags.emailPassword !== undefined) return 'password';
  const isGiven = flags.emailRefreshToken ?? env[`${variables}_REFRESH_TOKEN`] ?? '';
  if (isGiven !== '') return 'refreshToken';
  if (flags.emailClientId !== undefined || flags.emailDevice === true) return 'consent';
  if (before !== undefined && usesOAuth2(before)) {
    return before.oauth2.refreshToken === '' ? 'consent' : 'refreshToken';
  }
  if (knownProvider(imapHost) === undefined || !asker.interactive) return 'password';
  return asker.choose<LoginKind>(
    t`How does nanobot log in to the mailbox?`,
    [
      { value: 'password', label: t`With an app password` },
      { value: 'consent', label: t`With OAuth2 in a browser`, hint: t`needs a client id` },
      { value: 'refreshToken', label: t`With a refresh token that you have` },
    ],
    'password',
  );
}

async function oauth2Settings(
  { env }: SetupHost,
  asker: Asker,
  flags: CredentialFlags,
  { imapHost, before, path, variables }: CredentialContext,
  login: Exclude<LoginKind, 'password'>,
): Promise<Settings> {
  const oauth2 = `${path}.oauth2`;
  const known = before?.oauth2;
  const clientId = flags.emailClientId ?? known?.clientId ?? '';
  const refreshToken =
    login === 'consent'
      ? { [`${oauth2}.refreshToken`]: '' }
      : await secretSetting(
          `${oauth2}.refreshToken`,
          { given: flags.emailRefreshToken, variable: `${variables}_REFRESH_TOKEN`, env },
          known?.refreshToken ?? '',
          () => asker.secret({ message: t`Refresh token`, flag: '--email-refresh-token' }),
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
      clientId || (await asker.text({ message: t`OAuth2 client id`, flag: '--email-client-id' })),
    ...refreshToken,
    ...clientSecret,
    ...(await endpointSettings(asker, flags, oauth2, imapHost, login, known)),
    [`${oauth2}.scope`]: flags.emailScope ?? known?.scope ?? '',
  };
}

/** Empty where the provider's own are known. */
async function endpointSettings(
  asker: Asker,
  flags: CredentialFlags,
  oauth2: string,
  imapHost: string,
  login: LoginKind,
  known: EmailConfig['oauth2'] | undefined,
): Promise<Settings> {
  const isKnown = knownProvider(imapHost) !== undefined;
  const deviceUrl = flags.emailDeviceUrl ?? known?.deviceUrl ?? '';
  const address = async (given: string | undefined, message: string, flag: string) =>
    given || (isKnown ? '' : asker.text({ message, flag }));
  const authorizeUrl = flags.emailAuthorizeUrl ?? known?.authorizeUrl ?? '';
  const isNeeded = login === 'consent' && deviceUrl === '';
  return {
    [`${oauth2}.tokenUrl`]: await address(
      flags.emailTokenUrl ?? known?.tokenUrl,
      t`Token address of the provider`,
      '--email-token-url',
    ),
    [`${oauth2}.authorizeUrl`]: isNeeded
      ? await address(authorizeUrl, t`Consent address of the provider`, '--email-authorize-url')
      : authorizeUrl,
    [`${oauth2}.deviceUrl`]: deviceUrl,
  };
}

async function passwordSettings(
  { env }: SetupHost,
  asker: Asker,
  flags: CredentialFlags,
  { before, path, variables, isRetry }: CredentialContext,
): Promise<Settings> {
  const message = t`Password (an app password, if the provider has them)`;
  const source = { given: flags.emailPassword, variable: `${variables}_PASSWORD`, env };
  const known = isRetry && asker.interactive ? '' : (before?.password ?? '');
  return {
    [`${path}.oauth2.refreshToken`]: '',
    ...(await secretSetting(`${path}.password`, source, known, () =>
      asker.secret({ message, flag: '--email-password' }),
    )),
  };
}

type SecretSource = {
  readonly given: string | undefined;
  readonly variable: string;
  readonly env: SetupHost['env'];
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
