// Onboarding, third step: the mailbox, its servers found from the address or typed, proved both ways
// by one mail to itself.

import { discoverMailbox, type MailProof, proveMailbox } from '../../app/channel-setup.ts';
import type { EmailConfig } from '../../core/config.ts';
import { CommandFailure, EXIT } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';
import type { Asker } from './asker.ts';
import { currentConfig, type Settings, save, tryOut } from './draft.ts';

const DISCOVERY_TIMEOUT_MS = 15_000;
const PROOF_TIMEOUT_MS = 180_000;
const PASSWORD_VARIABLE = 'EMAIL_PASSWORD';

export type EmailFlags = {
  /** An address, or false for --no-email. */
  readonly email?: string | false;
  readonly emailPassword?: string;
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
): Promise<void> {
  if (flags.email === false) return;
  if (flags.email === undefined && !(await asker.confirm('Connect a mailbox?', false))) return;
  for (;;) {
    const settings = await mailSettings(terminal, asker, flags);
    const config = await tryOut(terminal, settings);
    const proof = await prove(asker, config.channels.email);
    if (proof.kind === 'proven') return save(terminal, settings);
    const problem = `${proof.step}: ${proof.problem}. ${proof.remedy}`;
    if (!asker.interactive)
      throw new CommandFailure(EXIT.failure, `the mailbox failed at ${problem}`);
    asker.warn(problem);
    if (!(await asker.confirm('Try again?', true))) return;
  }
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
): Promise<Settings> {
  const known = (await currentConfig(terminal)).channels.email;
  const initial = known.from || known.username;
  const address =
    flags.email ||
    (await asker.text({
      message: 'The mail address of the agent',
      flag: '--email',
      ...(initial === '' ? {} : { initial }),
      check: (answer) => (/^[^\s@]+@[^\s@]+$/.test(answer) ? undefined : 'That is no address.'),
    }));
  const servers = await mailServers(asker, flags, address);
  const fromEnvironment = terminal.env[PASSWORD_VARIABLE] ?? '';
  const password =
    flags.emailPassword ||
    fromEnvironment ||
    (await asker.secret({
      message: 'Its password (an app password, where the provider has them)',
      flag: '--email-password',
    }));
  const allowFrom = await allowed(asker, flags, known.allowFrom);
  return {
    ...prefixed(servers),
    'channels.email.enabled': true,
    'channels.email.from': address,
    'channels.email.password': password === fromEnvironment ? `\${${PASSWORD_VARIABLE}}` : password,
    'channels.email.allowFrom': allowFrom,
  };
}

type Servers = Pick<
  EmailConfig,
  'imapHost' | 'imapPort' | 'imapSecurity' | 'smtpHost' | 'smtpPort' | 'smtpSecurity' | 'username'
>;

/** What the flags say, then what is found, then what the person types. */
async function mailServers(asker: Asker, flags: EmailFlags, address: string): Promise<Servers> {
  const isGiven = flags.imapHost !== undefined && flags.smtpHost !== undefined;
  const found = isGiven
    ? undefined
    : await asker.during(
        `Looking for the servers of ${address}`,
        () => discoverMailbox(address, AbortSignal.timeout(DISCOVERY_TIMEOUT_MS)),
        (mailbox) =>
          mailbox === undefined
            ? 'Not found; please name them.'
            : `Found ${mailbox.imap.host} and ${mailbox.smtp.host}.`,
      );
  const host = (kind: 'IMAP' | 'SMTP', flag: string) =>
    asker.text({ message: `The ${kind} server`, flag });
  if (found?.hint !== undefined) asker.warn(found.hint);
  return {
    imapHost: flags.imapHost ?? found?.imap.host ?? (await host('IMAP', '--imap-host')),
    imapPort: flags.imapPort ?? found?.imap.port ?? (flags.imapSecurity === 'starttls' ? 143 : 993),
    imapSecurity: flags.imapSecurity ?? found?.imap.security ?? 'tls',
    smtpHost: flags.smtpHost ?? found?.smtp.host ?? (await host('SMTP', '--smtp-host')),
    smtpPort: flags.smtpPort ?? found?.smtp.port ?? (flags.smtpSecurity === 'starttls' ? 587 : 465),
    smtpSecurity: flags.smtpSecurity ?? found?.smtp.security ?? 'tls',
    username: flags.emailUsername ?? found?.username ?? address,
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

function prefixed(servers: Servers): Settings {
  const entries = Object.entries(servers).map(([key, value]) => [`channels.email.${key}`, value]);
  return Object.fromEntries(entries);
}
