// A rig whose turns are shared among scripted models: main, router, specialist, runner. Each has a script
// of its own; calls that nobody scripted fail the test.

import { createAgentFiles } from '../../src/features/modes/agent-files.ts';
import { createDelegation } from '../../src/features/modes/digests.ts';
import { createModes } from '../../src/features/modes/index.ts';
import { RoleHealth } from '../../src/features/modes/role-health.ts';
import type { TraceRecord } from '../../src/features/modes/trace-files.ts';
import { createTrio } from '../../src/features/modes/trio.ts';
import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import type { AgentMode } from '../../src/kernel/config/settings-fields.ts';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import type { ModelEvent, ModelRegistry } from '../../src/providers/provider.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { createScriptedModel, type ScriptedCall } from '../support/scripted-model.ts';
import { createRig, type RigOptions } from './agent-rig.ts';

type Agents = NonNullable<ConfigInput['agents']>;

export async function createSharedRig(
  mode: AgentMode,
  options: RigOptions & {
    readonly trio?: Agents['trio'];
    readonly delegation?: Agents['delegation'];
  } = {},
) {
  const config = configSchema.parse({
    agents: {
      trio: { router: { model: 'router' }, specialist: { model: 'specialist' }, ...options.trio },
      delegation: { model: '', ...options.delegation },
    },
  });
  const { agents } = config;
  const { circuit } = agents;
  const scripted = {
    main: createScriptedModel(),
    router: createScriptedModel(),
    specialist: createScriptedModel(),
    runner: createScriptedModel(),
  };
  const { models, asked } = sharedModels(scripted);
  const clock = createMovableClock();
  const told: string[] = [];
  const traces: TraceRecord[] = [];
  const health = new RoleHealth({
    clock,
    announce: (text) => void told.push(text),
    policy: () => ({ failures: circuit.failures, cooldownMs: circuit.cooldownSecs * 1000 }),
  });
  const deps = {
    ...{ health, models: () => models, settings: () => agents },
    agents: createAgentFiles(createGuardedFiles(), []),
    priceOf: () => ({ input: 1, output: 1, cached: 1 }),
    trace: (record: TraceRecord) => void traces.push(record),
  };
  const kinds = { delegated: createDelegation(deps), trio: createTrio(deps) };
  const rig = await createRig({
    ...options,
    models,
    modes: createModes(
      async () => kinds,
      () => mode,
    ),
  });
  return { rig, ...scripted, kinds, health, clock, asked, told, traces };
}

/** The scripted models by name, and the names in the order in which they were asked. */
export function sharedModels(
  scripted: Readonly<Record<string, ReturnType<typeof createScriptedModel>>>,
) {
  const asked: string[] = [];
  const models: ModelRegistry = {
    defaultModel: 'main',
    fast: (model) => model,
    resolve(name) {
      const found = scripted[name];
      if (found === undefined) throw notServed(name);
      const handle = found.models.resolve(name);
      return {
        ...handle,
        name,
        stream(...call) {
          asked.push(name);
          return answeredBy(name, handle.stream(...call));
        },
      };
    },
  };
  return { models, asked };
}

const notServed = (model: string) =>
  new ProviderError('unknown', { failure: { kind: 'unknown_model' }, provider: 'test', model });

/** The call of a router. */
export const decides = (decision: object): ScriptedCall =>
  async function* () {
    yield {
      type: 'finished',
      model: 'router',
      text: JSON.stringify({ confidence: 0.9, ...decision }),
      toolCalls: [],
      thinking: [],
      stop: 'end',
    };
  };

export const doesNotAnswer: ScriptedCall = async function* () {
  yield { type: 'thinking', delta: '' };
  throw new ProviderError('down', {
    failure: { kind: 'server', status: 503 },
    provider: 'test',
    model: 'any',
  });
};

/** As a provider names the model that answered. */
async function* answeredBy(
  model: string,
  events: AsyncIterable<ModelEvent>,
): AsyncGenerator<ModelEvent, void, void> {
  for await (const event of events) yield event.type === 'finished' ? { ...event, model } : event;
}
