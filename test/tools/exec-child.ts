// A process that runs a program for the agent and is killed meanwhile.

import { join } from 'node:path';
import { accountId, channelName, chatId, sessionKey, turnId } from '../../src/core/ids.ts';
import { OWNER_TURN } from '../../src/core/notes.ts';
import { ALL_RIGHTS } from '../../src/core/rights.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createExec } from '../../src/tools/exec/exec.ts';
import { createTestExecutor } from '../support/executor.ts';

const [, , home = '', seconds = ''] = process.argv;
const exec = createExec(await createTestExecutor({ home }));
const script = `setsid sleep ${seconds} & sleep ${seconds} & wait`;
await exec.run(
  { script },
  {
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
  },
);
