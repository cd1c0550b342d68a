import { expect, it } from 'vitest';
import { type DiscoverDeps, discoverMailbox } from '../../../src/channels/email/servers.ts';

const never = new AbortController().signal;
const nothing: Required<Omit<DiscoverDeps, 'proxy'>> = {
  services: async () => [],
  page: async () => undefined,
};

it.each([
  ['anna@gmail.com', 'imap.gmail.com', 'smtp.gmail.com'],
  ['Anna@GMX.de', 'imap.gmx.net', 'mail.gmx.net'],
  ['anna@icloud.com', 'imap.mail.me.com', 'smtp.mail.me.com'],
  ['anna@t-online.de', 'secureimap.t-online.de', 'securesmtp.t-online.de'],
])('knows the provider of %s without asking anybody', async (address, imap, smtp) => {
  const found = await discoverMailbox(address, never, {
    services: () => Promise.reject(new Error('asked the name service')),
    page: () => Promise.reject(new Error('asked the web')),
  });
  expect(found).toMatchObject({ imap: { host: imap }, smtp: { host: smtp } });
  expect(found?.imap.security).not.toBe('none');
});

it('says that Gmail wants an app password', async () => {
  const found = await discoverMailbox('anna@gmail.com', never, nothing);
  expect(found?.hint).toContain('app password');
});

it('follows service records, best first, and says when they point elsewhere', async () => {
  const records = new Map([
    [
      '_imaps._tcp.person.test',
      [
        { name: 'slow.person.test', port: 1993, priority: 20 },
        { name: 'imap.person.test', port: 993, priority: 10 },
      ],
    ],
    ['_submission._tcp.person.test', [{ name: 'smtp.host.test', port: 587, priority: 0 }]],
    ['_submissions._tcp.person.test', [{ name: '.', port: 0, priority: 0 }]],
  ]);
  const services = async (name: string) => records.get(name) ?? [];
  expect(await discoverMailbox('anna@person.test', never, { ...nothing, services })).toEqual({
    imap: { host: 'imap.person.test', port: 993, security: 'tls' },
    smtp: { host: 'smtp.host.test', port: 587, security: 'starttls' },
    username: 'anna@person.test',
    hint: expect.stringContaining('smtp.host.test'),
  });
});

const server = (element: string, type: string, host: string, port: number, socket: string) =>
  `<${element} type="${type}"><hostname>${host}</hostname><port>${port}</port>` +
  `<socketType>${socket}</socketType><username>%EMAILLOCALPART%</username></${element}>`;

it('reads an autoconfig file, leaving out POP and unencrypted servers', async () => {
  const xml = `<clientConfig><emailProvider id="p">
    ${server('incomingServer', 'pop3', 'pop.person.test', 995, 'SSL')}
    ${server('incomingServer', 'imap', 'old.person.test', 143, 'plain')}
    ${server('incomingServer', 'imap', 'imap.person.test', 993, 'SSL')}
    ${server('outgoingServer', 'smtp', 'smtp.person.test', 587, 'STARTTLS')}
  </emailProvider></clientConfig>`;
  const asked: string[] = [];
  const page = async (url: string) => {
    asked.push(url);
    return url.includes('.well-known') ? xml : undefined;
  };
  expect(await discoverMailbox('anna@person.test', never, { ...nothing, page })).toEqual({
    imap: { host: 'imap.person.test', port: 993, security: 'tls' },
    smtp: { host: 'smtp.person.test', port: 587, security: 'starttls' },
    username: 'anna',
  });
  expect(asked).toHaveLength(2);
});

it('finds nothing for a domain that says nothing, and for what is no address', async () => {
  expect(await discoverMailbox('anna@person.test', never, nothing)).toBeUndefined();
  expect(await discoverMailbox('not an address', never, nothing)).toBeUndefined();
});
