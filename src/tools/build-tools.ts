// Builds the agent's tools: what they work on, and what stands between them and the agent.

import type { OpenInbox } from '../features/mail-bridge/check-inbox.ts';
import type { ToolServers } from '../features/mcp/mcp.ts';
import type { BuiltMemory } from '../features/memory/build-memory.ts';
import type { PlanDesk } from '../features/plans/plans.ts';
import type { Schedules } from '../features/schedule/cron-tool.ts';
import type { Skills } from '../features/skills/skills.ts';
import type { Helpers } from '../features/subagents/spawn.ts';
import type { Workflows } from '../features/workflows/tool.ts';
import type { StateStore } from '../kernel/bus/store/store.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { MediaStore } from '../kernel/media/media.ts';
import type { MediaReader } from '../kernel/media/reader.ts';
import type { Measuring } from '../kernel/observe/build-telemetry.ts';
import { findResult } from '../kernel/sessions/earlier.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import type { ReaderMemory } from '../lib/async/permits.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import { auditedToolbox, redactedToolbox } from './audited-toolbox.ts';
import type { Executor } from './exec/executor.ts';
import { createOwnFiles, OWN_FILES_SCOPE } from './files/own-files.ts';
import type { SendFileDeps } from './files/send-file.ts';
import { createTools } from './index.ts';
import { buildSearch } from './search/build-search.ts';
import type { MissingTool, Toolbox } from './tool.ts';
import { toolboxSettings } from './tool-settings.ts';
import { createToolbox } from './toolbox.ts';
import { buildWeb } from './web/build-web.ts';

export type ToolParts = {
  readonly live: LiveConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly sessions: SessionStore;
  readonly remembering: Pick<BuiltMemory, 'files' | 'memory' | 'past'>;
  readonly resources: AsyncDisposableStack;
  readonly media: MediaStore;
  readonly reader: MediaReader;
  readonly readerMemory: ReaderMemory;
  readonly skills: Skills;
  readonly schedules: () => Schedules;
  readonly helpers: () => Helpers;
  readonly workflows: () => Workflows;
  readonly inboxes: () => readonly OpenInbox[];
  readonly executor: Executor;
  readonly toolServers: Pick<ToolServers, 'tools'>;
  readonly measuring: Pick<Measuring, 'audit'>;
  maxFileBytes: SendFileDeps['limit'];
};

export type BuiltTools = {
  /** As the agent has them: what they do with effects is audited, and no secret comes out of them. */
  readonly toolbox: Toolbox;
  missing(): readonly MissingTool[];
};

export function buildTools(parts: ToolParts, plans: PlanDesk): BuiltTools {
  const { live, clock, log, media, reader, sessions, toolServers } = parts;
  const { files, memory, past } = parts.remembering;
  const { schedules, helpers, workflows, inboxes, skills, executor } = parts;
  const redact = (text: string) => live.redact(text);
  const maxResultChars = () => live.defaults.maxToolResultChars;
  const tools = createTools({
    plans: () => plans,
    ...{ schedules, helpers, workflows, inboxes, skills, executor },
    ...{ files, memory, past, sessions },
    timeZone: () => live.config.sessions.timeZone,
    own: createOwnFiles(parts.store.scope(OWN_FILES_SCOPE)),
    web: buildWeb(live, clock, parts.readerMemory, parts.resources),
    search: buildSearch(live, parts.env),
    sending: { media, limit: parts.maxFileBytes },
    reading: { media, reader, maxResultChars },
    results: { find: (session, id) => findResult(sessions, session, id), maxResultChars },
  });
  const toolbox = createToolbox({
    tools: () => [...tools, ...toolServers.tools()],
    settings: () => toolboxSettings(live.config),
    clock,
    log,
  });
  return {
    toolbox: auditedToolbox(redactedToolbox(toolbox, redact), parts.measuring.audit, redact),
    missing: () => toolbox.missing(),
  };
}
