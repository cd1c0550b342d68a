// The configuration of nanobot for Python (~/.nanobot/config.json), as settings of ours.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { PROVIDER_NAMES, type ProviderName } from '../../../providers/settings.ts';
import {
  addressOf,
  type Imported,
  importAllowed,
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

const KNOWN_CHANNELS = ['telegram', 'whatsapp', 'email', 'feishu'];

export function importPython(raw: JsonValue): Imported {
  const channels = sectionAt(raw, 'channels');
  const whatsApp = sectionAt(channels, 'whatsapp');
  const tools = sectionAt(raw, 'tools');
  const brave = textAt(sectionAt(tools, 'web', 'search'), 'apiKey');
  return together([
    models(raw),
    telegram(sectionAt(channels, 'telegram')),
    importWhatsApp({ section: whatsApp, isOn: isOn(whatsApp) }),
    email(sectionAt(channels, 'email')),
    lark(sectionAt(channels, 'feishu')),
    importBraveKey(brave),
    importToolServers(sectionAt(tools, 'mcpServers')),
    unknownChannels(channels, KNOWN_CHANNELS, isOn),
  ]);
}

const isOn = (section: JsonObject) => section['enabled'] === true;

function models(raw: JsonValue): Imported {
  const providers = Object.entries(sectionAt(raw, 'providers'));
  const parts = providers.map(([name, entry]) => provider(name, isJsonObject(entry) ? entry : {}));
  const keyed = new Set(
    PROVIDER_NAMES.filter((name) =>
      parts.some(({ settings }) => settings[`providers.${name}.apiKey`] !== undefined),
    ),
  );
  const defaults = sectionAt(raw, 'agents', 'defaults');
  const forced = vendorOf(textAt(defaults, 'provider'));
  const model = textAt(defaults, 'model');
  return together([...parts, importModel('agents.defaults.model', model, keyed, forced)]);
}

/** `custom` is any server of the OpenAI dialect, which is called `local` here. */
function vendorOf(name: string): ProviderName | undefined {
  if (name === 'custom') return 'local';
  return PROVIDER_NAMES.find((known) => known === name);
}

function provider(name: string, entry: JsonObject): Imported {
  const [apiKey, apiBase] = [textAt(entry, 'apiKey'), textAt(entry, 'apiBase')];
  if (apiKey === '' && apiBase === '') return NOTHING;
  const vendor = vendorOf(name);
  if (vendor === undefined) {
    const hint = 'With the OpenAI dialect it can be set up as providers.local.';
    return without(`Provider ${name}: unknown here. ${hint}`);
  }
  return providerSettings(vendor, apiKey, apiBase);
}

function telegram(section: JsonObject): Imported {
  const token = textAt(section, 'token');
  return token === '' ? NOTHING : importTelegram({ section, isOn: isOn(section) }, token);
}

const security = (isTls: boolean) => (isTls ? 'tls' : 'starttls');

function email(section: JsonObject): Imported {
  const username = textAt(section, 'imapUsername');
  if (username === '') return NOTHING;
  const path = 'channels.email';
  const isEmailOn = isOn(section) && section['consentGranted'] === true;
  const texts = {
    imapHost: textAt(section, 'imapHost'),
    smtpHost: textAt(section, 'smtpHost'),
    username,
    password: textAt(section, 'imapPassword'),
    from: textAt(section, 'fromAddress'),
    mailbox: textAt(section, 'imapMailbox'),
  };
  const fields = {
    ...Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== '')),
    enabled: isEmailOn,
    imapPort: portAt(section, 'imapPort', 993),
    smtpPort: portAt(section, 'smtpPort', 587),
    imapSecurity: security(section['imapUseSsl'] !== false),
    smtpSecurity: security(section['smtpUseSsl'] === true),
  };
  const other = textAt(section, 'smtpUsername');
  return together([
    {
      settings: Object.fromEntries(
        Object.entries(fields).map(([key, value]) => [`${path}.${key}`, value]),
      ),
      left:
        other === '' || other === username
          ? []
          : ['Email: one login serves both servers here; that of SMTP was another.'],
    },
    importAllowed(`${path}.allowFrom`, 'Email', namesIn(section['allowFrom']), addressOf),
  ]);
}

const portAt = (section: JsonObject, key: string, usual: number) => {
  const value = section[key];
  return typeof value === 'number' ? value : usual;
};

function lark(section: JsonObject): Imported {
  const [appId, appSecret] = [textAt(section, 'appId'), textAt(section, 'appSecret')];
  if (appId === '' || appSecret === '') return NOTHING;
  return importLark({ section, isOn: isOn(section) }, { appId, appSecret });
}
