// Finds the servers of a mailbox from its address: the table of providers, then DNS service records
// (RFC 6186, RFC 8314), then the provider's autoconfig file. Nothing found is not an error: hosts can
// be typed.

import { Resolver } from 'node:dns/promises';
import { createSafeFetch } from '../../lib/net/safe-fetch.ts';
import type { MailServer } from './connection-settings.ts';
import { domainOf, normalizeAddress } from './rules/address.ts';

const DNS_TIMEOUT_MS = 3_000;
const FETCH_TIMEOUT_MS = 5_000;
const MAX_AUTOCONFIG_BYTES = 100_000;

/** The address is a person's, so the domain in it is anybody's. */
const safeFetch = createSafeFetch({ rules: () => ({ ports: [443], allowPrivateHosts: [] }) });

export type ServiceRecord = {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
};

export type DiscoverDeps = {
  /** Service records of a name; empty where there are none. */
  readonly services?: (name: string) => Promise<readonly ServiceRecord[]>;
  /** The text of a page, or undefined where it cannot be had. */
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
  const page = deps.page ?? fetchPage;
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
    // A single dot says that the service is decidedly not there.
    if (best === undefined || best.name === '' || best.name === '.') return undefined;
    return { host: best.name.replace(/\.$/, ''), port: best.port, security };
  };
  const imap = await find('_imaps', 'tls');
  const smtp = (await find('_submissions', 'tls')) ?? (await find('_submission', 'starttls'));
  if (imap === undefined || smtp === undefined) return undefined;
  const foreign = [imap.host, smtp.host].find((host) => !`.${host}`.endsWith(`.${domain}`));
  // DNS can be forged, so a person has to look (RFC 6186 section 6).
  const hint = foreign && `The name service names ${foreign}: check that this is your provider.`;
  return { imap, smtp, username: address, ...(hint === undefined ? {} : { hint }) };
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

async function fetchPage(url: string, signal: AbortSignal): Promise<string | undefined> {
  const limits = { timeoutMs: FETCH_TIMEOUT_MS, maxBytes: MAX_AUTOCONFIG_BYTES };
  const answer = await safeFetch(url, { ...limits, signal }).catch(() => undefined);
  return answer?.status === 200 ? Buffer.from(answer.body).toString('utf8') : undefined;
}

// Servers of the large mail providers, by the domain of the address. Facts from their own help
// pages; whoever is not listed is asked by DNS and autoconfig (discover.ts).

export type DiscoveredMailbox = {
  readonly imap: MailServer;
  readonly smtp: MailServer;
  readonly username: string;
  /** What the person has to know before it works, e.g. that an app password is needed. */
  readonly hint?: string;
};

type Provider = {
  readonly domains: readonly string[];
  readonly imap: readonly [host: string, port: number, security: MailServer['security']];
  readonly smtp: readonly [host: string, port: number, security: MailServer['security']];
  readonly hint?: string;
};

const APP_PASSWORD = 'This provider asks for an app password; make one in the account settings.';
const ENABLE_IMAP = 'Switch IMAP on in the web mailer’s settings first.';

const PROVIDERS: readonly Provider[] = [
  {
    domains: ['gmail.com', 'googlemail.com'],
    imap: ['imap.gmail.com', 993, 'tls'],
    smtp: ['smtp.gmail.com', 465, 'tls'],
    hint: APP_PASSWORD,
  },
  {
    domains: ['outlook.com', 'hotmail.com', 'live.com', 'msn.com', 'outlook.de', 'hotmail.de'],
    imap: ['outlook.office365.com', 993, 'tls'],
    smtp: ['smtp-mail.outlook.com', 587, 'starttls'],
    hint: 'Microsoft accepts no passwords over IMAP: OAuth2 is needed (a client id and a refresh token).',
  },
  {
    domains: ['icloud.com', 'me.com', 'mac.com'],
    imap: ['imap.mail.me.com', 993, 'tls'],
    smtp: ['smtp.mail.me.com', 587, 'starttls'],
    hint: APP_PASSWORD,
  },
  {
    domains: ['yahoo.com', 'ymail.com', 'yahoo.de', 'yahoo.co.uk', 'yahoo.fr', 'rocketmail.com'],
    imap: ['imap.mail.yahoo.com', 993, 'tls'],
    smtp: ['smtp.mail.yahoo.com', 465, 'tls'],
    hint: APP_PASSWORD,
  },
  {
    domains: ['aol.com'],
    imap: ['imap.aol.com', 993, 'tls'],
    smtp: ['smtp.aol.com', 465, 'tls'],
    hint: APP_PASSWORD,
  },
  {
    domains: ['fastmail.com', 'fastmail.fm'],
    imap: ['imap.fastmail.com', 993, 'tls'],
    smtp: ['smtp.fastmail.com', 465, 'tls'],
    hint: APP_PASSWORD,
  },
  {
    domains: ['gmx.de', 'gmx.net', 'gmx.at', 'gmx.ch'],
    imap: ['imap.gmx.net', 993, 'tls'],
    smtp: ['mail.gmx.net', 465, 'tls'],
    hint: ENABLE_IMAP,
  },
  {
    domains: ['gmx.com'],
    imap: ['imap.gmx.com', 993, 'tls'],
    smtp: ['mail.gmx.com', 465, 'tls'],
    hint: ENABLE_IMAP,
  },
  {
    domains: ['web.de'],
    imap: ['imap.web.de', 993, 'tls'],
    smtp: ['smtp.web.de', 587, 'starttls'],
    hint: ENABLE_IMAP,
  },
  {
    domains: ['mailbox.org'],
    imap: ['imap.mailbox.org', 993, 'tls'],
    smtp: ['smtp.mailbox.org', 465, 'tls'],
  },
  {
    domains: ['posteo.de', 'posteo.net', 'posteo.org'],
    imap: ['posteo.de', 993, 'tls'],
    smtp: ['posteo.de', 465, 'tls'],
  },
  {
    domains: ['zoho.com', 'zohomail.com'],
    imap: ['imap.zoho.com', 993, 'tls'],
    smtp: ['smtp.zoho.com', 465, 'tls'],
    hint: ENABLE_IMAP,
  },
  {
    domains: ['zoho.eu', 'zohomail.eu'],
    imap: ['imap.zoho.eu', 993, 'tls'],
    smtp: ['smtp.zoho.eu', 465, 'tls'],
    hint: ENABLE_IMAP,
  },
  {
    domains: ['t-online.de', 'magenta.de'],
    imap: ['secureimap.t-online.de', 993, 'tls'],
    smtp: ['securesmtp.t-online.de', 465, 'tls'],
    hint: 'T-Online asks for the separate e-mail password of the customer centre.',
  },
  {
    domains: ['freenet.de'],
    imap: ['mx.freenet.de', 993, 'tls'],
    smtp: ['mx.freenet.de', 465, 'tls'],
  },
  {
    domains: ['yandex.com', 'yandex.ru'],
    imap: ['imap.yandex.com', 993, 'tls'],
    smtp: ['smtp.yandex.com', 465, 'tls'],
    hint: APP_PASSWORD,
  },
];

const serverOf = ([host, port, security]: Provider['imap']): MailServer => ({
  host,
  port,
  security,
});

/** The servers of a provider in the table. */
export function knownProvider(address: string, domain: string): DiscoveredMailbox | undefined {
  const provider = PROVIDERS.find((candidate) => candidate.domains.includes(domain));
  if (provider === undefined) return undefined;
  const { imap, smtp, hint } = provider;
  return {
    imap: serverOf(imap),
    smtp: serverOf(smtp),
    username: address,
    ...(hint === undefined ? {} : { hint }),
  };
}
