// `nanobot onboard`: sets up the model (key and one real completion first), Telegram, mail, Lark and
// WhatsApp, each proved before it is saved. Every answer is also a flag.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import type { EmailFlags } from '../channels/email/setup.ts';
import type { LarkFlags } from '../channels/lark/setup.ts';
import type { TelegramFlags } from '../channels/telegram/setup.ts';
import type { WhatsAppFlags } from '../channels/whatsapp/setup.ts';
import type { ProviderName } from '../kernel/config/config.ts';
import {
  CLOUD_VENDORS,
  type FoundModel,
  findModels,
  keyVariableOf,
  modelsOf,
  proveConfigured,
  type ServerAddress,
  vendorFor,
} from '../providers/model-setup.ts';
import { parseList, parseNumbers, parsePhone, parsePort, parseSeconds } from './flag-values.ts';
import type { Asker } from './onboard/asker.ts';
import { currentConfig, type Settings, save, tryOut } from './onboard/owner-step.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

const PROOF_TIMEOUT_MS = 60_000;
/** A select list that still fits a window. */
const MAX_LISTED = 30;
const LOCAL = 'local/';

type ModelFlags = {
  readonly model?: string;
  readonly apiKey?: string;
  readonly apiBase?: string;
};

/** The demo is not saved: it is what counts while nothing is configured. */
type Selection = Settings | 'demo';

export async function setUpModel(
  terminal: Terminal,
  asker: Asker,
  flags: ModelFlags,
): Promise<string | undefined> {
  const settings = await select(terminal, asker, flags);
  if (settings === 'demo') {
    asker.warn('No model: a demo without intelligence answers until you connect one.');
    return undefined;
  }
  const config = await tryOut(terminal, settings);
  const signal = AbortSignal.timeout(PROOF_TIMEOUT_MS);
  const proof = await asker.during(
    `Asking ${config.agents.defaults.model} for one word`,
    () => proveConfigured(config, terminal.env, terminal.clock, signal),
    (result) => `${result.model} answered in ${result.latencyMs} ms.`,
  );
  if (!proof.ok) throw new CommandFailure(EXIT.modelFailed, `${proof.model} answered nothing`);
  await save(terminal, settings);
  return `model ${proof.model}`;
}

async function select(terminal: Terminal, asker: Asker, flags: ModelFlags): Promise<Selection> {
  const { model = '', apiKey = '' } = flags;
  if (model !== '' || apiKey !== '') return fromFlags(terminal, flags);
  const found = await findModels(terminal.env);
  const configured = (await currentConfig(terminal)).agents.defaults.model;
  const choices = [
    ...(configured === '' ? [] : [{ value: 'configured', label: `${configured} (configured)` }]),
    ...found.map((one, index) => ({ value: `found ${index}`, ...describe(one) })),
    { value: 'key', label: 'Another provider, with an API key' },
    { value: 'server', label: 'A server with an address of its own', hint: 'OpenAI dialect' },
    { value: 'demo', label: 'None for now', hint: 'a demo answers' },
  ];
  const answer = await asker.choose('Which model should answer?', choices, choices[0]?.value ?? '');
  if (answer === 'demo') return 'demo';
  if (answer === 'configured') return modelSetting(configured);
  if (answer === 'key') return asker.interactive ? withKey(asker) : 'demo';
  if (answer === 'server') return withServer(asker);
  const chosen = found[Number(answer.slice('found '.length))];
  return chosen === undefined ? 'demo' : withFound(asker, chosen);
}

function fromFlags({ env }: Terminal, { model = '', apiKey = '', apiBase }: ModelFlags): Selection {
  const vendor = vendorFor(model, apiKey);
  if (apiKey !== '' && vendor === undefined) {
    const message = 'whose key is this? Say --model with its prefix, e.g. openai/gpt-6-sol';
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
  const vendor = await asker.choose('Whose key?', choices, choices[0]?.value ?? 'openai');
  const apiKey = await asker.secret({ message: 'The API key', flag: '--api-key' });
  const model = await askModel(asker, defaultModel(vendor));
  return { ...modelSetting(model), [`providers.${vendor}.apiKey`]: apiKey };
}

/** vLLM, LiteLLM, llama.cpp and others, here or on another machine. */
async function withServer(asker: Asker): Promise<Selection> {
  const apiBase = await asker.text({
    message: 'Its address, e.g. http://192.168.1.5:8000/v1',
    flag: '--api-base',
    check: (text) =>
      /^https?:\/\/[^\s/]/.test(text) ? undefined : 'Begin with http:// or https://',
  });
  const apiKey = await asker.secret({
    message: 'Its API key (empty: it asks for none)',
    flag: '--api-key',
    optional: true,
  });
  const model = await serverModel(asker, { apiBase, apiKey });
  return {
    ...modelSetting(model.startsWith(LOCAL) ? model : `${LOCAL}${model}`),
    'providers.local.apiBase': apiBase,
    ...(apiKey === '' ? {} : { 'providers.local.apiKey': apiKey }),
  };
}

/** One of the server's list; typed where it lists none. */
async function serverModel(asker: Asker, server: ServerAddress): Promise<string> {
  const models = await asker.during(
    `Asking ${server.apiBase} for its models`,
    () => modelsOf(server),
    ({ length }) =>
      length === 0
        ? 'It lists no models.'
        : `It lists ${length} ${length === 1 ? 'model' : 'models'}.`,
  );
  const named = () => asker.text({ message: 'Model name', flag: '--model' });
  const [first] = models;
  if (first === undefined) return named();
  const choices = [
    ...models.slice(0, MAX_LISTED).map((model) => ({ value: model, label: model })),
    { value: '', label: 'Another, by its name' },
  ];
  return (await asker.choose('Which of its models?', choices, first)) || named();
}

async function withFound(asker: Asker, found: FoundModel): Promise<Selection> {
  if (found.keyVariable === undefined) return modelSetting(found.model);
  const model = await askModel(asker, found.model);
  const reference = `\${${found.keyVariable}}`;
  const stored = await asker.confirm(
    `Note ${reference} as the key in the configuration? The key itself stays in the environment.`,
    true,
  );
  const key = stored ? { [`providers.${found.vendor}.apiKey`]: reference } : {};
  return { ...modelSetting(model), ...key };
}

function askModel(asker: Asker, initial: string): Promise<string> {
  return asker.text({ message: 'Which of its models?', flag: '--model', initial });
}

/** A key that stands in the environment is noted by its name, not copied. */
function keyOrReference(apiKey: string, vendor: ProviderName, env: Terminal['env']): string {
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
    hint: keyVariable === undefined ? 'runs on this machine' : `key in ${keyVariable}`,
  };
}

type OnboardFlags = ModelFlags &
  TelegramFlags &
  EmailFlags &
  LarkFlags &
  WhatsAppFlags & { readonly yes?: boolean };

const FOREIGN_HOMES = ['.openclaw', '.nanobot-python'];
const SECURITY = ['tls', 'starttls', 'none'];

export function onboardCommand(terminal: Terminal): Command {
  return new Command('onboard')
    .description('set up model, Telegram, mail, Lark and WhatsApp; each is proved or linked')
    .option('-y, --yes', 'ask nothing: what no flag answers is found or left out')
    .option('--model <name>', 'with its prefix, e.g. anthropic/claude-sonnet-5-5')
    .option('--api-key <key>', 'of the model’s provider')
    .option('--api-base <url>', 'of the model’s provider, instead of its own')
    .option('--telegram <token>', 'bot token from @BotFather')
    .option('--no-telegram', 'leave Telegram as it is')
    .option('--pair-wait <seconds>', 'wait for the first use of the pairing link', parseSeconds)
    .option('--email <address>', 'the agent’s own mail address')
    .option('--no-email', 'leave mail as it is')
    .option('--email-password <password>', 'or EMAIL_PASSWORD in the environment')
    .option('--email-client-id <id>', 'OAuth2 instead of a password: id of the client')
    .option('--email-client-secret <secret>', 'or EMAIL_CLIENT_SECRET in the environment')
    .option('--email-refresh-token <token>', 'or EMAIL_REFRESH_TOKEN in the environment')
    .option('--email-token-url <url>', 'where the provider is not known')
    .option('--email-scope <scope>', 'where the provider is not known')
    .option('--email-username <name>', 'where it is not the address')
    .option('--email-allow <addresses>', 'whose mail it may answer, by commas', parseList)
    .option('--imap-host <host>', 'where it is not found by itself')
    .option('--imap-port <port>', 'default 993', parsePort)
    .addOption(new Option('--imap-security <kind>').choices(SECURITY))
    .option('--smtp-host <host>', 'where it is not found by itself')
    .option('--smtp-port <port>', 'default 465', parsePort)
    .addOption(new Option('--smtp-security <kind>').choices(SECURITY))
    .option('--lark', 'connect Lark (Feishu)')
    .option('--no-lark', 'leave Lark as it is')
    .option('--lark-app-id <id>', 'of an app in the developer console')
    .option('--lark-app-secret <secret>', 'or LARK_APP_SECRET in the environment')
    .option('--lark-domain <domain>', 'feishu, lark (outside China) or an address')
    .option('--whatsapp', 'link WhatsApp')
    .option('--no-whatsapp', 'leave WhatsApp as it is')
    .option('--whatsapp-phone <number>', 'its number, for a code beside the QR', parsePhone)
    .option('--whatsapp-self', 'the number is yours; answer in the chat with yourself')
    .option('--no-whatsapp-self', 'the number is the agent’s own')
    .option('--whatsapp-allow <numbers>', 'who may write, by commas', parseNumbers)
    .action((flags: OnboardFlags) => onboard(terminal, flags));
}

async function onboard(terminal: Terminal, given: OnboardFlags) {
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { createAsker, settleAll } = await import('./onboard/asker.ts');
  const { setUpTelegram } = await import('../channels/telegram/setup.ts');
  const { setUpEmail } = await import('../channels/email/setup.ts');
  const { setUpLark } = await import('../channels/lark/setup.ts');
  const { setUpWhatsApp } = await import('../channels/whatsapp/setup.ts');
  const { notes } = await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive && given.yes !== true);
  for (const note of [...notes, ...otherHomes()]) asker.say(note);
  const flags = withoutDefaults(given);
  if (asker.interactive)
    asker.say('Ctrl+C at a question leaves its step: try it again or skip it.');
  await settleAll(asker, [
    ['The model', () => setUpModel(terminal, asker, flags)],
    ['Telegram', (isRetry) => setUpTelegram(terminal, asker, flags, isRetry)],
    ['Mail', (isRetry) => setUpEmail(terminal, asker, flags, isRetry)],
    ['Lark', (isRetry) => setUpLark(terminal, asker, flags, isRetry)],
    ['WhatsApp', (isRetry) => setUpWhatsApp(terminal, asker, flags, isRetry)],
  ]);
  const { findRunningGateway } = await import('../kernel/running-gateway.ts');
  const isRunning = (await findRunningGateway(terminal.home)) !== undefined;
  asker.say('Done. "nanobot gateway" starts it; "nanobot doctor" checks it at any time.');
  if (isRunning || !asker.interactive || !(await asker.confirm('Start nanobot now?', true))) return;
  const { runGateway } = await import('./gateway-command.ts');
  await runGateway(terminal, { overrides: {}, channels: 'all', http: true });
}

/** Whoever comes from another program need not type it all again. */
function otherHomes(): readonly string[] {
  return FOREIGN_HOMES.map((name) => join(homedir(), name))
    .filter((folder) => existsSync(folder))
    .map((folder) => `There is ${folder}: "nanobot import ${folder}" takes over what is in it.`);
}

/** `--no-x` makes commander set `x` to true where nothing was said. */
function withoutDefaults({ telegram, email, ...rest }: OnboardFlags): OnboardFlags {
  const said = (value: unknown): value is string | false =>
    typeof value === 'string' || value === false;
  return {
    ...rest,
    ...(said(telegram) ? { telegram } : {}),
    ...(said(email) ? { email } : {}),
  };
}
