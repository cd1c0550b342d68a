// The email settings: their schema, the mailboxes they describe, the source of OAuth2 tokens, and
// checks beyond the schema.

import { z } from 'zod';
import {
  accountName,
  accountSection,
  allowFrom,
  choice,
  count,
  flag,
  type Problems,
  port,
  proxy,
  seconds,
  secret,
  strangers,
  text,
  texts,
  unless,
} from '../../kernel/config/settings-fields.ts';
import type { ConfigProblem } from '../../kernel/message/errors.ts';
import {
  type AccountId,
  accountId,
  accountPath,
  channelName,
  DEFAULT_ACCOUNT,
} from '../../kernel/message/ids.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { isOwnAddress, normalizeAddress } from './rules/address.ts';

/** `unlisted`: mails of people who are not let in; `all`: of everybody but the owner. */
const BRIDGE_MODES = ['off', 'unlisted', 'all'] as const;

export type BridgeMode = (typeof BRIDGE_MODES)[number];

const security = z
  .enum(['tls', 'starttls', 'none'])
  .describe('Encryption: tls, starttls, or none (only loopback hosts).');

const oauth2Schema = z.strictObject({
  tokenUrl: text().describe('Token address. Empty: the provider’s own (Gmail, Outlook).'),
  authorizeUrl: text().describe(
    'Address of the consent page. Empty: the provider’s own (Gmail, Outlook).',
  ),
  deviceUrl: text().describe(
    'Address that issues codes for a login on another device. Empty: the provider’s own (Outlook).',
  ),
  clientId: text().describe(
    'Client id. If set and the password is empty, OAuth2 is used; "nanobot channels login email" logs in.',
  ),
  clientSecret: secret().default('').describe('Client secret. Empty for a public client.'),
  refreshToken: secret()
    .default('')
    .describe('A refresh token of your own, instead of the login. If set, OAuth2 is used.'),
  scope: text().describe('Scope. Empty: what the provider needs for IMAP and SMTP.'),
});

const answerCount = () => count(0, 5000);

/** The log of sent mail goes back 7 days and holds 5,000 mails. */
const emailLimits = z.strictObject({
  perHour: answerCount()
    .default(60)
    .describe('Answers to one verified person per hour; more wait. 0: no limit.'),
  perDay: answerCount().default(300).describe('The same in 24 hours.'),
  threadPerHour: answerCount()
    .default(0)
    .describe('Answers in one thread per hour; more wait. 0: no limit.'),
  spacingSecs: seconds(0, 3600, 0).describe('Shortest pause between two answers in a thread.'),
  mailboxPerHour: answerCount()
    .default(600)
    .describe('Emails from this mailbox per hour; more wait. 0: no limit.'),
  mailboxPerDay: answerCount().default(3000).describe('The same in 24 hours.'),
  unprovenPerDay: answerCount()
    .default(1)
    .describe('Answers in 24 hours to an unverified address. 0: no limit.'),
  unprovenDomainPerHour: answerCount()
    .default(30)
    .describe('Answers per hour to all unverified addresses of a domain; more wait.'),
  withoutReply: answerCount()
    .default(200)
    .describe('Emails in a thread in 7 days without a new one from the person. 0: no limit.'),
  loopMails: count(0, 100, 5).describe(
    'Quick replies in a row, each soon after the agent’s answer, that end a thread. 0: never.',
  ),
  loopSecs: seconds(1, 3600, 120).describe(
    'How soon after the agent’s answer a reply counts as quick.',
  ),
  bounces: count(0, 1000, 3).describe(
    'Bounces per hour that pause sending to an address. 0: never.',
  ),
  bouncePauseDays: count(1, 7, 7).describe('How long sending to the address is paused.'),
  bouncePercent: count(0, 100, 5).describe(
    'Bounces among the last 50 emails that stop all sending. 0: never.',
  ),
});

const mailboxFields = {
  enabled: flag(false).describe('Read this mailbox and answer.'),
  imapHost: text().describe('IMAP server, from which email is read.'),
  imapPort: port.default(993).describe('Its port.'),
  imapSecurity: security.default('tls'),
  smtpHost: text().describe('SMTP server, through which email is sent.'),
  smtpPort: port.default(465).describe('Its port.'),
  smtpSecurity: security.default('tls'),
  proxy,
  username: text().describe('User name at both servers, mostly the address.'),
  password: secret().default('').describe('Password; an app password if the provider has them.'),
  oauth2: oauth2Schema.prefault({}),
  from: text().describe('Address of the mailbox. Empty: the username.'),
  aliases: texts().describe('Additional addresses of this mailbox.'),
  mailbox: text('INBOX').describe('Folder that is read.'),
  allowFrom: allowFrom.describe(
    t`Sender addresses that may talk to the agent. Empty: nobody; "*": everybody.`,
  ),
  strangers,
  authservId: text().describe(
    'authserv-id of the receiving server whose Authentication-Results are trusted.',
  ),
  acceptUnverified: flag(false).describe(
    'Also answer email from unverified senders. Anyone can forge a From line.',
  ),
  bridge: choice(BRIDGE_MODES, 'off').describe(
    'Emails that the owner answers from a chat instead of the agent. unlisted: from people who are ' +
      'not let in; all: from everybody except the owner.',
  ),
  replyAll: choice(['never', 'trusted'], 'never').describe(
    'trusted: answers to a verified sender also go to recipients on allowFrom.',
  ),
  quoteOriginal: flag(true).describe('Quote the email in the answer, up to 4,000 characters.'),
  limits: emailLimits.prefault({}),
  pollSecs: seconds(5, 3600, 60).describe('Seconds between full checks of the mailbox.'),
};

/** One mailbox, the first or a further one. */
export const mailboxSchema = z.strictObject(mailboxFields);

export const emailSchema = z.strictObject({
  ...mailboxFields,
  accounts: z
    .record(accountName, accountSection(mailboxFields))
    .default({})
    .describe(
      'Additional mailboxes by short name; missing settings are those of the first mailbox.',
    ),
});
export type EmailConfig = z.infer<typeof emailSchema>;

const ADDRESS = /^[^\s@<>]+@[^\s@<>]+$/;

export function emailConflicts(email: EmailConfig): Problems {
  const mailboxes = [...mailboxesOf(email)].flatMap(([account, mailbox]) => {
    const path = accountPath({ channel: channelName('email'), account });
    return [
      ...serverProblems(mailbox, path),
      ...oauth2Problems(mailbox, path),
      ...addressProblems(mailbox, path),
    ];
  });
  return [...mailboxes, ...sharedAddresses(email)];
}

function oauth2Problems(email: EmailConfig, path: string): Problems {
  const { oauth2, imapHost } = email;
  if (!usesOAuth2(email)) return [];
  const { tokenUrl } = providerOf(oauth2, imapHost);
  return [
    ...(['authorizeUrl', 'deviceUrl'] as const).flatMap((key) =>
      unless(
        oauth2[key] === '' || isSafeTokenUrl(oauth2[key]),
        `${path}.oauth2.${key}`,
        t`not an https address`,
        t`Set it to the endpoint of your provider, e.g. https://...`,
      ),
    ),
    ...unless(
      oauth2.clientId !== '',
      `${path}.oauth2.clientId`,
      t`required with ${path}.oauth2.refreshToken`,
      t`Set it to the id of the client for which the refresh token was created.`,
    ),
    ...unless(
      isSafeTokenUrl(tokenUrl),
      `${path}.oauth2.tokenUrl`,
      tokenUrl === '' ? t`the token server of ${imapHost} is unknown` : t`not an https address`,
      t`Set it to the token endpoint of your provider, e.g. https://...`,
    ),
  ];
}

function serverProblems(email: EmailConfig, path: string): Problems {
  const credential = usesOAuth2(email) ? [] : (['password'] as const);
  const needed = ['imapHost', 'smtpHost', 'username', ...credential] as const;
  const kinds = ['imap', 'smtp'] as const;
  return [
    ...needed.flatMap((key) =>
      unless(
        !email.enabled || email[key] !== '',
        `${path}.${key}`,
        t`required while ${path}.enabled is true`,
        t`Set it; "nanobot onboard" detects the servers of most mailboxes.`,
      ),
    ),
    ...kinds.flatMap((kind) => {
      const host = email[`${kind}Host`];
      return unless(
        email[`${kind}Security`] !== 'none' || host === '' || isLoopbackHost(host),
        `${path}.${kind}Security`,
        t`"none" would send the password unencrypted to ${host}`,
        t`Use "tls" or "starttls"; "none" is only for servers on this machine.`,
      );
    }),
  ];
}

function addressProblems(email: EmailConfig, path: string): Problems {
  const { enabled, from, username, aliases } = email;
  const senders = email.allowFrom.filter((address) => address !== '*');
  const written = [
    ...senders.map((address) => ['allowFrom', address] as const),
    ...aliases.map((address) => ['aliases', address] as const),
    ...(from === '' ? [] : [['from', from] as const]),
  ];
  return [
    ...written.flatMap(([key, address]) =>
      unless(
        ADDRESS.test(address),
        `${path}.${key}`,
        t`"${address}" is not an email address`,
        t`Write it as name@example.org without a display name.`,
      ),
    ),
    ...unless(
      !enabled || from !== '' || username === '' || ADDRESS.test(username),
      `${path}.from`,
      t`the address is unknown, because the username is not an address`,
      t`Set it to the address of this mailbox.`,
    ),
  ];
}

// The mailboxes of the email channel: the first is its own section; further ones inherit from it
// what they leave out. Credentials, addresses and the allow list belong to each mailbox, and a
// mailbox with a server of its own inherits nothing that belongs to the other server.

const OWN = ['accounts', 'username', 'password', 'oauth2', 'from', 'aliases', 'allowFrom'];
/** Which assertions about senders are trusted depends on the receiving server. */
const OF_IMAP = ['imapPort', 'imapSecurity', 'authservId'];
const OF_SMTP = ['smtpPort', 'smtpSecurity'];

/** Every mailbox as if it were the only one, the first one first. */
export function mailboxesOf(email: EmailConfig): ReadonlyMap<AccountId, EmailConfig> {
  const first: EmailConfig = { ...email, accounts: {} };
  const further = Object.entries(email.accounts).map(
    ([name, written]) => [accountId(name), furtherMailbox(email, written)] as const,
  );
  return new Map([[DEFAULT_ACCOUNT, first], ...further]);
}

function furtherMailbox(
  first: EmailConfig,
  written: Readonly<Record<string, unknown>>,
): EmailConfig {
  const own = [
    ...OWN,
    ...('imapHost' in written ? OF_IMAP : []),
    ...('smtpHost' in written ? OF_SMTP : []),
  ];
  const taken = Object.entries(first).filter(([key]) => !own.includes(key));
  const limits = { ...first.limits, ...(written['limits'] ?? {}) };
  const merged = { ...Object.fromEntries(taken), ...written, limits };
  const enabled = first.enabled && written['enabled'] !== false;
  return { ...mailboxSchema.parse({ ...merged, enabled }), accounts: {} };
}

/** Addresses of a mailbox, its own first; empty while it has no usable one. */
export function addressesOf(mailbox: EmailConfig): readonly string[] {
  const { from, username, aliases } = mailbox;
  return [from === '' ? username : from, ...aliases].flatMap(
    (address) => normalizeAddress(address) ?? [],
  );
}

/** The same address on two mailboxes: an answer could come from either. */
function sharedAddresses(email: EmailConfig): Problems {
  const takenBy = new Map<string, string>();
  const problems: ConfigProblem[] = [];
  for (const [account, mailbox] of mailboxesOf(email)) {
    const path = accountPath({ channel: channelName('email'), account });
    for (const address of addressesOf(mailbox)) {
      const [, other] = [...takenBy].find(([known]) => isOwnAddress(address, [known])) ?? [];
      takenBy.set(address, other ?? path);
      if (other === undefined || other === path) continue;
      const problem = t`"${address}" also belongs to ${other}`;
      problems.push({ path, problem, remedy: t`Use different addresses for each mailbox.` });
    }
  }
  return problems;
}

// OAuth2 for mailboxes: when it replaces the password, and where the large providers ask for consent
// and issue tokens.

export type OAuth2Settings = z.infer<typeof oauth2Schema>;

export type OAuth2Provider = {
  readonly authorizeUrl: string;
  /** RFC 8628; empty: the provider offers none for mail. */
  readonly deviceUrl: string;
  readonly tokenUrl: string;
  readonly scope: string;
  /** Of the redirect to this machine, as providers let clients register it. */
  readonly redirectHost: '127.0.0.1' | 'localhost';
  /** Parameters of the consent page that make the provider issue a refresh token. */
  readonly parameters: Readonly<Record<string, string>>;
};

type KnownProvider = OAuth2Provider & { readonly imapHosts: readonly string[] };

/**
 * By IMAP host, so that company domains at these providers are recognised.
 * @see https://developers.google.com/identity/protocols/oauth2/native-app
 * @see https://learn.microsoft.com/entra/identity-platform/reply-url
 * @see https://learn.microsoft.com/exchange/client-developer/legacy-protocols/how-to-authenticate-an-imap-pop-smtp-application-by-using-oauth
 */
const PROVIDERS: readonly KnownProvider[] = [
  {
    imapHosts: ['imap.gmail.com', 'imap.googlemail.com'],
    authorizeUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
    // Google does not grant the mail scope to devices.
    deviceUrl: '',
    tokenUrl: 'https://oauth2.googleapis.com/token',
    scope: 'https://mail.google.com/',
    redirectHost: '127.0.0.1',
    parameters: { access_type: 'offline', prompt: 'consent' },
  },
  {
    imapHosts: ['outlook.office365.com', 'imap-mail.outlook.com'],
    authorizeUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    deviceUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/devicecode',
    tokenUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    scope:
      'https://outlook.office.com/IMAP.AccessAsUser.All https://outlook.office.com/SMTP.Send offline_access',
    // Any port is accepted for a registered http://localhost only.
    redirectHost: 'localhost',
    parameters: {},
  },
];

const UNKNOWN_PROVIDER: OAuth2Provider = {
  ...{ authorizeUrl: '', deviceUrl: '', tokenUrl: '', scope: '' },
  ...{ redirectHost: '127.0.0.1', parameters: {} },
};

/** Login is by OAuth2 and the password is not used. */
export function usesOAuth2({
  oauth2,
  password,
}: Pick<EmailConfig, 'oauth2' | 'password'>): boolean {
  return oauth2.refreshToken !== '' || (oauth2.clientId !== '' && password === '');
}

export function knownProvider(imapHost: string): OAuth2Provider | undefined {
  const host = imapHost.toLowerCase();
  return PROVIDERS.find(({ imapHosts }) => imapHosts.includes(host));
}

/**
 * The configured endpoints, else the provider's own; those of a configured token server are never
 * mixed with those of another.
 */
export function providerOf(settings: OAuth2Settings, imapHost: string): OAuth2Provider {
  const own = settings.tokenUrl === '' ? knownProvider(imapHost) : undefined;
  const { authorizeUrl, deviceUrl, tokenUrl, scope, ...rest } = own ?? UNKNOWN_PROVIDER;
  return {
    authorizeUrl: settings.authorizeUrl || authorizeUrl,
    deviceUrl: settings.deviceUrl || deviceUrl,
    tokenUrl: settings.tokenUrl || tokenUrl,
    scope: settings.scope || scope,
    ...rest,
  };
}

/** Whether a refresh token may be sent there: encrypted, or on this machine. */
export function isSafeTokenUrl(tokenUrl: string): boolean {
  if (!URL.canParse(tokenUrl)) return false;
  const { protocol, hostname, username, password } = new URL(tokenUrl);
  if (username !== '' || password !== '') return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}
