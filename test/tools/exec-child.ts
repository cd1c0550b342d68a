// A process that runs a program for the agent and is killed meanwhile.

import { join } from 'node:path';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import {
  accountId,
  channelName,
  chatId,
  sessionKey,
  turnId,
} from '../../src/kernel/message/ids.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { AuditFile } from '../../src/kernel/observe/audit.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createExec } from '../../src/tools/exec/exec.ts';
import { auditedToolbox } from '../../src/tools/install.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { createTestExecutor } from '../support/executor.ts';
import { createMemoryStore } from '../support/memory-host.ts';

const [, , home = '', seconds = ''] = process.argv;
const exec = createExec(await createTestExecutor({ home }));
const toolbox = createToolbox({
  tools: () => [exec] as readonly Tool[],
  settings: () => ({ disabled: [], maxResultChars: 20_000, timeoutMs: 60_000 }),
  clock: systemClock,
  log: silentLogger,
});
const audit = new AuditFile({
  ...{ path: join(home, 'audit.jsonl'), state: createMemoryStore() },
  ...{ clock: systemClock, log: silentLogger },
});
const script = `setsid sleep ${seconds} & sleep ${seconds} & wait`;
const bound = auditedToolbox(toolbox, audit, (text) => text).bind(
  'exec',
  JSON.stringify({ script }),
);
if (bound.kind === 'ready') {
  await bound.run({
    session: sessionKey('test:1'),
    turnId: turnId('t1'),
    chat: { channel: channelName('test'), account: accountId('default'), chat: chatId('1') },
    signal: new AbortController().signal,
    clock: systemClock,
    workspace: join(home, 'workspace'),
    rights: ALL_RIGHTS,
    isTainted: false,
    person: OWNER_TURN,
    say: async () => undefined,
  });
}
