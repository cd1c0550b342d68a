// Gives commands in texts the form in which the person who started the program can type them: in a
// checkout npm or the script's path, for an installed package its name.

import type { Environment } from './config/environment.ts';

/** Texts name a command as `nanobot status`. */
export type Typed = (text: string) => string;

const NPM_SCRIPTS = ['start', 'nanobot'];
const COMMANDS = [
  'onboard import gateway service agent link telegram email whatsapp lark status usage doctor update selftest channels pair',
  'support-bundle approvals people cron memory sessions skills agents nodes cluster workflows specialists trace dead audit',
  'eval replay tune mcp backup move store config help --help',
]
  .join(' ')
  .replaceAll(' ', '|');
const NAMED = new RegExp(`\\bnanobot (?=(?:${COMMANDS})\\b)`, 'g');

/**
 * `script`: the path of the program as it was started; a link of an installed package has the
 * command's name. One version of it starts another by its file.
 *
 * @see https://docs.npmjs.com/cli/using-npm/scripts for `npm_lifecycle_event`
 */
export function typedCommands(env: Environment, script = ''): Typed {
  const isNpm = NPM_SCRIPTS.includes(env['npm_lifecycle_event'] ?? '');
  const isScript = /(?:^|[\\/])nanobot\.js$/.test(script) && !/[\\/]node_modules[\\/]/.test(script);
  if (!isNpm && !isScript) return (text) => text;
  const path = /^[\w.\\/:-]+$/.test(script) ? script : `"${script}"`;
  const start = isNpm ? 'npm run nanobot --' : `node ${path}`;
  return (text) => text.replace(NAMED, () => `${start} `);
}

/** Where the person typed the command: npm starts the program in the checkout. */
export function whereTyped(env: Environment): string | undefined {
  return NPM_SCRIPTS.includes(env['npm_lifecycle_event'] ?? '') ? env['INIT_CWD'] : undefined;
}
