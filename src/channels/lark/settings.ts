// The Lark settings: their schema, the address of the API, and checks beyond the schema.

import { z } from 'zod';
import {
  allowFrom,
  answerSettings,
  choice,
  flag,
  groupSettings,
  groups,
  type Problems,
  proxy,
  secret,
  strangeCallNames,
  strangeItems,
  strangers,
  text,
  unless,
} from '../../kernel/config/settings-fields.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';

/** Reactions that may be set on a message while the agent works on it. */
export const LARK_ACKNOWLEDGEMENTS = [
  ...['Typing', 'OnIt', 'OneSecond', 'Get', 'OK', 'THUMBSUP'],
  ...['DONE', 'HEART', 'SMILE', 'SALUTE'],
] as const;

export const larkSchema = z.strictObject({
  enabled: flag(false).describe('Connect to Lark or Feishu.'),
  appId: text().describe('App id from the developer console, e.g. cli_....'),
  appSecret: secret().default('').describe('App secret from the developer console.'),
  domain: text('feishu').describe(
    'feishu, lark (outside China), or the address of your own server.',
  ),
  proxy,
  allowFrom: allowFrom.describe(
    t`open_id (ou_...) or union_id (on_...) of people who may talk to the agent. Empty: nobody.`,
  ),
  strangers,
  ...answerSettings,
  ackReaction: choice(['', ...LARK_ACKNOWLEDGEMENTS], '').describe(
    'Reaction on a message while the agent works on it. Empty: none.',
  ),
  ...groupSettings,
  groups: groups.describe(
    t`Chat ids of groups (oc_...) in which the agent answers. Empty: no group.`,
  ),
});
export type LarkConfig = z.infer<typeof larkSchema>;

const CLOUDS: Readonly<Record<string, string>> = {
  feishu: 'https://open.feishu.cn',
  lark: 'https://open.larksuite.com',
};

/** The address without a path and a trailing slash. */
export function larkRoot(domain: string): string {
  return (Object.hasOwn(CLOUDS, domain) ? CLOUDS[domain] : domain)?.replace(/\/+$/, '') ?? domain;
}

/** The format that Lark's SDK expects. */
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
        t`"${id}" is not an open_id or union_id; names, numbers and email addresses can change owners`,
      t`Use an id such as ou_7d8a6e6df7621556ce0d21922b676706; "nanobot pair list" shows it.`,
    ),
    ...strangeItems(
      `${SECTION}.groups`,
      lark.groups,
      (id) => GROUP.test(id),
      (id) => t`"${id}" is not the id of a group`,
      t`Use an id such as oc_a0553eda9014c201e6969b478895c230.`,
    ),
    ...strangeCallNames(SECTION, lark.groupNames),
    ...addressProblems(lark.domain),
  ];
  return lark.enabled ? [...problems, ...credentialProblems(lark)] : problems;
}

function credentialProblems({ appId, appSecret }: LarkConfig): Problems {
  const remedy = t`Copy it from the developer console, or set channels.lark.enabled to false.`;
  const problem = appId === '' ? t`no app id is set` : t`not a valid app id`;
  return [
    ...unless(APP_ID.test(appId), `${SECTION}.appId`, problem, remedy),
    ...unless(appSecret !== '', `${SECTION}.appSecret`, t`no app secret is set`, remedy),
  ];
}

/** The secret is sent there: plain HTTP only within this machine. */
function addressProblems(domain: string): Problems {
  const url = URL.parse(larkRoot(domain));
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  const isBare = url?.pathname === '/' && url.search === '' && url.username === '';
  const problem = t`"${domain}" is not feishu, lark or an https address without a path`;
  const remedy = t`Use feishu, or lark outside China.`;
  return unless(isSafe && isBare, `${SECTION}.domain`, problem, remedy);
}
