// The step of the setup for the model: one that is found, a provider's with its key, or a server's with
// its address; saved once it answered a real request.

import { CommandFailure, EXIT } from '../../cli/terminal.ts';
import type { Config, ProviderName } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import {
  CLOUD_VENDORS,
  type FoundModel,
  findModels,
  keyVariableOf,
  modelsOf,
  proveConfigured,
  type ServerAddress,
  vendorFor,
} from '../../providers/model-setup.ts';
import {
  type Asker,
  askServer,
  currentConfig,
  type Settings,
  type SetupHost,
  save,
  tryOut,
} from './asker.ts';

const PROOF_TIMEOUT_MS = 60_000;
/** A select list of this length still fits a window. */
const MAX_LISTED = 30;
const LOCAL = 'local/';

export type ModelFlags = {
  readonly model?: string;
  readonly apiKey?: string;
  readonly apiBase?: string;
};

/** The demo model is not saved: it answers while no model is configured. */
type Selection = Settings | 'demo';

export async function setUpModel(
  host: SetupHost,
  asker: Asker,
  flags: ModelFlags,
): Promise<string | undefined> {
  const settings = await select(host, asker, flags);
  if (settings === 'demo') {
    asker.warn(t`No model: the demo model answers with fixed texts until you connect one.`);
    return undefined;
  }
  const config = await tryOut(host, settings);
  const { model } = await asker.during(
    t`Sending a test request to ${config.agents.defaults.model}`,
    () => proveModelOf(host, config),
    (result) => t`${result.model} answered in ${result.latencyMs} ms.`,
  );
  await save(host, settings);
  return t`model ${model}`;
}

/** One real completion. @throws ProviderError, CommandFailure */
export async function proveModelOf({ env, clock }: SetupHost, config: Config) {
  const signal = AbortSignal.timeout(PROOF_TIMEOUT_MS);
  const { ok, model, latencyMs } = await proveConfigured(config, env, clock, signal);
  if (!ok) throw new CommandFailure(EXIT.modelFailed, t`${model} returned an empty answer`);
  return { model, latencyMs };
}

async function select(host: SetupHost, asker: Asker, flags: ModelFlags): Promise<Selection> {
  const { model = '', apiKey = '', apiBase } = flags;
  if (model !== '' || apiKey !== '' || apiBase !== undefined) return modelSettings(host, flags);
  const found = await findModels(host.env);
  const configured = (await currentConfig(host)).agents.defaults.model;
  const choices = [
    ...(configured === '' ? [] : [{ value: 'configured', label: `${configured} (configured)` }]),
    ...found.map((one, index) => ({ value: t`found ${index}`, ...describe(one) })),
    { value: 'key', label: t`Another provider, with an API key` },
    { value: 'server', label: t`My own server`, hint: t`OpenAI-compatible API` },
    { value: 'demo', label: t`None for now`, hint: t`a demo model answers with fixed texts` },
  ];
  const answer = await asker.choose(
    t`Which model should answer?`,
    choices,
    choices[0]?.value ?? '',
  );
  if (answer === 'demo') return 'demo';
  if (answer === 'configured') return modelSetting(configured);
  if (answer === 'key') return asker.interactive ? withKey(asker) : 'demo';
  if (answer === 'server') return withServer(asker);
  const chosen = found[Number(answer.slice('found '.length))];
  return chosen === undefined ? 'demo' : withFound(asker, chosen);
}

/** @throws CommandFailure where neither the model nor the key tells whose key or address it is */
export function modelSettings(
  { env }: SetupHost,
  { model = '', apiKey = '', apiBase }: ModelFlags,
): Settings {
  const vendor = vendorFor(model, apiKey);
  if ((apiKey !== '' || apiBase !== undefined) && vendor === undefined) {
    const message = t`cannot tell the provider of this key or address; name the model too, with its prefix, e.g. --model openai/gpt-6-sol`;
    throw new CommandFailure(EXIT.usage, message);
  }
  const name = model === '' ? defaultModel(vendor) : model;
  if (vendor === undefined) return modelSetting(name);
  const key = apiKey === '' ? {} : { apiKey: keyOrReference(apiKey, vendor, env) };
  const base = apiBase === undefined ? {} : { apiBase };
  const access = Object.entries({ ...key, ...base });
  return {
    ...modelSetting(name),
    ...Object.fromEntries(access.map(([field, value]) => [`providers.${vendor}.${field}`, value])),
  };
}

async function withKey(asker: Asker): Promise<Selection> {
  const choices = CLOUD_VENDORS.map(({ vendor, label }) => ({ value: vendor, label }));
  const vendor = await asker.choose(t`Provider`, choices, choices[0]?.value ?? 'openai');
  const apiKey = await asker.secret({ message: 'API key', flag: '--api-key' });
  const model = await askModel(asker, defaultModel(vendor));
  return { ...modelSetting(model), [`providers.${vendor}.apiKey`]: apiKey };
}

/** vLLM, LiteLLM, llama.cpp and others, here or on another machine. */
async function withServer(asker: Asker): Promise<Selection> {
  const server = await askServer(asker);
  const model = await serverModel(asker, server);
  return {
    ...modelSetting(model.startsWith(LOCAL) ? model : `${LOCAL}${model}`),
    'providers.local.apiBase': server.apiBase,
    ...(server.apiKey === '' ? {} : { 'providers.local.apiKey': server.apiKey }),
  };
}

/** A model of the server's list; typed where the server lists none. */
async function serverModel(asker: Asker, server: ServerAddress): Promise<string> {
  const models = await asker.during(
    t`Loading the list of models from ${server.apiBase}`,
    () => modelsOf(server),
    ({ length }) =>
      length === 0
        ? t`The server lists no models.`
        : ngettext(
            msgid`The server has ${length} model.`,
            `The server has ${length} models.`,
            length,
          ),
  );
  const named = () => asker.text({ message: t`Model name`, flag: '--model' });
  const [first] = models;
  if (first === undefined) return named();
  const choices = [
    ...models.slice(0, MAX_LISTED).map((model) => ({ value: model, label: model })),
    { value: '', label: t`Enter another name` },
  ];
  return (await asker.choose(t`Model`, choices, first)) || named();
}

async function withFound(asker: Asker, found: FoundModel): Promise<Selection> {
  if (found.keyVariable === undefined) return modelSetting(found.model);
  const model = await askModel(asker, found.model);
  const reference = `\${${found.keyVariable}}`;
  const stored = await asker.confirm(
    t`Save a reference to ${reference} in the configuration? The key itself stays in the environment.`,
    true,
  );
  const key = stored ? { [`providers.${found.vendor}.apiKey`]: reference } : {};
  return { ...modelSetting(model), ...key };
}

function askModel(asker: Asker, initial: string): Promise<string> {
  return asker.text({ message: t`Model`, flag: '--model', initial });
}

/** A key from the environment is saved as a reference, not copied. */
function keyOrReference(apiKey: string, vendor: ProviderName, env: Environment): string {
  const variable = keyVariableOf(vendor, env);
  return variable !== undefined && env[variable] === apiKey ? `\${${variable}}` : apiKey;
}

const modelSetting = (model: string): Settings => ({ 'agents.defaults.model': model });

function defaultModel(vendor: ProviderName | undefined): string {
  return CLOUD_VENDORS.find((one) => one.vendor === vendor)?.defaultModel ?? '';
}

function describe({ model, keyVariable }: FoundModel) {
  return {
    label: model,
    hint: keyVariable === undefined ? t`runs on this machine` : t`key in ${keyVariable}`,
  };
}
