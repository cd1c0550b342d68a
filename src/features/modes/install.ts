// Installs the modes of the agent: which models share the work of a turn, and what people see of that. A turn is
// inline, and nothing of the other modes is loaded, unless the configuration or its conversation says otherwise.

import { MODELS } from '../../agent/models.ts';
import type { StatusSource } from '../../kernel/commands/command.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { readOnce } from '../../lib/async.ts';
import { aborted } from '../../lib/time/clock.ts';
import { SPENDING } from '../spending/install.ts';
import { modeCommands } from './mode-command.ts';
import type { ModeParts } from './mode-kinds.ts';
import type { ModeDesk, ModeKinds, Modes } from './modes.ts';
import type { AgentMode } from './rules/mode.ts';
import { createTraceFiles } from './trace-files.ts';

export const MODES = port<Modes>('modes');
export const MODE_DESK = port<ModeDesk>('mode desk');

export function install(kernel: Kernel): void {
  const { live, clock, log, home, settings, sessions, owners, add } = kernel;
  const { current: models } = kernel.use(MODELS);
  const spending = kernel.use(SPENDING);
  const { tell } = owners;
  const parts = { live, clock, log, home, settings, sessions, models, spending, tell };
  const traces = createTraceFiles({ ...parts, traces: home.traces });
  const asked = Promise.withResolvers<void>();
  const load = readOnce(async () => {
    asked.resolve();
    return (await import('./mode-kinds.ts')).createModeKinds(parts, traces);
  });
  const kinds = async () => (await load()).kinds;
  const configured = () => live.config.agents.mode;
  const { desk, status } = shownModes(kinds, parts);
  kernel.provide(MODES, createModes(kinds, configured));
  kernel.provide(MODE_DESK, desk);
  add.personalData(traces);
  add.status(status);
  add.command(...modeCommands(desk, settings));
  add.task({
    name: 'model probes',
    async run(signal) {
      if (configured() === 'inline') await Promise.race([asked.promise, aborted(signal)]);
      if (!signal.aborted) await (await load()).probe(signal);
    },
  });
}

function shownModes(
  kinds: () => Promise<ModeKinds>,
  { live, settings, sessions }: ModeParts,
): { readonly desk: ModeDesk; readonly status: StatusSource } {
  const configured = () => live.config.agents.mode;
  const desk: ModeDesk = {
    configured,
    async problems(mode) {
      if (mode === 'inline') return [];
      return (await kinds())[mode]?.problems() ?? ['nothing is set up for it'];
    },
    async about(mode) {
      const kind = mode === 'inline' ? undefined : (await kinds())[mode];
      return kind?.about() ?? ['One model does all.'];
    },
    async work(session, turn) {
      const { supervisedSteps } = await import('./rules/supervised-turn.ts');
      return supervisedSteps(await sessions.turn(session, turn));
    },
  };
  return {
    desk,
    async status(session) {
      const mode = (await settings.get(session)).mode ?? configured();
      if (mode === 'inline') return [];
      const problems = await desk.problems(mode);
      return problems.length === 0
        ? [`Mode: ${mode}`, ...(await desk.about(mode))]
        : [`Mode: ${mode}, cannot work: ${problems.join('; ')}`];
    },
  };
}

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
