// Builds the agent with its tools, its memory and its prompt.

import type { Agent } from '../agent/agent.ts';
import { createAgent } from '../agent/create-agent.ts';
import type { Modes } from '../agent/modes/modes.ts';
import { createPromptSources, type PromptSources } from '../agent/prompt-sources.ts';
import { agentSettingsOf } from '../agent/settings.ts';
import type { SideModel } from '../agent/side-model.ts';
import type { SpendingGuard } from '../agent/spending.ts';
import type { Environment } from '../core/environment.ts';
import type { PlanDesk } from '../gateway/plans.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { ToolServers } from '../mcp/mcp.ts';
import type { MediaStore } from '../media/media.ts';
import type { MediaReader } from '../media/reader.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { findResult } from '../sessions/find-result.ts';
import type { AskedBook, SessionStore } from '../sessions/store.ts';
import type { Skills } from '../skills/skills.ts';
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
import { createAskedConfig } from './asked-config.ts';
import type { BuiltMemory } from './build-memory.ts';
import { buildPlans, type PlanParts } from './build-plans.ts';
import { buildSearch } from './build-search.ts';
import type { Measuring } from './build-telemetry.ts';
import { buildWeb } from './build-web.ts';
import type { LiveConfig } from './live-config.ts';
import { observedAgent } from './observed-agent.ts';
import { redactedPrompt } from './redacted-prompt.ts';

export type AgentParts = {
  readonly live: LiveConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly sessions: SessionStore;
  readonly asked: AskedBook;
  readonly remembering: BuiltMemory;
  readonly resources: AsyncDisposableStack;
  readonly media: MediaStore;
  readonly reader: MediaReader;
  readonly skills: Skills;
  readonly schedules: () => Schedules;
  readonly helpers: () => Helpers;
  readonly workflows: () => Workflows;
  readonly inboxes: () => readonly OpenInbox[];
  readonly executor: Executor;
  readonly side: SideModel;
  readonly modes: Modes;
  readonly toolServers: Pick<ToolServers, 'tools'>;
  readonly measuring: Pick<Measuring, 'telemetry' | 'calls' | 'audit'>;
  maxFileBytes: SendFileDeps['limit'];
  /** Where turns are played again: what stands in for the agent's own, and no notes are drawn. */
  readonly instead?: {
    toolbox(real: Toolbox): Toolbox;
    prompt(real: PromptSources): PromptSources;
  };
} & PlanParts;

export type BuiltAgent = Agent & {
  readonly plans: PlanDesk;
  toolbox(): Toolbox;
  missingTools(): readonly MissingTool[];
};

export function buildAgent(
  {
    live,
    env,
    clock,
    log,
    sessions,
    asked,
    remembering,
    resources,
    media,
    reader,
    skills,
    schedules,
    helpers,
    workflows,
    inboxes,
    executor,
    side,
    modes,
    toolServers,
    measuring,
    maxFileBytes,
    store,
    bus,
    channelOf,
    instead,
  }: AgentParts,
  models: () => ModelRegistry,
  spending: SpendingGuard,
): BuiltAgent {
  const workspace = () => live.defaults.workspace;
  const timeZone = () => live.config.sessions.timeZone;
  const { files, memory, past } = remembering;
  const redact = (text: string) => live.redact(text);
  const maxResultChars = () => live.defaults.maxToolResultChars;
  const plans = buildPlans({ store, bus, clock, log, channelOf });
  const tools = createTools({
    plans: () => plans,
    schedules,
    helpers,
    workflows,
    inboxes,
    own: createOwnFiles(store.scope(OWN_FILES_SCOPE)),
    ...{ files, memory, past, skills, timeZone, executor, sessions },
    web: buildWeb(live, clock, resources),
    search: buildSearch(live, env),
    sending: { media, limit: maxFileBytes },
    reading: { media, reader, maxResultChars },
    results: { find: (session, id) => findResult(sessions, session, id), maxResultChars },
  });
  const toolbox = createToolbox({
    tools: () => [...tools, ...toolServers.tools()],
    settings: () => toolboxSettings(live.config),
    clock,
    log,
  });
  const sources = createPromptSources({
    workspace,
    memoryText: async (notes) => (live.config.memory.enabled ? memory.promptText(notes) : ''),
    skills,
  });
  const audited = auditedToolbox(redactedToolbox(toolbox, redact), measuring.audit, redact);
  const shown = instead?.toolbox(audited) ?? audited;
  const prompt = redactedPrompt(sources, redact);
  const configPiece = createAskedConfig();
  const agent = createAgent({
    models,
    sessions,
    reader,
    toolbox: () => shown,
    prompt: instead?.prompt(prompt) ?? prompt,
    async standing(session) {
      const note = await plans.note(session);
      return note === undefined ? undefined : { ...note, text: redact(note.text) };
    },
    async working(session, { notes }, history) {
      if (!live.config.memory.enabled) return undefined;
      const note = await remembering.working.standing(notes, session, history);
      return note === undefined ? undefined : { ...note, body: redact(note.body) };
    },
    asked: () =>
      live.config.sessions.recordPrompts
        ? { book: asked, config: configPiece(live.config) }
        : undefined,
    spending,
    side,
    modes,
    clock,
    log,
    settings: () => agentSettingsOf(live.config, workspace()),
  });
  const observed = observedAgent(resources.use(agent), measuring, clock);
  return {
    ...observed,
    prepare(session, chat, person) {
      if (instead === undefined) remembering.watch.opened(session, person);
      return observed.prepare(session, chat, person);
    },
    plans,
    toolbox: () => shown,
    missingTools: () => toolbox.missing(),
  };
}
