// Converts the configuration of OpenClaw (openclaw.json, its keys and pairings) into our settings.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { t } from '../../../lib/texts.ts';
import { splitModelName } from '../../../providers/rules/model-names.ts';
import type { ProviderName } from '../../../providers/settings.ts';
import {
  given,
  type Imported,
  importBraveKey,
  importLark,
  importModel,
  importTelegram,
  importToolServers,
  importWhatsApp,
  NOTHING,
  namesIn,
  providerSettings,
  sectionAt,
  textAt,
  together,
  unknownChannels,
  without,
} from './import-settings.ts';

type OpenClawFiles = {
  readonly config: JsonValue;
  /** Contents of auth-profiles.json of its agents. */
  readonly logins: readonly JsonValue[];
  /** Contents of the .env file beside the configuration. */
  readonly variables: Readonly<Record<string, string>>;
  /** Ids that its owner let in by pairing, by channel. */
  readonly paired: Readonly<Record<string, readonly string[]>>;
  /** Maps an environment variable to the vendor whose key it holds. */
  readonly vendorByVariable: Readonly<Record<string, ProviderName>>;
};

const KNOWN_CHANNELS = ['telegram', 'whatsapp', 'feishu', 'defaults', 'modelByChannel'];
const OTHER_NAMES: Readonly<Record<string, ProviderName>> = { google: 'gemini', zai: 'zhipu' };

export function importOpenClaw(files: OpenClawFiles): Imported {
  const channels = sectionAt(files.config, 'channels');
  const whatsApp = sectionAt(channels, 'whatsapp');
  const keys = together([...environmentKeys(files), ...loginKeys(files), ...serverKeys(files)]);
  return together([
    keys,
    models(files.config, keyedBy(keys)),
    telegram(sectionAt(channels, 'telegram'), files.paired['telegram'] ?? []),
    importWhatsApp(
      whatsApp,
      channels['whatsapp'] !== undefined && isOn(whatsApp),
      files.paired['whatsapp'],
    ),
    lark(sectionAt(channels, 'feishu')),
    braveKey(files.config),
    importToolServers(sectionAt(files.config, 'mcp', 'servers')),
    unknownChannels(channels, KNOWN_CHANNELS, isOn),
  ]);
}

/** In OpenClaw a channel with a section is on unless `enabled` is false. */
const isOn = (section: JsonObject) => section['enabled'] !== false;

const vendorOf = (name: string): ProviderName | undefined =>
  OTHER_NAMES[name] ?? splitModelName(`${name}/x`)?.vendor;

/** A text, or a reference to an environment variable; undefined for sources that we cannot read. */
function secretOf(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value.trim();
  const { source, id } = sectionAt(value);
  return source === 'env' && typeof id === 'string' ? { env: id } : undefined;
}

function environmentKeys({ config, variables, vendorByVariable }: OpenClawFiles): Imported[] {
  const env = sectionAt(config, 'env');
  const all = { ...env, ...sectionAt(env, 'vars'), ...variables };
  return Object.entries(all).flatMap(([name, value]) => {
    const vendor = vendorByVariable[name];
    if (vendor === undefined || typeof value !== 'string' || value.trim() === '') return [];
    return [providerSettings(vendor, value.trim())];
  });
}

function loginKeys({ logins }: OpenClawFiles): Imported[] {
  const profiles = logins.flatMap((login) => Object.values(sectionAt(login, 'profiles')));
  return profiles.map((profile): Imported => {
    const section = sectionAt(profile);
    const name = textAt(section, 'provider');
    const vendor = vendorOf(name);
    if (vendor === undefined) return without(t`Provider ${name}: not supported.`);
    const key = secretOf(section['key'] ?? section['keyRef']);
    if (section['type'] !== 'api_key' || key === undefined) {
      return without(t`Login with ${name}: not supported; enter an API key: nanobot onboard`);
    }
    return providerSettings(vendor, key);
  });
}

function serverKeys({ config }: OpenClawFiles): Imported[] {
  const providers = sectionAt(config, 'models', 'providers');
  return Object.entries(providers).map(([name, provider]): Imported => {
    const section = sectionAt(provider);
    const vendor = vendorOf(name);
    if (vendor === undefined) {
      return without(
        t`Provider ${name}: not supported. If its API is OpenAI-compatible, set it up as providers.local.`,
      );
    }
    return providerSettings(vendor, secretOf(section['apiKey']), textAt(section, 'baseUrl'));
  });
}

const keyedBy = ({ settings }: Imported): ReadonlySet<ProviderName> =>
  new Set(
    Object.keys(settings).flatMap((path) => {
      const vendor = /^providers\.(\w+)\.apiKey$/.exec(path)?.[1];
      const known = vendor === undefined ? undefined : vendorOf(vendor);
      return known === undefined ? [] : [known];
    }),
  );

function models(config: JsonValue, keyed: ReadonlySet<ProviderName>): Imported {
  const defaults = sectionAt(config, 'agents', 'defaults');
  const chosen = sectionAt(defaults, 'model');
  const name = textAt(defaults, 'model') || textAt(chosen, 'primary');
  const ours = (given: string) =>
    given.replace(/^(?:google|zai)(?=\/)/, (maker) => OTHER_NAMES[maker] ?? maker);
  const fallbacks = namesIn(chosen['fallbacks'])
    .map((fallback) => importModel('model', ours(fallback), keyed).settings['model'])
    .filter((fallback) => fallback !== undefined);
  return together([
    importModel('agents.defaults.model', ours(name), keyed),
    fallbacks.length === 0 ? NOTHING : given({ 'agents.defaults.fallbackModels': fallbacks }),
  ]);
}

/** The section of a channel followed by the sections of its accounts. */
const withAccounts = (section: JsonObject): readonly JsonObject[] => [
  section,
  ...Object.values(sectionAt(section, 'accounts')).filter(isJsonObject),
];

function telegram(section: JsonObject, paired: readonly string[]): Imported {
  const tokens = withAccounts(section).map((one) => secretOf(one['botToken']));
  const [token, ...further] = tokens.filter((one) => one !== undefined);
  const count = further.length;
  return together([
    count === 0
      ? NOTHING
      : without(t`Telegram: one bot is imported; ${count} more need a separate home each.`),
    importTelegram(section, isOn(section), token, paired),
  ]);
}

function lark(section: JsonObject): Imported {
  const app = withAccounts(section).find((one) => textAt(one, 'appId') !== '') ?? {};
  const domain = textAt(section, 'domain') === 'lark' ? 'lark' : undefined;
  const secret = secretOf(app['appSecret']);
  return importLark(section, isOn(section), textAt(app, 'appId'), secret, domain);
}

function braveKey(config: JsonValue): Imported {
  const search = sectionAt(config, 'tools', 'web', 'search');
  const isBrave = ['', 'brave'].includes(textAt(search, 'provider'));
  return importBraveKey(isBrave ? secretOf(search['apiKey']) : undefined);
}
