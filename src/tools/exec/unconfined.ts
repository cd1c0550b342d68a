// No sandbox: the command sees what the gateway's user sees. Only where an owner switched it off.

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sandbox } from './sandbox.ts';

export function createUnconfined(nodePath: string): Sandbox {
  return {
    kind: 'off',
    endsWithParent: false,
    node: nodePath,
    scratch: tmpdir(),
    scriptPath: (folder, name) => join(folder, name),
    launch: (command) => ({ argv: command, arguments: undefined }),
  };
}
