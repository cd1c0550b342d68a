// What may be wrong with the mail settings although each of them fits the schema.

import type { EmailConfig } from '../../../kernel/config/config.ts';
import { accountPath } from '../../../kernel/message/account.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';
import { channelName } from '../../../kernel/message/ids.ts';
import { isLoopbackHost } from '../../../lib/net/address-rules.ts';
import { mailboxesOf, sharedAddresses } from './accounts.ts';
import { isSafeTokenUrl, tokenEndpointOf, usesOAuth2 } from './oauth.ts';

const ADDRESS = /^[^\s@<>]+@[^\s@<>]+$/;

export function emailConflicts(email: EmailConfig): readonly ConfigProblem[] {
  const mailboxes = [...mailboxesOf(email)].flatMap(([account, mailbox]) => {
    const path = accountPath({ channel: channelName('email'), account });
    return mailboxConflicts(mailbox, path);
  });
  return [...mailboxes, ...sharedAddresses(email)];
}

const mailboxConflicts = (mailbox: EmailConfig, path: string) => [
  ...emailServers(mailbox, path),
  ...emailOAuth2(mailbox, path),
  ...emailAddresses(mailbox, path),
];

function emailOAuth2({ oauth2, imapHost }: EmailConfig, path: string): readonly ConfigProblem[] {
  if (!usesOAuth2(oauth2)) return [];
  const problems: ConfigProblem[] = [];
  if (oauth2.clientId === '') {
    problems.push({
      path: `${path}.oauth2.clientId`,
      problem: `needed beside ${path}.oauth2.refreshToken`,
      remedy: 'Set it to the id of the client the refresh token was made for.',
    });
  }
  const { tokenUrl } = tokenEndpointOf(oauth2, imapHost);
  if (isSafeTokenUrl(tokenUrl)) return problems;
  const problem =
    tokenUrl === '' ? `the token server of ${imapHost} is not known` : 'is no https address';
  const remedy = 'Set it to the token endpoint of your provider, https://...';
  return [...problems, { path: `${path}.oauth2.tokenUrl`, problem, remedy }];
}

function emailServers(email: EmailConfig, path: string): readonly ConfigProblem[] {
  const credential = usesOAuth2(email.oauth2) ? [] : (['password'] as const);
  const needed = ['imapHost', 'smtpHost', 'username', ...credential] as const;
  const missing = (email.enabled ? needed : [])
    .filter((key) => email[key] === '')
    .map((key) => ({
      path: `${path}.${key}`,
      problem: `needed while ${path}.enabled is true`,
      remedy: 'Set it; `nanobot onboard` finds the servers of most mailboxes.',
    }));
  const open = (['imap', 'smtp'] as const).filter((kind) => {
    const host = email[`${kind}Host`];
    return email[`${kind}Security`] === 'none' && host !== '' && !isLoopbackHost(host);
  });
  const unencrypted = open.map((kind) => ({
    path: `${path}.${kind}Security`,
    problem: `"none" would send the password unencrypted to ${email[`${kind}Host`]}`,
    remedy: 'Use "tls" or "starttls"; "none" is for servers on this machine.',
  }));
  return [...missing, ...unencrypted];
}

function emailAddresses(email: EmailConfig, path: string): readonly ConfigProblem[] {
  const senders = email.allowFrom.filter((address) => address !== '*');
  const lists = [
    { key: 'allowFrom', values: senders },
    { key: 'aliases', values: email.aliases },
    { key: 'from', values: email.from === '' ? [] : [email.from] },
  ];
  const wrong = lists.flatMap(({ key, values }) =>
    values.filter((value) => !ADDRESS.test(value)).map((value) => ({ key, value })),
  );
  const problems: ConfigProblem[] = wrong.map(({ key, value }) => ({
    path: `${path}.${key}`,
    problem: `"${value}" is no mail address`,
    remedy: 'Write it as name@example.org, without a display name.',
  }));
  if (
    email.enabled &&
    email.from === '' &&
    email.username !== '' &&
    !ADDRESS.test(email.username)
  ) {
    problems.push({
      path: `${path}.from`,
      problem: 'the username is no address, so ours is not known',
      remedy: 'Set it to the address of this mailbox.',
    });
  }
  return problems;
}
