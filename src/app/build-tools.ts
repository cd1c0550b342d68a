// Builds the agent's tools: what they work on, and what stands between them and the agent.

import type { Environment } from '../core/environment.ts';
import type { PlanDesk } from '../gateway/plans.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { ReaderMemory } from '../lib/reader-memory.ts';
import type { ToolServers } from '../mcp/mcp.ts';
import type { MediaStore } from '../media/media.ts';
import type { MediaReader } from '../media/reader.ts';
import { findResult } from '../sessions/find-result.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { Skills } from '../skills/skills.ts';
import type { StateStore } from '../store/store.ts';
import { auditedToolbox } from '../tools/audited-toolbox.ts';
import type { OpenInbox } from '../tools/check-inbox.ts';
import type { Schedules } from '../tools/cron.ts';
import type { Executor } from '../tools/exec/executor.ts';
import { createTools } from '../tools/index.ts';
import { createOwnFiles, OWN_FILES_SCOPE } from '../tools/own-files.ts';
import { redactedToolbox } from '../tools/redacted-toolbox.ts';
import type { SendFileDeps } from '../tools/send-file.ts';
import type { Helpers } from '../tools/spawn.ts';
import type { MissingTool, Toolbox } from '../tools/tool.ts';
import { toolboxSettings } from '../tools/tool-settings.ts';
import { createToolbox } from '../tools/toolbox.ts';
import type { Workflows } from '../tools/workflow.ts';
import type { BuiltMemory } from './build-memory.ts';
import { buildSearch } from './build-search.ts';
import type { Measuring } from './build-telemetry.ts';
import { buildWeb } from './build-web.ts';
import type { LiveConfig } from './live-config.ts';

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
