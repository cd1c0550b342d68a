// What may be wrong with the Lark settings although each of them fits the schema.

import type { LarkConfig } from '../../../kernel/config/config.ts';
import { strangeCallNames } from '../../../kernel/config/conflicts-groups.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';
import { isLoopbackHost } from '../../../lib/net/address-rules.ts';
import { larkRoot } from './reactions.ts';

/** As Lark's SDK wants it. */
const APP_ID = /^cli_[0-9a-fA-F]{16}$/;
const PERSON = /^o[un]_[0-9A-Za-z]+$/;
const GROUP = /^oc_[0-9A-Za-z]+$/;
const SECTION = 'channels.lark';

export function larkConflicts(lark: LarkConfig): readonly ConfigProblem[] {
  const problems = [
    ...strangeIds('allowFrom', lark.allowFrom, (id) => id === '*' || PERSON.test(id), {
      problem: 'is no open_id or union_id; names, numbers and mail addresses can change hands',
      remedy: 'Write an id like ou_7d8a6e6df7621556ce0d21922b676706; "nanobot pair list" shows it.',
    }),
    ...strangeIds('groups', lark.groups, (id) => GROUP.test(id), {
      problem: 'is no id of a group',
      remedy: 'Write an id like oc_a0553eda9014c201e6969b478895c230.',
    }),
    ...strangeCallNames(SECTION, lark.groupNames),
    ...addressProblems(lark.domain),
  ];
  return lark.enabled ? [...problems, ...credentialProblems(lark)] : problems;
}

function strangeIds(
  key: 'allowFrom' | 'groups',
  ids: readonly string[],
  isFine: (id: string) => boolean,
  words: Pick<ConfigProblem, 'problem' | 'remedy'>,
): readonly ConfigProblem[] {
  return ids.flatMap((id, index) => {
    const problem = `"${id}" ${words.problem}`;
    return isFine(id) ? [] : [{ ...words, path: `${SECTION}.${key}.${index}`, problem }];
  });
}

function credentialProblems({ appId, appSecret }: LarkConfig): readonly ConfigProblem[] {
  const remedy = 'Both stand in the developer console, or set channels.lark.enabled to false.';
  const isAppId = APP_ID.test(appId);
  const problem = appId === '' ? 'no app id is set' : 'this does not look like an app id';
  return [
    ...(isAppId ? [] : [{ path: `${SECTION}.appId`, problem, remedy }]),
    ...(appSecret === ''
      ? [{ path: `${SECTION}.appSecret`, problem: 'no app secret is set', remedy }]
      : []),
  ];
}

/** The secret goes there: plain HTTP only within this machine. */
function addressProblems(domain: string): readonly ConfigProblem[] {
  const root = larkRoot(domain);
  const url = URL.canParse(root) ? new URL(root) : undefined;
  const isSafe =
    url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopbackHost(url.hostname));
  const isBare = url?.pathname === '/' && url.search === '' && url.username === '';
  if (isSafe && isBare) return [];
  const problem = `"${domain}" is neither feishu nor lark nor an https address without a path`;
  return [{ path: `${SECTION}.domain`, problem, remedy: 'Write feishu, or lark outside China.' }];
}
