// The configuration of OpenClaw (openclaw.json, its keys and its pairings), as settings of ours.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { splitModelName } from '../../../providers/rules/model-names.ts';
import type { ProviderName } from '../../../providers/settings.ts';
import {
  type Imported,
  importAllowed,
  importedChannels,
  importModel,
  importToolServers,
  larkIdOf,
  NOTHING,
  namesIn,
  sectionAt,
  telegramIdOf,
  textAt,
  together,
  whatsAppIdOf,
} from './import-settings.ts';

type OpenClawFiles = {
  readonly config: JsonValue;
  /** auth-profiles.json of its agents. */
  readonly logins: readonly JsonValue[];
  /** Of the .env file beside the configuration. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whom its owner let in by pairing, by channel. */
  readonly paired: Readonly<Record<string, readonly string[]>>;
  /** Which of our vendors a variable holds the key of. */
  readonly vendorByVariable: Readonly<Record<string, ProviderName>>;
};

const KNOWN_CHANNELS = ['telegram', 'whatsapp', 'feishu', 'defaults', 'modelByChannel'];
const OTHER_NAMES: Readonly<Record<string, ProviderName>> = { google: 'gemini', zai: 'zhipu' };

export function importOpenClaw(files: OpenClawFiles): Imported {
  const channels = sectionAt(files.config, 'channels');
  const keys = together([...environmentKeys(files), ...loginKeys(files), ...serverKeys(files)]);
  return together([
    keys,
    models(files.config, keyedBy(keys)),
    telegram(sectionAt(channels, 'telegram'), files.paired['telegram'] ?? []),
    whatsApp(channels, files.paired['whatsapp'] ?? []),
    lark(sectionAt(channels, 'feishu')),
    braveKey(files.config),
    importToolServers(sectionAt(files.config, 'mcp', 'servers')),
    { settings: {}, left: importedChannels(switchedOn(channels), KNOWN_CHANNELS) },
  ]);
}

/** A channel with a section runs there, unless it says no. */
const switchedOn = (channels: JsonObject) =>
  Object.entries(channels).flatMap(([name, section]) =>
    isJsonObject(section) && section['enabled'] !== false ? [name] : [],
  );

const vendorOf = (name: string): ProviderName | undefined =>
  OTHER_NAMES[name] ?? splitModelName(`${name}/x`)?.vendor;

/** A text, or what we write for a secret in the environment; undefined for what we cannot follow. */
function secretOf(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value.trim();
  const reference = isJsonObject(value) ? value : {};
  return reference['source'] === 'env' && typeof reference['id'] === 'string'
    ? { env: reference['id'] }
    : undefined;
}

function environmentKeys({ config, variables, vendorByVariable }: OpenClawFiles): Imported[] {
  const env = sectionAt(config, 'env');
  const all = { ...env, ...sectionAt(env, 'vars'), ...variables };
  return Object.entries(all).flatMap(([name, value]) => {
    const vendor = vendorByVariable[name];
    if (vendor === undefined || typeof value !== 'string' || value.trim() === '') return [];
    return [{ settings: { [`providers.${vendor}.apiKey`]: value.trim() }, left: [] }];
  });
}

function loginKeys({ logins }: OpenClawFiles): Imported[] {
  const profiles = logins.flatMap((login) => Object.values(sectionAt(login, 'profiles')));
  return profiles.map((profile): Imported => {
    const section = isJsonObject(profile) ? profile : {};
    const name = textAt(section, 'provider');
    const vendor = vendorOf(name);
    if (vendor === undefined) return without(`Provider ${name}: unknown here.`);
    const key = secretOf(section['key'] ?? section['keyRef']);
    if (section['type'] !== 'api_key' || key === undefined) {
      return without(`Login with ${name}: here an API key is needed. nanobot onboard takes one.`);
    }
    return { settings: { [`providers.${vendor}.apiKey`]: key }, left: [] };
  });
}

function serverKeys({ config }: OpenClawFiles): Imported[] {
  const providers = sectionAt(config, 'models', 'providers');
  return Object.entries(providers).map(([name, provider]): Imported => {
    const section = isJsonObject(provider) ? provider : {};
    const vendor = vendorOf(name);
    if (vendor === undefined) {
      return without(`Provider ${name}: unknown here. With the OpenAI dialect: providers.local.`);
    }
    const key = secretOf(section['apiKey']);
    const base = textAt(section, 'baseUrl');
    return {
      settings: {
        ...(key === undefined ? {} : { [`providers.${vendor}.apiKey`]: key }),
        ...(base === '' ? {} : { [`providers.${vendor}.apiBase`]: base }),
      },
      left: [],
    };
  });
}

const without = (left: string): Imported => ({ settings: {}, left: [left] });

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
    fallbacks.length === 0
      ? NOTHING
      : { settings: { 'agents.defaults.fallbackModels': fallbacks }, left: [] },
  ]);
}

function telegram(section: JsonObject, paired: readonly string[]): Imported {
  const accounts = Object.values(sectionAt(section, 'accounts')).filter(isJsonObject);
  const tokens = [section, ...accounts].map((one) => secretOf(one['botToken']));
  const [token, ...further] = tokens.filter((one) => one !== undefined);
  const path = 'channels.telegram';
  if (token === undefined) return NOTHING;
  return together([
    {
      settings: { [`${path}.enabled`]: section['enabled'] !== false, [`${path}.token`]: token },
      left:
        further.length === 0
          ? []
          : [
              `Telegram: one bot is taken; ${further.length} more would each need a home of its own.`,
            ],
    },
    importAllowed(
      `${path}.allowFrom`,
      'Telegram',
      [...namesIn(section['allowFrom']), ...paired],
      telegramIdOf,
    ),
  ]);
}

function whatsApp(channels: JsonObject, paired: readonly string[]): Imported {
  const section = sectionAt(channels, 'whatsapp');
  const isOn = channels['whatsapp'] !== undefined && section['enabled'] !== false;
  return together([
    importAllowed(
      'channels.whatsapp.allowFrom',
      'WhatsApp',
      [...namesIn(section['allowFrom']), ...paired],
      whatsAppIdOf,
    ),
    isOn ? without('WhatsApp is linked anew: nanobot channels login whatsapp') : NOTHING,
  ]);
}

function lark(section: JsonObject): Imported {
  const accounts = Object.values(sectionAt(section, 'accounts')).filter(isJsonObject);
  const app = [section, ...accounts].find((one) => textAt(one, 'appId') !== '');
  const secret = secretOf(app?.['appSecret']);
  if (app === undefined || secret === undefined) return NOTHING;
  const path = 'channels.lark';
  return together([
    {
      settings: {
        [`${path}.enabled`]: section['enabled'] !== false,
        [`${path}.appId`]: textAt(app, 'appId'),
        [`${path}.appSecret`]: secret,
        ...(textAt(section, 'domain') === 'lark' ? { [`${path}.domain`]: 'lark' } : {}),
      },
      left: [],
    },
    importAllowed(`${path}.allowFrom`, 'Lark', namesIn(section['allowFrom']), larkIdOf),
  ]);
}

function braveKey(config: JsonValue): Imported {
  const search = sectionAt(config, 'tools', 'web', 'search');
  const key = ['', 'brave'].includes(textAt(search, 'provider'))
    ? secretOf(search['apiKey'])
    : undefined;
  return key === undefined
    ? NOTHING
    : { settings: { 'tools.web.search.braveApiKey': key }, left: [] };
}
