// Shared by the importers of other programs' configurations: the result type and the conversion of
// single values. An entry of an allow list is imported only if it identifies one person; `*` never
// is.

import { isAllowEntry, normaliseAllowed } from '../../../channels/whatsapp/rules/jid.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { t } from '../../../lib/texts.ts';
import {
  prefixOf,
  splitModelName,
  vendorsOfBareName,
} from '../../../providers/rules/model-names.ts';
import { LOCAL_VENDORS, type ProviderName } from '../../../providers/settings.ts';

/** By dotted path of our configuration. */
export type ImportedSettings = Readonly<Record<string, JsonValue>>;

export type Imported = {
  readonly settings: ImportedSettings;
  /** What is not imported, each with the reason and what to do. Holds no secret. */
  readonly left: readonly string[];
};

export const NOTHING: Imported = { settings: {}, left: [] };

/** Leaves out empty settings. */
export const given = (settings: Readonly<Record<string, JsonValue | undefined>>): Imported => ({
  settings: Object.fromEntries(
    Object.entries(settings).flatMap(([path, value]) =>
      value === undefined || value === '' ? [] : [[path, value]],
    ),
  ),
  left: [],
});

export const without = (...left: readonly string[]): Imported => ({ settings: {}, left });

export const providerSettings = (
  vendor: ProviderName,
  apiKey: JsonValue | undefined,
  apiBase = '',
): Imported =>
  given({ [`providers.${vendor}.apiKey`]: apiKey, [`providers.${vendor}.apiBase`]: apiBase });

/** Empty without a token. `isOn`: the channel was on in the other program. */
export function importTelegram(
  section: JsonObject,
  isOn: boolean,
  token: JsonValue | undefined,
  paired: readonly string[] = [],
): Imported {
  if (token === undefined || token === '') return NOTHING;
  const path = 'channels.telegram';
  const allowed = [...namesIn(section['allowFrom']), ...paired];
  return together([
    given({ [`${path}.enabled`]: isOn, [`${path}.token`]: token }),
    importAllowed(`${path}.allowFrom`, 'Telegram', allowed, telegramIdOf),
  ]);
}

export function importWhatsApp(
  section: JsonObject,
  isOn: boolean,
  paired: readonly string[] = [],
): Imported {
  const allowed = [...namesIn(section['allowFrom']), ...paired];
  return together([
    importAllowed('channels.whatsapp.allowFrom', 'WhatsApp', allowed, whatsAppIdOf),
    isOn ? without(t`WhatsApp: link the account again: nanobot channels login whatsapp`) : NOTHING,
  ]);
}

/** Empty without an app id. */
export function importLark(
  section: JsonObject,
  isOn: boolean,
  appId: string,
  appSecret: JsonValue | undefined,
  domain?: 'lark',
): Imported {
  if (appId === '' || appSecret === undefined || appSecret === '') return NOTHING;
  const settings = { enabled: isOn, appId, appSecret, domain };
  const allowed = namesIn(section['allowFrom']);
  return together([
    given(below('channels.lark', settings)),
    importAllowed('channels.lark.allowFrom', 'Lark', allowed, larkIdOf),
  ]);
}

/** The settings of one section, by dotted path. */
export const below = (path: string, settings: Readonly<Record<string, JsonValue | undefined>>) =>
  Object.fromEntries(Object.entries(settings).map(([key, value]) => [`${path}.${key}`, value]));

export const importBraveKey = (key: JsonValue | undefined): Imported =>
  given({ 'tools.web.search.braveApiKey': key });

export function together(parts: readonly Imported[]): Imported {
  return {
    settings: Object.assign({}, ...parts.map(({ settings }) => settings)),
    left: parts.flatMap(({ left }) => left),
  };
}

export const sectionAt = (value: JsonValue | undefined, ...keys: readonly string[]): JsonObject => {
  let at = value;
  for (const key of keys) at = isJsonObject(at) ? at[key] : undefined;
  return isJsonObject(at) ? at : {};
};

/** Empty where the value is not a string. */
export const textAt = (section: JsonObject, key: string): string => {
  const value = section[key];
  return typeof value === 'string' ? value.trim() : '';
};

export const namesIn = (value: JsonValue | undefined): readonly string[] =>
  Array.isArray(value)
    ? value.flatMap((item: JsonValue) =>
        typeof item === 'string' || typeof item === 'number' ? [String(item).trim()] : [],
      )
    : [];

/** The model name in our notation, or a remark where none of our vendors serves the model. */
export function importModel(
  path: string,
  name: string,
  keyed: ReadonlySet<ProviderName>,
  forced?: ProviderName,
): Imported {
  if (name === '') return NOTHING;
  const model = qualified(name, keyed, forced);
  if (model !== undefined) return given({ [path]: model });
  return without(t`Model ${name}: unknown provider. Choose a model: nanobot onboard`);
}

function qualified(
  name: string,
  keyed: ReadonlySet<ProviderName>,
  forced: ProviderName | undefined,
): string | undefined {
  const named = splitModelName(name)?.vendor;
  if (forced === undefined && vendorsOfBareName(name).length > 0 && !name.includes('/'))
    return name;
  if (forced !== undefined && named !== forced) return `${prefixOf(forced)}/${name}`;
  const isServed =
    named !== undefined && (keyed.has(named) || LOCAL_VENDORS.some((local) => local === named));
  // A maker's name before the slash is an OpenRouter name; used only where no other vendor serves
  // it.
  if (!isServed && keyed.has('openrouter') && name.includes('/')) return `openrouter/${name}`;
  return named === undefined ? undefined : name;
}

/** The allow list. `idOf` returns the stable id, or undefined where an entry contains none. */
export function importAllowed(
  path: string,
  channel: string,
  entries: readonly string[],
  idOf: (entry: string) => string | undefined,
): Imported {
  const ids = [...new Set(entries.map(idOf).filter((id) => id !== undefined))];
  const odd = entries.filter((entry) => entry !== '' && idOf(entry) === undefined);
  return {
    settings: ids.length === 0 ? {} : { [path]: ids },
    left: odd.map((entry) =>
      entry === '*'
        ? t`${channel}: anyone could write there. List people here, or see "strangers" in docs/safety/who-may-write.md.`
        : t`${channel}: ${entry} is not a stable id. Ask the person to write to the agent, then: nanobot pair list`,
    ),
  };
}

/**
 * `123|ann`, `tg:123` and `telegram:123` contain a stable number; `@ann` is a name that can change
 * owners.
 */
const telegramIdOf = (entry: string): string | undefined =>
  /^(?:(?:tg|telegram):)?(\d{3,})(?:\||$)/i.exec(entry)?.[1];

/** Numbers without a plus include their country code in those programs. */
const whatsAppIdOf = (entry: string): string | undefined => {
  const number = /^\d{7,15}$/.test(entry) ? `+${entry}` : entry;
  return number !== '*' && isAllowEntry(number) ? normaliseAllowed(number) : undefined;
};

export const addressOf = (entry: string): string | undefined =>
  /^[^\s@]+@[^\s@]+$/.test(entry) ? entry.toLowerCase() : undefined;

const larkIdOf = (entry: string): string | undefined =>
  /^o[un]_\w+$/.test(entry) ? entry : undefined;

const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,31}$/;
const SERVER_FIELDS = ['command', 'args', 'env', 'url', 'headers'];

/** Tool servers run programs, so they are imported switched off for review. */
export function importToolServers(servers: JsonObject): Imported {
  return together(
    Object.entries(servers).map(([name, server]): Imported => {
      if (!SERVER_NAME.test(name) || !isJsonObject(server)) {
        return without(t`Tool server ${name}: set it up again under mcpServers.`);
      }
      const kept = Object.entries(server).filter(
        ([key, value]) => SERVER_FIELDS.includes(key) && !isEmpty(value),
      );
      const switchOn = t`nanobot config set mcpServers.${name}.enabled true`;
      return {
        settings: { [`mcpServers.${name}`]: { enabled: false, ...Object.fromEntries(kept) } },
        left: [t`Tool server ${name} is imported switched off. Check it, then: ${switchOn}`],
      };
    }),
  );
}

const isEmpty = (value: JsonValue) =>
  value === '' || value === null || (typeof value === 'object' && Object.keys(value).length === 0);

/** One bot token serves only one program, and a linked account has to be linked again. */
export function unknownChannels(
  channels: JsonObject,
  known: readonly string[],
  isOn: (section: JsonObject) => boolean,
): Imported {
  const names = Object.entries(channels).flatMap(([name, section]) =>
    isJsonObject(section) && isOn(section) && !known.includes(name) ? [name] : [],
  );
  return without(...names.map((name) => t`Channel ${name}: not supported here.`));
}
