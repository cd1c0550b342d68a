// What may be wrong with the entries that grant or take away tools: an entry for nobody, or under an id
// that its channel spells otherwise, would be believed to protect and protect nothing.

import { isAllowEntry, normaliseAllowed } from '../../channels/whatsapp/rules/jid.ts';
import type { ToolPolicyEntry } from '../access/rights.ts';
import type { ConfigProblem } from '../message/errors.ts';
import type { Config } from './config.ts';

type IdRule = {
  readonly example: string;
  /** The one spelling; undefined where the id can be nobody's there. */
  spell(id: string): string | undefined;
};

const matching = (pattern: RegExp) => (id: string) => (pattern.test(id) ? id : undefined);
const PEOPLE: Readonly<Record<string, IdRule>> = {
  telegram: { example: 'telegram:123456789', spell: matching(/^\d{1,19}$/) },
  whatsapp: {
    example: 'whatsapp:+491511234567',
    spell: (id) => (isAllowEntry(id) && id !== '*' ? normaliseAllowed(id) : undefined),
  },
  email: {
    example: 'email:ann@example.org',
    spell: (id) => (/^[^\s@]+@[^\s@]+$/.test(id) ? id.toLowerCase() : undefined),
  },
  web: { example: 'web:owner', spell: matching(/^owner$/) },
  terminal: { example: 'terminal:owner', spell: matching(/^owner$/) },
};
const GROUPS: Readonly<Record<string, IdRule>> = {
  telegram: { example: 'telegram:-1001234567890', spell: matching(/^-\d{1,19}$/) },
  whatsapp: { example: 'whatsapp:120363012345678901@g.us', spell: matching(/^[\d-]+@g\.us$/) },
  email: { example: 'telegram:-1001234567890', spell: () => undefined },
};

export function toolConflicts({ tools, channels }: Config): readonly ConfigProblem[] {
  const known = Object.keys(channels);
  return [
    ...strangeEntries('people', tools.people, PEOPLE, known),
    ...strangeEntries('groups', tools.groups, GROUPS, known),
  ];
}

/** A channel without a rule here takes any id: only it knows how its ids look. */
function strangeEntries(
  list: 'people' | 'groups',
  entries: readonly ToolPolicyEntry[],
  rules: Readonly<Record<string, IdRule>>,
  known: readonly string[],
): readonly ConfigProblem[] {
  return entries.flatMap(({ who }, index): readonly ConfigProblem[] => {
    const colon = who.indexOf(':');
    const [channel, id] = [who.slice(0, Math.max(0, colon)), who.slice(colon + 1)];
    const rule = Object.hasOwn(rules, channel) ? rules[channel] : undefined;
    const path = `tools.${list}.${index}.who`;
    const example = rule?.example ?? Object.values(rules)[0]?.example ?? '';
    const spelled = rule === undefined && known.includes(channel) ? id : rule?.spell(id);
    if (spelled === undefined || id === '') {
      const problem = `"${who}" is nobody’s id; names can change hands`;
      return [{ path, problem, remedy: `Write the channel and the stable id, like ${example}.` }];
    }
    if (spelled === id) return [];
    const problem = `"${who}" is spelled "${channel}:${spelled}" on this channel`;
    return [{ path, problem, remedy: `Write "${channel}:${spelled}".` }];
  });
}
