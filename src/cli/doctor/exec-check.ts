// Whether programs that the agent runs are confined, and by what.

import type { Config } from '../../core/config.ts';
import { findSandbox, thisSystem } from '../../tools/exec/find-sandbox.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, ok, warn } from './finding.ts';

const CHECK = 'programs';

export async function checkExec({ env }: Terminal, { tools }: Config): Promise<Finding> {
  const { exec } = tools;
  if (!exec.enabled) return ok(CHECK, 'the agent runs none');
  const used = await findSandbox(thisSystem(env), { ...exec, owner: 'doctor' });
  if (used.kind === 'missing') {
    return warn(CHECK, `the agent runs none: ${used.reason}`, used.remedy);
  }
  if (used.sandbox.kind === 'off') {
    return warn(
      CHECK,
      'they run without a sandbox and see all that nanobot sees, its keys included',
      'Install bubblewrap and set tools.exec.sandbox to "auto".',
    );
  }
  const net = exec.network === 'on' ? 'with the network' : 'without network';
  const because = used.passedOver.length === 0 ? '' : ` (${used.passedOver.join('; ')})`;
  const counted =
    used.sandbox.kind === 'bubblewrap' && isAdministrator()
      ? '; as administrator, their number is watched only'
      : '';
  return ok(CHECK, `confined by ${used.sandbox.about}, ${net}${because}${counted}`);
}

/** Whom the Linux kernel exempts from limits of processes. */
const isAdministrator = () => process.platform === 'linux' && process.getuid?.() === 0;
