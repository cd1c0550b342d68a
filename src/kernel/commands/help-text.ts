// The text of `/help`: the commands somebody may give, by subject, short enough for a phone; and the answer to a
// mistyped command.

import { nearestName } from '../../lib/text/nearest.ts';
import type { Command } from './command.ts';

type Named = Pick<Command, 'name' | 'summary' | 'usage'>;

/** In the order they are shown. */
export const COMMAND_GROUPS: readonly (readonly [string, readonly string[]])[] = [
  [
    'This conversation',
    ['new', 'restore', 'undo', 'stop', 'compact', 'context', 'sessions', 'continue'],
  ],
  ['How I answer', ['model', 'local', 'mode', 'think', 'queue', 'skills']],
  ['What I do', ['status', 'why', 'cron', 'workflow', 'agents', 'kill', 'usage', 'cost']],
  [
    'You',
    [
      'whoami',
      'me',
      'language',
      'timezone',
      'quiet',
      'link',
      'unlink',
      'memory',
      'forget',
      'export',
    ],
  ],
  [
    'As my owner',
    ['approvals', 'budget', 'people', 'strangers', 'allow', 'block', 'drop', 'cluster'],
  ],
];

/** `asked`: the command to be told more about, or `all`; empty: the names of `mine` by groups. */
export function helpText(mine: readonly Named[], asked: string): string {
  const wanted = asked.toLowerCase().replace(/^\//, '').trim();
  const one = mine.find(({ name }) => name === wanted);
  if (one !== undefined) return `${one.usage ?? `/${one.name}`}: ${one.summary}`;
  const groups = COMMAND_GROUPS.flatMap(([title, names]) => {
    const commands = names.flatMap((name) => mine.find((each) => each.name === name) ?? []);
    if (commands.length === 0) return [];
    if (wanted !== 'all') {
      return [`**${title}**: ${commands.map(({ name }) => `/${name}`).join(' ')}`];
    }
    const lines = commands.map(({ name, summary }) => `- /${name}: ${summary}`);
    return [`**${title}**\n${lines.join('\n')}`];
  });
  return [...groups, '/help all explains each of them, /help with a name how to write it.'].join(
    '\n\n',
  );
}

/** The command that was meant, where the typed name is close to one. */
export function meantBy(typed: string, known: readonly Named[]): string | undefined {
  return nearestName(typed, known.map(({ name }) => name).toSorted(byPlaceInHelp));
}

const IN_HELP = COMMAND_GROUPS.flatMap(([, names]) => names);
/** Of two names that are equally close the same one is suggested, in whichever order features contribute. */
const byPlaceInHelp = (a: string, b: string) => IN_HELP.indexOf(a) - IN_HELP.indexOf(b);

export function didYouMean(typed: string, mine: readonly Named[]): string {
  const meant = meantBy(typed, mine);
  const hint = meant === undefined ? '' : ` Did you mean /${meant}?`;
  return `I know no /${typed}.${hint} If it was not meant as a command, write it without the slash; /help lists what there is.`;
}
