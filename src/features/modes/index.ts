// Installs the modes of the agent: which models share the work of a turn. The code of the other
// modes is loaded only if the configuration or the conversation selects one instead of inline.

import { MODELS } from '../../agent/models.ts';
import {
  COSTS,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import { AGENT_MODES, type AgentMode } from '../../kernel/config/settings-fields.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { SessionSettingsStore } from '../../kernel/turns/origins.ts';
import { readOnce } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import type { ModeParts } from './mode-kinds.ts';
import type { ModeKinds, Modes } from './modes.ts';

export const MODES = port<Modes>('modes');
export const MODE_SERVICE = port<ModeService>('mode desk');

export function install(kernel: Kernel): void {
  const { live, clock, log, home, settings, sessions, owners, add } = kernel;
  const { current: models } = kernel.use(MODELS);
  const spending = kernel.modelCalls;
  const { tell } = owners;
  const parts = { live, clock, log, home, sessions, models, spending, tell };
  const traces = readOnce(async () =>
    (await import('./trace-files.ts')).createTraceFiles({ ...parts, traces: home.traces }),
  );
  const asked = Promise.withResolvers<void>();
  const load = readOnce(async () => {
    asked.resolve();
    return (await import('./mode-kinds.ts')).createModeKinds(parts, await traces());
  });
  const kinds = async () => (await load()).kinds;
  const configured = () => live.config.agents.mode;
  const service = createModeService(kinds, parts);
  kernel.provide(MODES, createModes(kinds, configured));
  kernel.provide(MODE_SERVICE, service);
  add.personalData({ forget: async (...which) => (await traces()).forget(...which) });
  add.status({ lines: modeLines(service, settings) });
  add.command(...modeCommands(service, settings));
  add.task({
    name: 'model probes',
    async run(signal) {
      if (configured() === 'inline') await Promise.race([asked.promise, aborted(signal)]);
      if (!signal.aborted) await (await load()).probe(signal);
    },
  });
}

export type ModeService = ReturnType<typeof createModeService>;

/** For people. */
function createModeService(kinds: () => Promise<ModeKinds>, { live, sessions }: ModeParts) {
  return {
    /** The mode of a session without a choice of its own. */
    configured: () => live.config.agents.mode,
    /** Why it cannot work, one sentence each; empty: it can. */
    async problems(mode: AgentMode): Promise<readonly string[]> {
      if (mode === 'inline') return [];
      return (await kinds())[mode]?.problems() ?? [t`nothing is configured for it`];
    },
    /** Its models, in a few words. */
    async about(mode: AgentMode): Promise<readonly string[]> {
      const kind = mode === 'inline' ? undefined : (await kinds())[mode];
      return kind?.about() ?? [t`One model does all the work.`];
    },
    /** What several models did in a turn, a line each; empty: the main model alone, or unknown. */
    async work(session: SessionKey, turn: TurnId): Promise<readonly string[]> {
      const { supervisedSteps } = await import('./rules/supervised-turn.ts');
      return supervisedSteps(await sessions.turn(session, turn));
    },
  };
}

const modeLines =
  (modes: ModeService, settings: SessionSettingsStore) =>
  async (origin: CommandOrigin | undefined) => {
    const chosen = origin === undefined ? {} : await settings.get(origin.session);
    const { mode = modes.configured() } = chosen;
    if (mode === 'inline') return [];
    const problems = await modes.problems(mode);
    return problems.length === 0
      ? [t`Mode: ${mode}`, ...(await modes.about(mode))]
      : [t`Mode: ${mode}, cannot work: ${problems.join('; ')}`];
  };

export function createModes(kinds: () => Promise<ModeKinds>, configured: () => AgentMode): Modes {
  return {
    async open(chosen, turn) {
      const mode = chosen ?? configured();
      const kind = mode === 'inline' ? undefined : (await kinds())[mode];
      if (kind === undefined) return undefined;
      const problems = await kind.problems();
      if (problems.length === 0) return kind.open(turn);
      turn.log.warn('mode cannot work, the main model answers alone', { problems });
      return undefined;
    },
  };
}

// The command `/mode`: shows or sets the mode of a conversation, from its next message on.

export const MODE_COMMANDS = {
  mode: {
    summary: t`show or change how models share the work`,
    usage: `/mode [${AGENT_MODES.join(' | ')} | default]`,
    access: COSTS,
    timing: 'in_order',
  },
} satisfies CommandTable;

function modeCommands(modes: ModeService, settings: SessionSettingsStore): readonly Command[] {
  return commandsOf(MODE_COMMANDS, {
    mode: (origin, argument) => changeMode(origin, argument, modes, settings),
  });
}

async function changeMode(
  { session }: CommandOrigin,
  argument: string,
  modes: ModeService,
  settings: SessionSettingsStore,
): Promise<string> {
  const chosen = await settings.get(session);
  const wanted = argument.toLowerCase();
  if (wanted === '') return described(chosen.mode ?? modes.configured(), modes, t`The mode is`);
  if (wanted === 'default') {
    await settings.change(session, { mode: undefined });
    return described(modes.configured(), modes, t`Back to the configured mode:`);
  }
  const mode = AGENT_MODES.find((each) => each === wanted);
  if (mode === undefined) return t`Modes: ${AGENT_MODES.join(', ')}.`;
  await settings.change(session, { mode });
  return described(mode, modes, t`From the next message on the mode is`);
}

async function described(mode: AgentMode, modes: ModeService, head: string): Promise<string> {
  const problems = await modes.problems(mode);
  const lines = problems.length === 0 ? await modes.about(mode) : problems;
  const cannot = problems.length === 0 ? '' : t` It cannot work yet, so I answer inline:`;
  return [`${head} ${mode}.${cannot}`, ...lines.map((line) => `- ${line}`)].join('\n');
}
