// The demo calls the program's own tools, so every call it makes must be one they accept.

import { expect, test } from 'vitest';
import { createSendEmail } from '../../src/features/letters/letters.ts';
import { createFileMemory } from '../../src/features/memory/notes.ts';
import { createCron } from '../../src/features/schedule/cron-tool.ts';
import { createSpawn } from '../../src/features/subagents/spawn.ts';
import { createWorkflow } from '../../src/features/workflows/tool.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { demoReply } from '../../src/providers/demo.ts';
import { createTools } from '../../src/tools/install.ts';
import { createToolbox, toolboxSettings } from '../../src/tools/toolbox.ts';
import { createIdleExecutor } from '../support/executor.ts';
import { createMemoryMedia, createTestReader } from '../support/memory-media.ts';
import { NO_EARLIER, NO_PAST } from '../support/no-earlier.ts';
import { noSchedules } from '../support/no-jobs.ts';
import { noSubagents } from '../support/no-subagents.ts';
import { NO_WORKFLOWS } from '../support/no-workflows.ts';
import { createSearchSetup } from '../support/search-setup.ts';
import { createTestSkills } from '../support/test-skills.ts';
import { createWebTools } from '../support/web-tools.ts';

const files = createGuardedFiles();
const timeZone = () => 'UTC';
const memory = createFileMemory({
  files,
  workspace: () => '/nowhere',
  clock: systemClock,
  timeZone,
  log: silentLogger,
});
const media = createMemoryMedia(systemClock);
const sending = { media, limit: () => undefined };
const reader = createTestReader(media, '/nowhere');
const reading = { media, reader, maxResultChars: () => 10_000 };
const web = createWebTools();
const skills = createTestSkills('/nowhere');
const executor = createIdleExecutor();
const results = { find: async () => undefined, maxResultChars: () => 10_000 };
const tools = createTools({
  plans: {
    keep: async () => undefined,
    mark: async () => undefined,
    goBack: async () => ({ done: 'Boiled.', open: 'Pour.' }),
  },
  offerUndo: async () => undefined,
  inboxes: () => [],
  files,
  memory,
  skills,
  timeZone,
  executor,
  sessions: NO_EARLIER,
  past: NO_PAST,
  web,
  search: createSearchSetup(),
  sending,
  reading,
  results,
});
const toolbox = createToolbox({
  tools: () => [
    ...tools,
    createCron(noSchedules()),
    createSpawn(noSubagents()),
    createSendEmail(),
    createWorkflow(async () => NO_WORKFLOWS),
  ],
  settings: () => toolboxSettings(configSchema.parse({})),
  clock: systemClock,
  log: silentLogger,
});

test.each([
  ['what time is it', 'time'],
  ['list files', 'list_dir'],
  ['read AGENTS.md', 'read_file'],
  ['remember I like tea', 'remember'],
  ['recall tea', 'recall'],
])('"%s" becomes a call that the real %s accepts', (text, name) => {
  const reply = demoReply({
    messages: [{ role: 'user', text }],
    tools: toolbox.offered(ALL_RIGHTS).specs,
  });
  if (reply.kind !== 'tool') throw new Error('the demo called no tool');
  expect(reply.tool).toBe(name);
  expect(toolbox.bind(reply.tool, reply.arguments)).toMatchObject({ kind: 'ready', name });
});
