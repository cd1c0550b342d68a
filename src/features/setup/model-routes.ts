// Models over HTTP, with the rights of an owner: what can be used, and connecting one by the same steps
// and checks as `nanobot onboard`: a real completion, and only then the configuration.

import { z } from 'zod';
import { MODELS } from '../../agent/models.ts';
import { noteCommand } from '../../channels/local-channel.ts';
import type { Config } from '../../kernel/config/config.ts';
import { configChange, isUnchanged } from '../../kernel/config/diff.ts';
import { secretValues } from '../../kernel/config/secrets.ts';
import { isWebAddress } from '../../kernel/config/settings-fields.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers } from '../../kernel/http-routes.ts';
import { NanobotError, ProviderError } from '../../kernel/message/errors.ts';
import { defined } from '../../lib/json/json.ts';
import { createRedactor } from '../../lib/text/redact.ts';
import { t } from '../../lib/texts.ts';
import { comesTrue } from '../../lib/time/clock.ts';
import {
  CLOUD_VENDORS,
  type FoundModel,
  findModels,
  keyVariableOf,
  modelsOf,
  vendorFor,
} from '../../providers/model-setup.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { isDemo } from '../../providers/rules/model-names.ts';
import { vendorOf } from '../../providers/vendors.ts';
import { ADDRESS_HINT, currentConfig, explained, save, setupProblem, tryOut } from './asker.ts';
import { modelSettings, proveModelOf } from './model-step.ts';
import { connectedModel, listedModels, modelChoices } from './rules/views.ts';

const MAX_CHARS = 1000;
/** The configuration is looked at each second. */
const IN_FORCE_MS = 5000;
const LOOK_MS = 50;

const text = z.string().trim().max(MAX_CHARS);
const address = text.refine(isWebAddress, ADDRESS_HINT);

export function modelRoutes(kernel: Kernel) {
  const { live, env, clock, measuring } = kernel;
  const models = kernel.use(MODELS);

  async function choices() {
    const { providers } = live.config;
    return {
      current: modelInUse(models.current()),
      found: (await findModels(env)).map(shownFound),
      vendors: CLOUD_VENDORS.map((each) => ({
        ...each,
        hasKey: (providers[each.vendor]?.apiKey ?? '') !== '',
      })),
    };
  }

  /** Resolves when the next message is answered by it. */
  async function connect(asked: { model?: string; apiKey?: string; apiBase?: string }) {
    const settings = modelSettings(kernel, { ...asked, ...keyFromEnvironment(asked) });
    const draft = await tryOut(kernel, settings);
    const proof = await proveModelOf(kernel, draft).catch(masked(draft));
    const before = models.current();
    await save(kernel, settings);
    noteCommand(measuring.audit, 'setup', 'model', proof.model);
    if (isUnchanged(configChange(live.config, await currentConfig(kernel)))) return proof;
    const limits = { withinMs: IN_FORCE_MS, everyMs: LOOK_MS };
    await comesTrue(clock, limits, () => models.current() !== before);
    return proof;
  }

  /** Saved as a reference, as `nanobot onboard` does. */
  function keyFromEnvironment({ model = '', apiKey = '' }: { model?: string; apiKey?: string }) {
    const vendor = vendorFor(model, '');
    if (apiKey !== '' || vendor === undefined) return {};
    const variable = keyVariableOf(vendor, env);
    const isConfigured = (live.config.providers[vendor]?.apiKey ?? '') !== '';
    return variable === undefined || isConfigured ? {} : defined({ apiKey: env[variable] });
  }

  return {
    'GET /api/v1/setup/models': endpoint(
      { summary: t`The model in use, and models that can be connected`, answer: modelChoices },
      choices,
    ),
    'POST /api/v1/setup/models': endpoint(
      {
        summary: t`Connect a model: it answers a test request before it is saved`,
        body: z.strictObject({
          model: text.exactOptional().describe('With its prefix; default: of the provider.'),
          apiKey: text.exactOptional(),
          apiBase: address.exactOptional().describe('If it is not the provider’s own.'),
        }),
        answer: connectedModel,
      },
      (_params, asked) => explained(() => connect(asked)),
    ),
    'POST /api/v1/setup/models/listed': endpoint(
      {
        summary: t`The models that a server lists`,
        body: z.strictObject({ apiBase: address, apiKey: text.default('') }),
        answer: listedModels,
      },
      async (_params, server) => ({ models: [...(await modelsOf(server))] }),
    ),
  } satisfies RouteHandlers;
}

function shownFound({ vendor, model, keyVariable }: FoundModel) {
  return { model, label: vendorOf(vendor).label, ...defined({ keyVariable }) };
}

export function modelInUse(models: ModelRegistry) {
  const name = models.defaultModel;
  const shown = { name, isDemo: isDemo(name) };
  try {
    models.resolve(name);
    return shown;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return { ...shown, problem: error.userText ?? error.message };
  }
}

/** A server may repeat the key, which is not configured yet and therefore not redacted elsewhere. */
const masked = (draft: Config) => (error: unknown) => {
  if (!(error instanceof NanobotError)) throw error;
  const redact = createRedactor(secretValues(draft));
  throw new Refusal(422, error.code, redact(setupProblem(error)));
};
