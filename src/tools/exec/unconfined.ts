// No sandbox: the command sees what the gateway's user sees. Only where an owner switched it off.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withLimits } from './limits.ts';
import type { Sandbox } from './sandbox.ts';

export function createUnconfined(nodePath: string): Sandbox {
  return {
    kind: 'off',
    about: 'nothing',
    endsWithParent: false,
    node: nodePath,
    scratch: tmpdir(),
    scriptPath: (folder, name) => join(folder, name),
    launch: ({ command, confinement, limits, env }) => ({
      argv: withLimits(command, limits, false),
      cwd: confinement.cwd,
      env,
      arguments: undefined,
    }),
  };
}
