// Servers of the large mail providers, by the domain of the address. Facts from their own help
// pages; whoever is not listed is asked by DNS and autoconfig (discover.ts).

import type { MailServer } from './connection-settings.ts';

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
