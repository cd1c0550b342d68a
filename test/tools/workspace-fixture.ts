// A temporary workspace beside files that must not be reached, and a toolbox over it.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSendEmail } from '../../src/features/letters/letters.ts';
import { createFileMemory } from '../../src/features/memory/notes.ts';
import { createCron } from '../../src/features/schedule/cron-tool.ts';
import { createSpawn } from '../../src/features/subagents/spawn.ts';
import { createWorkflow } from '../../src/features/workflows/tool.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import type { OutboundAttachment } from '../../src/kernel/message/attachment.ts';
import {
  accountId,
  channelName,
  chatId,
  sessionKey,
  turnId,
} from '../../src/kernel/message/ids.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createTools } from '../../src/tools/install.ts';
import type { Tool, ToolContext } from '../../src/tools/tool.ts';
import { createToolbox, type ToolboxSettings } from '../../src/tools/toolbox.ts';
import { createIdleExecutor } from '../support/executor.ts';
import { createMemoryMedia, createTestReader } from '../support/memory-media.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { NO_EARLIER, NO_PAST } from '../support/no-earlier.ts';
import { noSchedules } from '../support/no-jobs.ts';
import { noSubagents } from '../support/no-subagents.ts';
import { NO_WORKFLOWS } from '../support/no-workflows.ts';
import { createSearchSetup } from '../support/search-setup.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestSkills } from '../support/test-skills.ts';
import { createWebTools } from '../support/web-tools.ts';

export const SECRET = 'the secret outside';

/** The tools as the gateway builds them, over a workspace in the folder `home`. */
export function createToolSet(home: string) {
  const workspace = join(home, 'workspace');
  const clock = createMovableClock();
  const files = createGuardedFiles({ forbidden: [home] });
  const timeZone = () => 'UTC';
  const memory = createFileMemory({
    files,
    workspace: () => workspace,
    clock,
    timeZone,
    log: silentLogger,
  });
  const media = createMemoryMedia(clock);
  const sending = { media, limit: () => ({ eachBytes: 1_000_000, togetherBytes: 1_500_000 }) };
  const reader = createTestReader(media, join(home, 'derived'));
  const reading = { media, reader, maxResultChars: () => 10_000 };
  const own = createTools({
    plans: {
      keep: async () => undefined,
      mark: async () => undefined,
      goBack: async () => ({ done: 'Boiled.', open: 'Pour.' }),
    },
    ...{ files, memory, timeZone, sending, reading },
    results: { find: async () => undefined, maxResultChars: () => 10_000 },
    skills: createTestSkills(workspace),
    sessions: NO_EARLIER,
    past: NO_PAST,
    executor: createIdleExecutor(),
    web: createWebTools(),
    search: createSearchSetup(),
    inboxes: () => [],
    offerUndo: async () => undefined,
  });
  const contributed = [
    createCron(noSchedules()),
    createSpawn(noSubagents()),
    createSendEmail(),
    createWorkflow(async () => NO_WORKFLOWS),
  ];
  const tools: readonly Tool[] = [...own, ...contributed];
  return { workspace, clock, files, memory, media, reader, tools };
}

export async function createWorkspace(settings: Partial<ToolboxSettings> = {}) {
  const home = await temporaryFolder();
  const { workspace, clock, files, memory, media, reader, tools } = createToolSet(home);
  await mkdir(join(workspace, 'notes'), { recursive: true });
  await writeFile(join(workspace, 'hello.txt'), 'line one\nline two\nline three\n');
  await writeFile(join(home, 'config.json'), SECRET);
  const toolbox = createToolbox({
    tools: () => tools,
    settings: () => ({ disabled: [], maxResultChars: 10_000, timeoutMs: 60_000, ...settings }),
    clock,
    log: silentLogger,
  });
  const said: string[] = [];
  const sent: OutboundAttachment[] = [];
  const stop = new AbortController();
  const context: ToolContext = {
    session: sessionKey('telegram:42'),
    turnId: turnId('t1'),
    chat: { channel: channelName('telegram'), account: accountId('default'), chat: chatId('42') },
    signal: stop.signal,
    clock,
    workspace,
    rights: ALL_RIGHTS,
    isTainted: false,
    person: OWNER_TURN,
    async say(markdown, attachments = []) {
      said.push(markdown);
      sent.push(...attachments);
    },
  };
  async function call(name: string, input: unknown) {
    const bound = toolbox.bind(name, typeof input === 'string' ? input : JSON.stringify(input));
    return bound.kind === 'refused' ? bound.outcome : bound.run(context);
  }
  return {
    home,
    workspace,
    clock,
    files,
    memory,
    media,
    reader,
    tools,
    toolbox,
    context,
    said,
    sent,
    stop,
    call,
  };
}
