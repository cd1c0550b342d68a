// Converts the configuration of nanobot for Python (~/.nanobot/config.json) into our settings.

import { isJsonObject, type JsonObject, type JsonValue } from '../../../kernel/config/json.ts';
import { t } from '../../../lib/texts.ts';
import { PROVIDER_NAMES, type ProviderName } from '../../../providers/settings.ts';
import {
  addressOf,
  below,
  given,
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
  const telegram = sectionAt(channels, 'telegram');
  const whatsApp = sectionAt(channels, 'whatsapp');
  const lark = sectionAt(channels, 'feishu');
  const tools = sectionAt(raw, 'tools');
  return together([
    models(raw),
    importTelegram(telegram, isOn(telegram), textAt(telegram, 'token')),
    importWhatsApp(whatsApp, isOn(whatsApp)),
    email(sectionAt(channels, 'email')),
    importLark(lark, isOn(lark), textAt(lark, 'appId'), textAt(lark, 'appSecret')),
    importBraveKey(textAt(sectionAt(tools, 'web', 'search'), 'apiKey')),
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

/** `custom` is any server with the OpenAI API, which is `local` here. */
function vendorOf(name: string): ProviderName | undefined {
  if (name === 'custom') return 'local';
  return PROVIDER_NAMES.find((known) => known === name);
}

function provider(name: string, entry: JsonObject): Imported {
  const [apiKey, apiBase] = [textAt(entry, 'apiKey'), textAt(entry, 'apiBase')];
  if (apiKey === '' && apiBase === '') return NOTHING;
  const vendor = vendorOf(name);
  if (vendor === undefined) {
    const hint = t`If its API is OpenAI-compatible, set it up as providers.local.`;
    return without(t`Provider ${name}: not supported. ${hint}`);
  }
  return providerSettings(vendor, apiKey, apiBase);
}

const security = (isTls: boolean) => (isTls ? 'tls' : 'starttls');

function email(section: JsonObject): Imported {
  const username = textAt(section, 'imapUsername');
  if (username === '') return NOTHING;
  const path = 'channels.email';
  const other = textAt(section, 'smtpUsername');
  return together([
    given(
      below(path, {
        imapHost: textAt(section, 'imapHost'),
        smtpHost: textAt(section, 'smtpHost'),
        username,
        password: textAt(section, 'imapPassword'),
        from: textAt(section, 'fromAddress'),
        mailbox: textAt(section, 'imapMailbox'),
        enabled: isOn(section) && section['consentGranted'] === true,
        imapPort: portAt(section, 'imapPort', 993),
        smtpPort: portAt(section, 'smtpPort', 587),
        imapSecurity: security(section['imapUseSsl'] !== false),
        smtpSecurity: security(section['smtpUseSsl'] === true),
      }),
    ),
    other === '' || other === username
      ? NOTHING
      : without(
          t`Email: both servers use one login here; the different SMTP login is not imported.`,
        ),
    importAllowed(`${path}.allowFrom`, t`Email`, namesIn(section['allowFrom']), addressOf),
  ]);
}

const portAt = (section: JsonObject, key: string, usual: number) => {
  const value = section[key];
  return typeof value === 'number' ? value : usual;
};
