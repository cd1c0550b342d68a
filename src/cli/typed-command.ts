// Commands that a hint names, as this person types them: in a checkout, npm starts the program.

import type { Environment } from '../core/environment.ts';

const NPM_SCRIPTS = ['start', 'nanobot'];
const NAMED =
  /\bnanobot (?=(?:onboard|gateway|agent|telegram|email|whatsapp|lark|status|doctor|channels|pair|people|approvals|usage|selftest|link|sessions|skills|trace|dead|audit|config|--help)\b)/g;

/** @see https://docs.npmjs.com/cli/using-npm/scripts for `npm_lifecycle_event` */
export function asTyped(text: string, env: Environment): string {
  if (!NPM_SCRIPTS.includes(env['npm_lifecycle_event'] ?? '')) return text;
  return text.replace(NAMED, 'npm run nanobot -- ');
}
