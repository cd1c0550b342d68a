// Finds the servers of a mailbox from its address (table of providers, DNS service records by RFC
// 6186 and RFC 8314, autoconfig) and tests them before they are saved: IMAP opens the mailbox, SMTP
// accepts a login, and one mail to itself arrives.

import { randomUUID } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { ChannelError, DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import { within } from '../../lib/async.ts';
import { proxyErrorIn } from '../../lib/net/proxies.ts';
import { createSafeFetch } from '../../lib/net/safe-fetch.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, systemClock } from '../../lib/time/clock.ts';
import { type GrantRows, TOKEN_REFUSED } from './access-tokens.ts';
import { AUTH_REFUSED, type MailServer, mailAccountOf } from './connection-settings.ts';
import { domainOf, normalizeAddress } from './rules/address.ts';
import { type EmailConfig, usesOAuth2 } from './settings.ts';

const DNS_TIMEOUT_MS = 3_000;
const FETCH_TIMEOUT_MS = 5_000;
const MAX_AUTOCONFIG_BYTES = 100_000;

/** The address is user input, so its domain may be any host. */
const RULES = { ports: [443], allowPrivateHosts: [] };

export type ServiceRecord = {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
};

export type DiscoverDeps = {
  /** The setting; default: none. */
  readonly proxy?: string;
  /** Service records of a name; empty if there are none. */
  readonly services?: (name: string) => Promise<readonly ServiceRecord[]>;
  /** The text of a page, or undefined if it is not available. */
  readonly page?: (url: string, signal: AbortSignal) => Promise<string | undefined>;
};

export async function discoverMailbox(
  address: string,
  signal: AbortSignal,
  deps: DiscoverDeps = {},
): Promise<DiscoveredMailbox | undefined> {
  const normal = normalizeAddress(address.trim());
  if (normal === undefined) return undefined;
  const domain = domainOf(normal);
  const known = knownProvider(normal, domain);
  if (known !== undefined) return known;
  const services = deps.services ?? systemServices;
  const page = deps.page ?? pagesThrough(deps.proxy ?? '');
  return (
    (await byServiceRecords(normal, domain, services)) ??
    (await byAutoconfig(normal, domain, page, signal))
  );
}

async function byServiceRecords(
  address: string,
  domain: string,
  services: NonNullable<DiscoverDeps['services']>,
): Promise<DiscoveredMailbox | undefined> {
  const find = async (
    name: string,
    security: MailServer['security'],
  ): Promise<MailServer | undefined> => {
    const records = [...(await services(`${name}._tcp.${domain}`))];
    const best = records.sort((a, b) => a.priority - b.priority)[0];
    // A single dot declares that the service does not exist.
    if (best === undefined || best.name === '' || best.name === '.') return undefined;
    return { host: best.name.replace(/\.$/, ''), port: best.port, security };
  };
  const imap = await find('_imaps', 'tls');
  const smtp = (await find('_submissions', 'tls')) ?? (await find('_submission', 'starttls'));
  if (imap === undefined || smtp === undefined) return undefined;
  const otherHost = [imap.host, smtp.host].find((host) => !`.${host}`.endsWith(`.${domain}`));
  // DNS can be forged, so a person must confirm (RFC 6186 section 6).
  const hint =
    otherHost && t`DNS names ${otherHost} as mail server. Check that this is your provider.`;
  return { imap, smtp, username: address, hint };
}

async function byAutoconfig(
  address: string,
  domain: string,
  page: NonNullable<DiscoverDeps['page']>,
  signal: AbortSignal,
): Promise<DiscoveredMailbox | undefined> {
  const urls = [
    `https://autoconfig.${domain}/mail/config-v1.1.xml?emailaddress=${encodeURIComponent(address)}`,
    `https://${domain}/.well-known/autoconfig/mail/config-v1.1.xml`,
  ];
  for (const url of urls) {
    signal.throwIfAborted();
    const xml = await page(url, signal);
    const found = xml === undefined ? undefined : readAutoconfig(xml, address);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The encrypted IMAP and SMTP servers of an autoconfig file, version 1.1. */
function readAutoconfig(xml: string, address: string): DiscoveredMailbox | undefined {
  const imap = serverIn(xml, 'incomingServer', 'imap');
  const smtp = serverIn(xml, 'outgoingServer', 'smtp');
  if (imap === undefined || smtp === undefined) return undefined;
  const localPart = address.slice(0, address.lastIndexOf('@'));
  const username = imap.username
    .replaceAll('%EMAILADDRESS%', address)
    .replaceAll('%EMAILLOCALPART%', localPart)
    .replaceAll('%EMAILDOMAIN%', domainOf(address));
  return { imap: imap.server, smtp: smtp.server, username };
}

function serverIn(
  xml: string,
  element: string,
  type: string,
): { readonly server: MailServer; readonly username: string } | undefined {
  const blocks = xml.matchAll(
    new RegExp(`<${element}\\s+type="${type}"[^>]*>(.*?)</${element}>`, 'gs'),
  );
  for (const [, block = ''] of blocks) {
    const field = (name: string) =>
      new RegExp(`<${name}>\\s*([^<]*?)\\s*</${name}>`).exec(block)?.[1] ?? '';
    const security = { SSL: 'tls', STARTTLS: 'starttls' }[field('socketType').toUpperCase()];
    const host = field('hostname');
    const port = Number(field('port'));
    const isUsable = /^[a-z0-9.-]+$/i.test(host) && Number.isInteger(port) && port > 0;
    if (isUsable && (security === 'tls' || security === 'starttls')) {
      return { server: { host, port, security }, username: field('username') };
    }
  }
  return undefined;
}

async function systemServices(name: string): Promise<readonly ServiceRecord[]> {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: 1 });
  return resolver.resolveSrv(name).catch(() => []);
}

function pagesThrough(proxy: string): NonNullable<DiscoverDeps['page']> {
  const safeFetch = createSafeFetch({ rules: () => RULES, proxy: () => proxy });
  const limits = { timeoutMs: FETCH_TIMEOUT_MS, maxBytes: MAX_AUTOCONFIG_BYTES };
  return async (url, signal) => {
    const answer = await safeFetch(url, { ...limits, signal }).catch(() => undefined);
    return answer?.status === 200 ? Buffer.from(answer.body).toString('utf8') : undefined;
  };
}

// Servers of the large mail providers by the domain of the address, from their help pages.

type DiscoveredMailbox = {
  readonly imap: MailServer;
  readonly smtp: MailServer;
  readonly username: string;
  /** What the person must know before it works, e.g. that an app password is needed. */
  readonly hint?: string | undefined;
};

/** IMAP over TLS on port 993; SMTP over TLS on port 465, or with STARTTLS on port 587. */
type Provider = readonly [
  domains: string,
  imap: string,
  smtp: string,
  port: 465 | 587,
  hint?: string,
];

const APP_PASSWORD = t`This provider requires an app password; create one in the account settings.`;
const ENABLE_IMAP = t`Enable IMAP in the settings of the provider’s web mail first.`;

const PROVIDERS: readonly Provider[] = [
  ['gmail.com googlemail.com', 'imap.gmail.com', 'smtp.gmail.com', 465, APP_PASSWORD],
  [
    'outlook.com hotmail.com live.com msn.com outlook.de hotmail.de',
    'outlook.office365.com',
    'smtp-mail.outlook.com',
    587,
    t`Microsoft does not accept passwords over IMAP; use OAuth2 (a client id).`,
  ],
  ['icloud.com me.com mac.com', 'imap.mail.me.com', 'smtp.mail.me.com', 587, APP_PASSWORD],
  [
    'yahoo.com ymail.com yahoo.de yahoo.co.uk yahoo.fr rocketmail.com',
    'imap.mail.yahoo.com',
    'smtp.mail.yahoo.com',
    465,
    APP_PASSWORD,
  ],
  ['aol.com', 'imap.aol.com', 'smtp.aol.com', 465, APP_PASSWORD],
  ['fastmail.com fastmail.fm', 'imap.fastmail.com', 'smtp.fastmail.com', 465, APP_PASSWORD],
  ['gmx.de gmx.net gmx.at gmx.ch', 'imap.gmx.net', 'mail.gmx.net', 465, ENABLE_IMAP],
  ['gmx.com', 'imap.gmx.com', 'mail.gmx.com', 465, ENABLE_IMAP],
  ['web.de', 'imap.web.de', 'smtp.web.de', 587, ENABLE_IMAP],
  ['mailbox.org', 'imap.mailbox.org', 'smtp.mailbox.org', 465],
  ['posteo.de posteo.net posteo.org', 'posteo.de', 'posteo.de', 465],
  ['zoho.com zohomail.com', 'imap.zoho.com', 'smtp.zoho.com', 465, ENABLE_IMAP],
  ['zoho.eu zohomail.eu', 'imap.zoho.eu', 'smtp.zoho.eu', 465, ENABLE_IMAP],
  [
    't-online.de magenta.de',
    'secureimap.t-online.de',
    'securesmtp.t-online.de',
    465,
    t`T-Online requires the separate email password from its customer centre.`,
  ],
  ['freenet.de', 'mx.freenet.de', 'mx.freenet.de', 465],
  ['yandex.com yandex.ru', 'imap.yandex.com', 'smtp.yandex.com', 465, APP_PASSWORD],
];

/** The servers of a provider in the table. */
function knownProvider(address: string, domain: string): DiscoveredMailbox | undefined {
  const provider = PROVIDERS.find(([domains]) => domains.split(' ').includes(domain));
  if (provider === undefined) return undefined;
  const [, imap, smtp, port, hint] = provider;
  return {
    imap: { host: imap, port: 993, security: 'tls' },
    smtp: { host: smtp, port, security: port === 465 ? 'tls' : 'starttls' },
    username: address,
    hint,
  };
}

// Tests a mailbox. The mail libraries are loaded on call.

/** Time limit for the mail to itself. */
const ARRIVAL_LIMIT_MS = 60_000;

export type MailProofStep = 'imap' | 'smtp' | 'round trip';

export type MailProof =
  | { readonly kind: 'proven' }
  | {
      readonly kind: 'failed';
      readonly step: MailProofStep;
      readonly problem: string;
      readonly remedy: string;
    };

type ProveOptions = {
  /** Default: true. */
  readonly sendsMail?: boolean;
  readonly clock?: Clock;
  readonly certificateAuthority?: string;
  /** Where the tokens of the mailbox are kept. */
  readonly state?: GrantRows | undefined;
};

const REMEDIES: Readonly<Record<MailProofStep, string>> = {
  imap: t`Check host, port and encryption of the IMAP server.`,
  smtp: t`Check host, port and encryption of the SMTP server.`,
  'round trip': t`The email was sent but did not arrive in the inbox. Check the spam folder.`,
};
const PASSWORD_REMEDY = t`Check the user name and password; many providers require an app password.`;
const TOKEN_REMEDY = t`Check the user name, that IMAP and SMTP are enabled for the mailbox, and that the scope covers both.`;
const GRANT_REMEDY = t`Log in again (nanobot channels login email), or create a new refresh token; check client id, client secret, token address and scope.`;

/** Logs in on both mail servers without sending anything. */
export const checkMailLogins = (config: EmailConfig, signal: AbortSignal, state?: GrantRows) =>
  proveMailbox(config, signal, { state, sendsMail: false });

/** Never rejects for failures of the mail servers; rejects only when the signal aborts. */
export async function proveMailbox(
  config: EmailConfig,
  signal: AbortSignal,
  options: ProveOptions = {},
): Promise<MailProof> {
  const { clock = systemClock, sendsMail = true, certificateAuthority, state } = options;
  let step: MailProofStep = 'imap';
  const begin = (next: MailProofStep) => {
    signal.throwIfAborted();
    step = next;
  };
  try {
    begin('imap');
    const [{ withConnection }, { proveSmtp }, { arrivalOf, sendToOurselves }] = await Promise.all([
      import('./imap-connection.ts'),
      import('./smtp.ts'),
      import('./mail-session.ts'),
    ]);
    const account = mailAccountOf(config, { clock, certificateAuthority, state });
    const mailbox = { account, folder: config.mailbox, clock };
    await withConnection(mailbox, signal, async (connection) => {
      await connection.open(config.mailbox);
      begin('smtp');
      await proveSmtp(account, signal);
      if (!sendsMail) return;
      begin('round trip');
      const messageId = await sendToOurselves(mailbox, proofMail(), signal);
      const arriving = (inner: AbortSignal) => arrivalOf(connection, mailbox, messageId, inner);
      await within({ clock, ms: ARRIVAL_LIMIT_MS, signal }, arriving, notArrived);
    });
    return { kind: 'proven' };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ChannelError || error instanceof DeliveryError)) throw error;
    const { problem = error.message, remedy = remedyFor(error, step, config) } =
      proxyErrorIn(error) ?? {};
    return { kind: 'failed', step, problem, remedy };
  }
}

const proofMail = () => ({
  name: `proof.${randomUUID()}`,
  subject: 'nanobot setup test',
  text: t`nanobot can send from and read this mailbox. You can delete this email.`,
});

const notArrived = () =>
  new ChannelError('mail_round_trip', t`the test email did not arrive within 60 s`, {
    remedy: NEVER,
  });

function remedyFor(
  { code }: ChannelError | DeliveryError,
  step: MailProofStep,
  config: EmailConfig,
): string {
  if (code === TOKEN_REFUSED) return GRANT_REMEDY;
  if (code !== AUTH_REFUSED) return REMEDIES[step];
  return usesOAuth2(config) ? TOKEN_REMEDY : PASSWORD_REMEDY;
}
