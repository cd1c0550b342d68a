// The Lark settings: their schema, the address of the API, and what the schema cannot check.

import { z } from 'zod';
import {
  allowFrom,
  groupSettings,
  groups,
  strangeCallNames,
  strangers,
} from '../../kernel/config/channel-fields.ts';
import { type Problems, strangeItems, unless } from '../../kernel/config/problems.ts';
import { choice, flag, secret, text } from '../../kernel/config/settings-fields.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';

/** What may be set on a message while it is worked on. */
export const LARK_ACKNOWLEDGEMENTS = [
  ...['Typing', 'OnIt', 'OneSecond', 'Get', 'OK', 'THUMBSUP'],
  ...['DONE', 'HEART', 'SMILE', 'SALUTE'],
] as const;

export const larkSchema = z.strictObject({
  enabled: flag(false),
  appId: text().describe('cli_..., from the developer console.'),
  appSecret: secret().default('').describe('From the developer console.'),
  domain: text('feishu').describe(
    'feishu, lark (outside China), or the address of a server of your own.',
  ),
  allowFrom: allowFrom.describe('open_id (ou_...) or union_id (on_...); empty = nobody.'),
  strangers,
  streaming: flag(true).describe('Show the answer while it is being written.'),
  quoteReplies: flag(false).describe('Answers quote the question; in groups they always do.'),
  ackReaction: choice(['', ...LARK_ACKNOWLEDGEMENTS], '').describe(
    'Reaction set on a message while it is worked on; empty: none.',
  ),
  ...groupSettings,
  groups: groups.describe('Chat ids of groups (oc_...); empty = no group.'),
});
export type LarkConfig = z.infer<typeof larkSchema>;

const CLOUDS: Readonly<Record<string, string>> = {
  feishu: 'https://open.feishu.cn',
  lark: 'https://open.larksuite.com',
};

/** The address without a path and without a slash at its end. */
export function larkRoot(domain: string): string {
  return (Object.hasOwn(CLOUDS, domain) ? CLOUDS[domain] : domain)?.replace(/\/+$/, '') ?? domain;
}

/** As Lark's SDK wants it. */
const APP_ID = /^cli_[0-9a-fA-F]{16}$/;
const PERSON = /^o[un]_[0-9A-Za-z]+$/;
const GROUP = /^oc_[0-9A-Za-z]+$/;
const SECTION = 'channels.lark';

export function larkConflicts(lark: LarkConfig): Problems {
  const problems = [
    ...strangeItems(
      `${SECTION}.allowFrom`,
      lark.allowFrom,
      (id) => id === '*' || PERSON.test(id),
      (id) =>
        `"${id}" is no open_id or union_id; names, numbers and mail addresses can change hands`,
      'Write an id like ou_7d8a6e6df7621556ce0d21922b676706; "nanobot pair list" shows it.',
    ),
    ...strangeItems(
      `${SECTION}.groups`,
      lark.groups,
      (id) => GROUP.test(id),
      (id) => `"${id}" is no id of a group`,
      'Write an id like oc_a0553eda9014c201e6969b478895c230.',
    ),
    ...strangeCallNames(SECTION, lark.groupNames),
    ...addressProblems(lark.domain),
  ];
  return lark.enabled ? [...problems, ...credentialProblems(lark)] : problems;
}

function credentialProblems({ appId, appSecret }: LarkConfig): Problems {
  const remedy = 'Both stand in the developer console, or set channels.lark.enabled to false.';
  const problem = appId === '' ? 'no app id is set' : 'this does not look like an app id';
  return [
    ...unless(APP_ID.test(appId), `${SECTION}.appId`, problem, remedy),
    ...unless(appSecret !== '', `${SECTION}.appSecret`, 'no app secret is set', remedy),
  ];
}

/** The secret goes there: plain HTTP only within this machine. */
function addressProblems(domain: string): Problems {
  const url = URL.parse(larkRoot(domain));
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  const isBare = url?.pathname === '/' && url.search === '' && url.username === '';
  const problem = `"${domain}" is neither feishu nor lark nor an https address without a path`;
  const remedy = 'Write feishu, or lark outside China.';
  return unless(isSafe && isBare, `${SECTION}.domain`, problem, remedy);
}
