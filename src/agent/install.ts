// Installs the agent: its tools, prompt, notes and models, with every turn recorded.

import { MEMORY, type Memory } from '../features/memory/install.ts';
import { MODES } from '../features/modes/install.ts';
import { PLANS, type PlanDesk } from '../features/plans/plans.ts';
import { createAskedConfig } from '../features/request-log/request-log.ts';
import { SKILLS } from '../features/skills/catalog.ts';
import { SPENDING } from '../features/spending/install.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import { observedAgent } from '../kernel/observe/observed.ts';
import type { AskedBook, SessionStore } from '../kernel/sessions/store.ts';
import { TOOLS } from '../tools/install.ts';
import type { Toolbox } from '../tools/tool.ts';
import type { Agent } from './agent.ts';
import { createAgent } from './create-agent.ts';
import { MODELS } from './models.ts';
import type { NoteSources } from './prepared.ts';
import { createPromptSources, type PromptSources, redactedPrompt } from './prepared.ts';
import { agentSettingsOf } from './settings.ts';
import { SIDE_MODEL } from './side-model.ts';

export const AGENT = port<Agent>('agent');

/** What stands in for the agent's own parts where turns are played again; then no notes are drawn. */
export type Instead = {
  readonly sessions: SessionStore;
  /** What models are asked with. */
  readonly asked: AskedBook;
  toolbox(real: Toolbox): Toolbox;
  prompt(real: PromptSources): PromptSources;
};

export function install(kernel: Kernel): void {
  const agent = openAgent(kernel);
  kernel.provide(AGENT, agent);
  kernel.add.personalData(kernel.asked);
}

export function openAgent(kernel: Kernel, instead?: Instead): Agent {
  const { live, clock, log, reader, measuring, owners } = kernel;
  const { sessions, asked } = instead ?? kernel;
  const memory = kernel.use(MEMORY);
  const { toolbox } = kernel.use(TOOLS);
  const shown = instead?.toolbox(toolbox) ?? toolbox;
  const prompt = promptOf(kernel, memory);
  const configPiece = createAskedConfig();
  const agent = createAgent({
    ...{ sessions, reader, clock, log, tell: owners.tell },
    models: kernel.use(MODELS).current,
    spending: kernel.use(SPENDING),
    side: kernel.use(SIDE_MODEL),
    modes: kernel.use(MODES),
    toolbox: () => shown,
    prompt: instead?.prompt(prompt) ?? prompt,
    ...notesOf(live, kernel.use(PLANS), memory),
    asked: () =>
      live.config.sessions.recordPrompts
        ? { book: asked, config: configPiece(live.config) }
        : undefined,
    settings: () => agentSettingsOf(live.config, live.defaults.workspace),
  });
  const observed = observedAgent(kernel.resources.use(agent), measuring, clock);
  return {
    ...observed,
    prepare(session, chat, person) {
      if (instead === undefined) memory.watch.opened(session, person);
      return observed.prepare(session, chat, person);
    },
  };
}

function promptOf(kernel: Kernel, { notes: memory }: Memory): PromptSources {
  const { live } = kernel;
  const sources = createPromptSources({
    workspace: () => live.defaults.workspace,
    memoryText: async (notes) => (live.config.memory.enabled ? memory.promptText(notes) : ''),
    skills: kernel.use(SKILLS),
  });
  return redactedPrompt(sources, (text) => live.redact(text));
}

/** What the model is reminded of at the end of its thread. */
function notesOf(live: LiveConfig, plans: PlanDesk, { working }: Memory): NoteSources {
  return {
    async standing(session) {
      const note = await plans.note(session);
      return note === undefined ? undefined : { ...note, text: live.redact(note.text) };
    },
    async working(session, { notes }, history) {
      if (!live.config.memory.enabled) return undefined;
      const note = await working.standing(notes, session, history);
      return note === undefined ? undefined : { ...note, body: live.redact(note.body) };
    },
  };
}
