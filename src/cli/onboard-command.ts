// The command `nanobot onboard`: sets up the model (key and one real completion first), Telegram,
// mail, Lark and WhatsApp, each verified before it is saved. Every answer is also a flag.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import type { EmailFlags } from '../channels/email/setup.ts';
import type { LarkFlags } from '../channels/lark/setup.ts';
import type { TelegramFlags } from '../channels/telegram/setup.ts';
import type { WhatsAppFlags } from '../channels/whatsapp/setup.ts';
import { APPROVAL_POLICIES, type ApprovalPolicy, POLICY_WORDS } from '../kernel/access/rights.ts';
import type { ProviderName } from '../kernel/config/config.ts';
import { GENERAL_PROXY, ProxyError } from '../lib/net/address-rules.ts';
import { proveProxy } from '../lib/net/proxies.ts';
import { msgid, ngettext, t } from '../lib/texts.ts';
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
import { currentConfig, type Settings, save, tryOut } from './onboard/asker.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

const PROOF_TIMEOUT_MS = 60_000;
/** A select list of this length still fits a window. */
const MAX_LISTED = 30;
const LOCAL = 'local/';

type ProxyFlags = { readonly proxy?: string };

/** Asked for only where Telegram cannot be reached. */
async function setUpProxy(
  terminal: Terminal,
  asker: Asker,
  { proxy }: ProxyFlags,
): Promise<string | undefined> {
  if (proxy === undefined) return undefined;
  const settings = { [GENERAL_PROXY]: proxy };
  const { network, channels } = await tryOut(terminal, settings);
  const { hostname, port } = new URL(channels.telegram.apiRoot);
  await asker.during(
    t`Connecting through the proxy`,
    () => proveProxy(network.proxy, hostname, Number(port) || 443).catch(orRefused(asker)),
    () => t`The proxy works.`,
  );
  await save(terminal, settings);
  return 'proxy';
}

/** A proxy may serve the model and not Telegram. @throws CommandFailure where it does not work */
const orRefused = (asker: Asker) => (error: unknown) => {
  if (!(error instanceof ProxyError)) throw error;
  if (error.code !== 'proxy_refused') throw new CommandFailure(EXIT.failure, error.message);
  asker.warn(error.message);
};

type ModelFlags = {
  readonly model?: string;
  readonly apiKey?: string;
  readonly apiBase?: string;
};

/** The demo model is not saved: it answers while no model is configured. */
type Selection = Settings | 'demo';

export async function setUpModel(
  terminal: Terminal,
  asker: Asker,
  flags: ModelFlags,
): Promise<string | undefined> {
  const settings = await select(terminal, asker, flags);
  if (settings === 'demo') {
    asker.warn(t`No model: the demo model answers with fixed texts until you connect one.`);
    return undefined;
  }
  const config = await tryOut(terminal, settings);
  const signal = AbortSignal.timeout(PROOF_TIMEOUT_MS);
  const proof = await asker.during(
    t`Sending a test request to ${config.agents.defaults.model}`,
    () => proveConfigured(config, terminal.env, terminal.clock, signal),
    (result) => t`${result.model} answered in ${result.latencyMs} ms.`,
  );
  if (!proof.ok)
    throw new CommandFailure(EXIT.modelFailed, t`${proof.model} returned an empty answer`);
  await save(terminal, settings);
  return t`model ${proof.model}`;
}

async function select(terminal: Terminal, asker: Asker, flags: ModelFlags): Promise<Selection> {
  const { model = '', apiKey = '' } = flags;
  if (model !== '' || apiKey !== '') return fromFlags(terminal, flags);
  const found = await findModels(terminal.env);
  const configured = (await currentConfig(terminal)).agents.defaults.model;
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

function fromFlags({ env }: Terminal, { model = '', apiKey = '', apiBase }: ModelFlags): Selection {
  const vendor = vendorFor(model, apiKey);
  if (apiKey !== '' && vendor === undefined) {
    const message = t`cannot tell the provider of this key; add --model with its prefix, e.g. openai/gpt-6-sol`;
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
  const apiBase = await asker.text({
    message: t`Address of the server, e.g. http://192.168.1.5:8000/v1`,
    flag: '--api-base',
    check: (text) =>
      /^https?:\/\/[^\s/]/.test(text) ? undefined : t`Start with http:// or https://`,
  });
  const apiKey = await asker.secret({
    message: t`API key (leave empty if the server needs none)`,
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
    hint: keyVariable === undefined ? t`runs on this machine` : t`key in ${keyVariable}`,
  };
}

/** The default of approvals; saved where it changes. */
async function setUpApprovals(
  terminal: Terminal,
  asker: Asker,
  { approvals }: Pick<OnboardFlags, 'approvals'>,
): Promise<string | undefined> {
  const { owner } = (await currentConfig(terminal)).tools.approvals;
  const choices = (['normal', 'strict', 'open'] as const).map((value) => {
    return { value, label: value, hint: POLICY_WORDS[value] };
  });
  const chosen = approvals ?? (await asker.choose(t`How much should it ask you?`, choices, owner));
  if (chosen === owner) return undefined;
  await save(terminal, { 'tools.approvals.owner': chosen });
  return t`approvals ${chosen}`;
}

type OnboardFlags = ProxyFlags &
  ModelFlags &
  TelegramFlags &
  EmailFlags &
  LarkFlags &
  WhatsAppFlags & { readonly yes?: boolean; readonly approvals?: ApprovalPolicy };

const FOREIGN_HOMES = ['.openclaw', '.nanobot-python'];
const SECURITY = ['tls', 'starttls', 'none'];

export function onboardCommand(terminal: Terminal): Command {
  return new Command('onboard')
    .description(t`set up the model, Telegram, email, Lark and WhatsApp, and test each`)
    .option('-y, --yes', t`ask no questions: values without a flag are detected or skipped`)
    .option('--model <name>', t`model with its prefix, e.g. anthropic/claude-sonnet-5-5`)
    .option('--api-key <key>', t`API key of the model’s provider`)
    .option('--api-base <url>', t`API address, if it is not the provider’s own`)
    .option('--proxy <url>', t`proxy of all connections, e.g. socks5h://proxy.example:1080`)
    .addOption(
      new Option('--approvals <policy>', t`how much the agent asks you`).choices(APPROVAL_POLICIES),
    )
    .option('--telegram <token>', t`bot token from @BotFather`)
    .option('--no-telegram', t`do not change Telegram`)
    .option('--pair-wait <seconds>', t`wait until the owner opens the pairing link`, parseSeconds)
    .option('--email <address>', t`email address of the agent`)
    .option('--no-email', t`do not change email`)
    .option('--email-password <password>', t`password or app password; default: $EMAIL_PASSWORD`)
    .option('--email-client-id <id>', t`OAuth2 instead of a password: client id`)
    .option(
      '--email-client-secret <secret>',
      t`OAuth2: client secret; default: $EMAIL_CLIENT_SECRET`,
    )
    .option(
      '--email-refresh-token <token>',
      t`OAuth2: refresh token; default: $EMAIL_REFRESH_TOKEN`,
    )
    .option('--email-token-url <url>', t`OAuth2: token address, if the provider is unknown`)
    .option('--email-authorize-url <url>', t`OAuth2: consent address, if the provider is unknown`)
    .option(
      '--email-device-url <url>',
      t`OAuth2: address for codes of other devices, if the provider is unknown`,
    )
    .option('--email-scope <scope>', t`OAuth2: scope, if the provider is unknown`)
    .option('--email-device', t`OAuth2: log in by a code on another device`)
    .option('--email-username <name>', t`user name, if it is not the address`)
    .option(
      '--email-allow <addresses>',
      t`addresses whose email the agent answers, separated by commas`,
      parseList,
    )
    .option('--imap-host <host>', t`IMAP server, if it is not detected`)
    .option('--imap-port <port>', t`IMAP port; default: 993`, parsePort)
    .addOption(new Option('--imap-security <kind>').choices(SECURITY))
    .option('--smtp-host <host>', t`SMTP server, if it is not detected`)
    .option('--smtp-port <port>', t`SMTP port; default: 465`, parsePort)
    .addOption(new Option('--smtp-security <kind>').choices(SECURITY))
    .option('--lark', t`connect Lark (Feishu)`)
    .option('--no-lark', t`do not change Lark`)
    .option('--lark-app-id <id>', t`app id from the developer console`)
    .option('--lark-app-secret <secret>', t`app secret; default: $LARK_APP_SECRET`)
    .option('--lark-domain <domain>', t`feishu, lark (outside China) or a URL`)
    .option('--whatsapp', t`link WhatsApp`)
    .option('--no-whatsapp', t`do not change WhatsApp`)
    .option(
      '--whatsapp-phone <number>',
      t`number of the account, to link it by a code instead of the QR code`,
      parsePhone,
    )
    .option('--whatsapp-self', t`the number is yours; the agent answers in the chat with yourself`)
    .option('--no-whatsapp-self', t`the number belongs to the agent alone`)
    .option(
      '--whatsapp-allow <numbers>',
      t`numbers that may write, separated by commas`,
      parseNumbers,
    )
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
  if (asker.interactive) asker.say(t`Press Ctrl+C at a question to skip or repeat this step.`);
  await settleAll(asker, [
    [t`Proxy`, () => setUpProxy(terminal, asker, flags)],
    [t`Model`, () => setUpModel(terminal, asker, flags)],
    ['Telegram', (isRetry) => setUpTelegram(terminal, asker, flags, isRetry)],
    [t`Email`, (isRetry) => setUpEmail(terminal, asker, flags, isRetry)],
    ['Lark', (isRetry) => setUpLark(terminal, asker, flags, isRetry)],
    ['WhatsApp', (isRetry) => setUpWhatsApp(terminal, asker, flags, isRetry)],
    [t`Approvals`, () => setUpApprovals(terminal, asker, flags)],
  ]);
  const { findRunningGateway } = await import('../kernel/home-state.ts');
  const isRunning = (await findRunningGateway(terminal.home)) !== undefined;
  asker.say(t`Setup finished. Start with "nanobot gateway"; check with "nanobot doctor".`);
  if (isRunning || !asker.interactive || !(await asker.confirm(t`Start nanobot now?`, true)))
    return;
  const { runGateway } = await import('./gateway-command.ts');
  await runGateway(terminal, { overrides: {}, channels: 'all', http: true });
}

/** Homes of other programs that can be imported. */
function otherHomes(): readonly string[] {
  return FOREIGN_HOMES.map((name) => join(homedir(), name))
    .filter((folder) => existsSync(folder))
    .map((folder) => t`Found ${folder}. Import its settings and memory: nanobot import ${folder}`);
}

/** `--no-x` makes commander set `x` to true where the flag is absent. */
function withoutDefaults({ telegram, email, ...rest }: OnboardFlags): OnboardFlags {
  const said = (value: unknown): value is string | false =>
    typeof value === 'string' || value === false;
  return {
    ...rest,
    ...(said(telegram) ? { telegram } : {}),
    ...(said(email) ? { email } : {}),
  };
}
