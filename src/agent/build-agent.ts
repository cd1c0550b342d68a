// Builds the agent with its tools, its memory and its prompt.

import type { BuiltMemory } from '../features/memory/build-memory.ts';
import type { Modes } from '../features/modes/modes.ts';
import { buildPlans, type PlanDesk, type PlanParts } from '../features/plans/plans.ts';
import { createAskedConfig } from '../features/request-log/request-log.ts';
import type { Measuring } from '../kernel/observe/build-telemetry.ts';
import { observedAgent } from '../kernel/observe/observed.ts';
import type { AskedBook } from '../kernel/sessions/store.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { buildTools, type ToolParts } from '../tools/build-tools.ts';
import type { MissingTool, Toolbox } from '../tools/tool.ts';
import type { Agent } from './agent.ts';
import { createAgent } from './create-agent.ts';
import type { NoteSources } from './prepared.ts';
import { createPromptSources, type PromptSources, redactedPrompt } from './prepared.ts';
import { agentSettingsOf } from './settings.ts';
import type { SideModel } from './side-model.ts';
import type { SpendingGuard } from './spending.ts';

export type AgentParts = ToolParts &
  PlanParts & {
    readonly asked: AskedBook;
    readonly remembering: BuiltMemory;
    readonly side: SideModel;
    readonly modes: Modes;
    readonly measuring: Pick<Measuring, 'telemetry' | 'calls' | 'audit'>;
    /** To the owner; left out: nobody is told. */
    readonly tell?: (text: string) => void;
    /** Where turns are played again: what stands in for the agent's own, and no notes are drawn. */
    readonly instead?: {
      toolbox(real: Toolbox): Toolbox;
      prompt(real: PromptSources): PromptSources;
    };
  };

export type BuiltAgent = Agent & {
  readonly plans: PlanDesk;
  toolbox(): Toolbox;
  missingTools(): readonly MissingTool[];
};

export function buildAgent(
  parts: AgentParts,
  models: () => ModelRegistry,
  spending: SpendingGuard,
): BuiltAgent {
  const { live, clock, log, sessions, reader, side, modes, asked, remembering, instead, tell } =
    parts;
  const workspace = () => live.defaults.workspace;
  const plans = buildPlans(parts);
  const tools = buildTools(parts, plans);
  const shown = instead?.toolbox(tools.toolbox) ?? tools.toolbox;
  const prompt = promptOf(parts, workspace);
  const configPiece = createAskedConfig();
  const agent = createAgent({
    ...{ models, sessions, reader, spending, side, modes, clock, log },
    ...(tell === undefined ? {} : { tell }),
    toolbox: () => shown,
    prompt: instead?.prompt(prompt) ?? prompt,
    ...notesOf(parts, plans),
    asked: () =>
      live.config.sessions.recordPrompts
        ? { book: asked, config: configPiece(live.config) }
        : undefined,
    settings: () => agentSettingsOf(live.config, workspace()),
  });
  const observed = observedAgent(parts.resources.use(agent), parts.measuring, clock);
  return {
    ...observed,
    prepare(session, chat, person) {
      if (instead === undefined) remembering.watch.opened(session, person);
      return observed.prepare(session, chat, person);
    },
    plans,
    toolbox: () => shown,
    missingTools: tools.missing,
  };
}

function promptOf({ live, skills, remembering }: AgentParts, workspace: () => string) {
  const sources = createPromptSources({
    workspace,
    memoryText: async (notes) =>
      live.config.memory.enabled ? remembering.memory.promptText(notes) : '',
    skills,
  });
  return redactedPrompt(sources, (text) => live.redact(text));
}

/** What the model is reminded of at the end of its thread. */
function notesOf({ live, remembering }: AgentParts, plans: PlanDesk): NoteSources {
  return {
    async standing(session) {
      const note = await plans.note(session);
      return note === undefined ? undefined : { ...note, text: live.redact(note.text) };
    },
    async working(session, { notes }, history) {
      if (!live.config.memory.enabled) return undefined;
      const note = await remembering.working.standing(notes, session, history);
      return note === undefined ? undefined : { ...note, body: live.redact(note.body) };
    },
  };
}
