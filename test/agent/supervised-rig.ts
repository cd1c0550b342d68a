// A rig in the mode supervisor: a scripted model each for the main model, the supervisor and two specialists,
// declared in files of a temporary folder.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createAgentFiles } from '../../src/features/modes/agent-files.ts';
import { createModes } from '../../src/features/modes/index.ts';
import { createSupervisor } from '../../src/features/modes/mode-kinds.ts';
import { RoleHealth } from '../../src/features/modes/role-health.ts';
import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { type Logger, silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { createScriptedModel } from '../support/scripted-model.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createRig, type RigOptions } from './agent-rig.ts';
import { sharedModels } from './shared-turns.ts';

type Supervisor = NonNullable<NonNullable<ConfigInput['agents']>['supervisor']>;

export const SHIPPED = join(import.meta.dirname, '../../config');

const AGENTS = {
  'agents/guardian.yaml':
    'description: Watches health.\nwhenNot: Small talk.\nmodel: guardian\ntools: [read_file, web_fetch, exec]\n',
  'agents/scout.yaml': 'description: Finds things.\nmodel: scout\noutput: material\n',
  'prompts/guardian/system.md': 'You are the guardian.',
  'prompts/scout/system.md': 'You are the scout.',
  'prompts/supervisor.md': 'You are the supervisor.',
  'prompts/answer.md': 'Write the answer.',
};

export async function createSupervisedRig(
  options: RigOptions & {
    readonly supervisor?: Supervisor;
    /** What the guardian's model is. */
    readonly guardian?: Parameters<typeof createScriptedModel>[0];
    /** Beside or instead of those there are; by path. */
    readonly files?: Readonly<Record<string, string>>;
  } = {},
) {
  const folder = await temporaryFolder();
  async function declare(path: string, text: string) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  for (const [path, text] of Object.entries({ ...AGENTS, ...options.files }))
    await declare(path, text);
  const { agents } = configSchema.parse({
    agents: { supervisor: { model: 'supervisor', ...options.supervisor } },
  });
  const { circuit } = agents;
  const scripted = {
    main: createScriptedModel(),
    supervisor: createScriptedModel(),
    guardian: createScriptedModel(options.guardian),
    scout: createScriptedModel(),
  };
  const { models, asked } = sharedModels(scripted);
  const told: string[] = [];
  const health = new RoleHealth({
    clock: createMovableClock(),
    announce: (text) => void told.push(text),
    policy: () => ({ failures: circuit.failures, cooldownMs: circuit.cooldownSecs * 1000 }),
  });
  const kind = createSupervisor({
    health,
    models: () => models,
    agents: createAgentFiles(createGuardedFiles(), [folder]),
    settings: () => agents,
    priceOf: () => undefined,
    trace: () => undefined,
  });
  const warnings: object[] = [];
  const log: Logger = {
    ...silentLogger,
    child: () => log,
    warn: (text, fields) => void warnings.push({ text, ...fields }),
  };
  const modes = createModes(
    async () => ({ supervisor: kind }),
    () => 'supervisor',
  );
  const rig = await createRig({ ...options, models, modes, log });
  return { rig, ...scripted, kind, asked, told, warnings, declare };
}

/** What a supervisor writes. */
export const routes = (next: string, instructions = '', reasoning = 'because') =>
  JSON.stringify({ next, instructions, reasoning });
