// The mailboxes of the email channel: the first is its own section, further ones take from it what they
// leave out. Credentials, addresses and who may write are each mailbox's own, and a mailbox that names
// a server of its own takes nothing that belongs to the other one.

import { mailboxSchema } from '../../../kernel/config/channels.ts';
import type { EmailConfig } from '../../../kernel/config/config.ts';
import { accountPath } from '../../../kernel/message/account.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';
import {
  type AccountId,
  accountId,
  channelName,
  DEFAULT_ACCOUNT,
} from '../../../kernel/message/ids.ts';
import { isOwnAddress, normalizeAddress } from './address.ts';

const OWN = ['accounts', 'username', 'password', 'oauth2', 'from', 'aliases', 'allowFrom'];
/** Whose word on senders is believed depends on the receiving server. */
const OF_IMAP = ['imapPort', 'imapSecurity', 'authservId'];
const OF_SMTP = ['smtpPort', 'smtpSecurity'];

/** Every mailbox as if it were the only one, the first one before the others. */
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

/** Addresses of a mailbox, its own first; none while it has no usable one. */
export function addressesOf(mailbox: EmailConfig): readonly string[] {
  const { from, username, aliases } = mailbox;
  return [from === '' ? username : from, ...aliases].flatMap(
    (address) => normalizeAddress(address) ?? [],
  );
}

/** An answer could come from two mailboxes. */
export function sharedAddresses(email: EmailConfig): readonly ConfigProblem[] {
  const takenBy = new Map<string, string>();
  const problems: ConfigProblem[] = [];
  for (const [account, mailbox] of mailboxesOf(email)) {
    const path = accountPath({ channel: channelName('email'), account });
    for (const address of addressesOf(mailbox)) {
      const [, other] = [...takenBy].find(([known]) => isOwnAddress(address, [known])) ?? [];
      takenBy.set(address, other ?? path);
      if (other === undefined || other === path) continue;
      const problem = `"${address}" is an address of ${other} too`;
      problems.push({ path, problem, remedy: 'Give each mailbox addresses of its own.' });
    }
  }
  return problems;
}
