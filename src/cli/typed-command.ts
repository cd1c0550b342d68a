// Commands that a hint names, as this person types them: in a checkout, npm starts the program.

import type { Environment } from '../core/environment.ts';

const NPM_SCRIPTS = ['start', 'nanobot'];
const COMMANDS = [
  'onboard import gateway agent link telegram email whatsapp lark status usage doctor selftest channels pair',
  'approvals people cron memory sessions skills agents cluster workflows specialists trace dead audit',
  'eval replay tune mcp config --help',
]
  .join(' ')
  .replaceAll(' ', '|');
const NAMED = new RegExp(`\\bnanobot (?=(?:${COMMANDS})\\b)`, 'g');

/** @see https://docs.npmjs.com/cli/using-npm/scripts for `npm_lifecycle_event` */
export function asTyped(text: string, env: Environment): string {
  if (!NPM_SCRIPTS.includes(env['npm_lifecycle_event'] ?? '')) return text;
  return text.replace(NAMED, 'npm run nanobot -- ');
}

/** Where the person typed the command: npm starts the program in the checkout. */
export function whereTyped(env: Environment): string | undefined {
  return NPM_SCRIPTS.includes(env['npm_lifecycle_event'] ?? '') ? env['INIT_CWD'] : undefined;
}
