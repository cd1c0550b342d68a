// Onboarding, third step: the mailbox, its servers found from the address or typed, proved both ways
// by one mail to itself.

import type { Asker } from '../../cli/onboard/asker.ts';
import { currentConfig, type Settings, save, tryOut } from '../../cli/onboard/owner-step.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { CommandFailure, EXIT } from '../../cli/terminal.ts';
import { mailboxSchema } from '../../kernel/config/channels.ts';
import type { EmailConfig } from '../../kernel/config/config.ts';
import { accountPath } from '../../kernel/message/account.ts';
import { type AccountId, channelName, DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import { discoverMailbox, type MailProof, proveMailbox } from '../channel-setup.ts';
import { addressesOf, mailboxesOf } from './rules/accounts.ts';
import { domainOf } from './rules/address.ts';
import { type CredentialFlags, credentialSettings } from './setup-credentials.ts';

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
    const problem = `${proof.step}: ${proof.problem}. ${proof.remedy}`;
    throw new CommandFailure(EXIT.failure, `the mailbox failed at ${problem}`);
  }
  await save(terminal, settings);
  return `mail ${mailbox.from || mailbox.username}`;
}

async function prove(asker: Asker, email: EmailConfig): Promise<MailProof> {
  return asker.during(
    `Logging in at ${email.imapHost} and ${email.smtpHost}, and sending one mail to itself`,
    () => proveMailbox(email, AbortSignal.timeout(PROOF_TIMEOUT_MS)),
    (proof) => (proof.kind === 'proven' ? 'The mailbox sends and receives.' : 'That failed.'),
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
      message: 'The mail address of the agent',
      flag: '--email',
      ...(initial === '' ? {} : { initial }),
      check: (answer) => (/^[^\s@]+@[^\s@]+$/.test(answer) ? undefined : 'That is no address.'),
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

/** A further mailbox of the same provider has its servers. */
function besideFirst(first: EmailConfig, account: AccountId, address: string): Servers | undefined {
  const [own] = addressesOf(first);
  const isSame = own !== undefined && domainOf(own) === domainOf(address.toLowerCase());
  return isSame && account !== DEFAULT_ACCOUNT ? { ...first, username: address } : undefined;
}

/** What the flags say, then what was set up before, then what is found, then what is typed. */
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
    asker.text({ message: `The ${kind} server`, flag });
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
    `Looking for the servers of ${address}`,
    () => discoverMailbox(address, AbortSignal.timeout(DISCOVERY_TIMEOUT_MS)),
    (mailbox) =>
      mailbox === undefined
        ? 'Not found by itself.'
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
    message: 'Whose mail may it answer? Addresses, separated by commas',
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
