// Migrates older configuration files, one version at a time. Each step describes its changes in
// notes; unknown keys are left for validation to report.

import { z } from 'zod';
import { isAllowEntry, normaliseAllowed } from '../../channels/whatsapp/rules/jid.ts';
import { NO_PROXY_AT_ALL, readProxy } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { ConfigError } from '../message/errors.ts';
import { CONFIG_VERSION } from './config.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { valueAt, withoutValue, withValue } from './json-paths.ts';

type Migrated = {
  readonly raw: JsonObject;
  /** Undefined if there was nothing to do. */
  readonly from: number | undefined;
  readonly notes: readonly string[];
};

/** @throws ConfigError if the file is no object or was written by a newer nanobot. */
export function migrateConfig(value: JsonValue): Migrated {
  if (!isJsonObject(value))
    throw problem('', t`the file must contain one JSON object`, t`Start it with {.`);
  const from = versionOf(value);
  if (from === CONFIG_VERSION) return { raw: value, from: undefined, notes: [] };
  const { raw, notes } = upgradeOriginalConfig(value);
  return { raw: { ...raw, version: CONFIG_VERSION }, from, notes };
}

/** A file without one is the original program's. */
function versionOf(raw: JsonObject): number {
  const version = raw['version'] ?? 0;
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 0) {
    throw problem(
      'version',
      t`${JSON.stringify(version)} is not a version`,
      t`Use ${CONFIG_VERSION}.`,
    );
  }
  if (version > CONFIG_VERSION) {
    const remedy = t`Update nanobot, or restore an older copy of the file.`;
    throw problem('version', t`version ${version} is newer than this nanobot supports`, remedy);
  }
  return version;
}

function problem(path: string, text: string, remedy: string): ConfigError {
  return new ConfigError(text, [{ path, problem: text, remedy }]);
}

const CLUSTER = 'cluster';
const PEERS = `${CLUSTER}.peers`;

/** Settings of version 1 that are gone, and which one says the same now. */
const RETIRED: readonly (readonly [from: string, to?: string])[] = [
  ['channels.web'],
  ['storage.kind'],
  ['tools.web.search.braveUrl', 'tools.web.search.addresses.brave'],
  ['tools.web.search.addresses.searxng', 'tools.web.search.searxngUrl'],
];

/** Accepts them, wherever they are set; the file keeps them. */
export const withoutRetired = (value: JsonObject): JsonObject =>
  RETIRED.reduce((kept, [from, to]) => {
    const old = valueAt(kept, from);
    const rest = withoutValue(kept, from);
    const isMoved = to !== undefined && old !== undefined && old !== '';
    return isMoved && !valueAt(kept, to) ? withValue(rest, to, old) : rest;
  }, withNamedPeers(value));

/** Peers were a list before they were named by their keys. */
function withNamedPeers(value: JsonObject): JsonObject {
  const listed = valueAt(value, PEERS);
  if (!Array.isArray(listed)) return value;
  const peers = listed.filter(isJsonObject).map(({ name, ...peer }) => [`${name}`, peer] as const);
  return withValue(value, PEERS, Object.fromEntries(peers));
}

// Version 0: the original program's config.json, whose keys are kept if they have a meaning here.
// Keys without a meaning are removed, each with a note.

/** The configuration being changed, and a note for the person on each change. */
class Draft {
  raw: JsonObject;
  readonly notes: string[] = [];

  constructor(original: JsonObject) {
    this.raw = original;
  }

  at(path: string): JsonValue | undefined {
    return valueAt(this.raw, path);
  }

  set(path: string, value: JsonValue): void {
    this.raw = withValue(this.raw, path, value);
  }

  /** Returns the value and removes it. */
  take(path: string): JsonValue | undefined {
    const value = this.at(path);
    if (value !== undefined) this.raw = withoutValue(this.raw, path);
    return value;
  }
}

const sameNames = (from: string, to: string, keys: string) =>
  keys.split(' ').map((key) => [`${from}.${key}`, `${to}.${key}`] as const);
/** The original switched them on by default, so their presence means nothing. */
const ANTI_DRIFT = 'anchorInterval pollutionThreshold repetitionMinCount';
const PROPRIOCEPTION =
  'dynamicToolScoping audienceAwareCompaction gradientMemory ahaChannel groundingInterval rawWindow lightWindow';

const MOVED: readonly (readonly [from: string, to: string])[] = [
  ['channels.email.pollIntervalSecs', 'channels.email.pollSecs'],
  ['memory.session.rotationSizeBytes', 'sessions.rotationSizeBytes'],
  ['memory.session.rotationCarryMessages', 'sessions.rotationCarryMessages'],
  ['memory.compactionThresholdPercent', 'agents.defaults.compaction.watermarkPercent'],
  ['memory.compactionThresholdTokens', 'agents.defaults.compaction.watermarkTokens'],
  ['tools.exec.timeout', 'tools.timeoutSecs'],
  ['tools.web.search.apiKey', 'tools.web.search.braveApiKey'],
  ['toolDelegation.maxSameToolCallPerTurn', 'agents.defaults.maxSameToolCallPerTurn'],
  ['toolDelegation.model', 'agents.delegation.model'],
  ['trio.routerModel', 'agents.trio.router.model'],
  ['trio.routerTemperature', 'agents.trio.router.temperature'],
  ['trio.specialistModel', 'agents.trio.specialist.model'],
  ['trio.specialistTemperature', 'agents.trio.specialist.temperature'],
  ['trio.traceLog', 'agents.trio.trace'],
  ...sameNames('trio.antiDrift', 'agents.antiDrift', ANTI_DRIFT),
  ...sameNames('proprioception', 'agents.proprioception', PROPRIOCEPTION),
  ['trio.circuitBreaker.threshold', 'agents.circuit.failures'],
  ['trio.circuitBreaker.cooldownSecs', 'agents.circuit.cooldownSecs'],
  ['timeouts.providerHttpSecs', 'timeouts.firstTokenSecs'],
  ['agents.defaults.localApiBase', 'providers.local.apiBase'],
];

const AGENT_DEFAULTS = [
  'localModel localApiKey localMaxContextTokens lmsPort lmsMainModel inferenceEngine localBackend',
  'mlxPreset mlxModelDir mlxLmUrl instructionsPath skipJitGate maxContinuations',
  'localThinkingReserveTokens localThinkingMinCompletionTokens localThinkingSmallModelCap',
  'adaptiveLongModeMinTokens adaptiveLongFormMinTokens adaptiveLongFormTriggerChars',
  'adaptiveToolHeavyMaxTokens adaptiveToolHeavyMinTokens',
];
const DROPPED: readonly string[] = [
  ...named('', [
    'toolDelegation provenance proprioception trio worker lcm',
    'reasoning monitoring perplexityGate',
  ]),
  ...named('voice.', ['language ttsEngine ttsVoice']),
  ...named('agents.', ['defaultLane']),
  ...named('agents.defaults.', AGENT_DEFAULTS),
  ...named('memory.', [
    'model provider workingMemoryBudget reflectionThreshold sessionCompleteAfterSecs',
    'staleMemoryTurnThreshold',
    'maxMessageAgeTurns maxHistoryTurns lazySkills skillDisclosure compactionModelContextSize',
    'compaction session hygiene',
  ]),
  ...named('tools.', ['web.search.provider web.search.autoStart web.jinaReader toolsets']),
  ...named('tools.', ['codeExecution exec.restrictToWorkspace']),
  ...named('channels.', ['telegram.toolset']),
  ...named('channels.whatsapp.', ['bridgeUrl bridgePort toolset']),
  ...named('timeouts.', ['lmsNativeProbeSecs lmsLoadSecs lmsUnloadSecs']),
  ...named('retry.', ['jitMinSecs jitMaxSecs']),
];

const OLD_DEFAULTS = [
  {
    path: 'gateway.host',
    value: '0.0.0.0',
    note: t`the web page is available only on this machine`,
    /** The gateway has a token only here: a file that has one means the address. */
    unless: 'gateway.token',
  },
  {
    path: 'agents.defaults.workspace',
    value: '~/.nanobot/workspace',
    note: t`the workspace is workspace/ in the home`,
    unless: undefined,
  },
];

function upgradeOriginalConfig(original: JsonObject): Draft {
  const draft = new Draft(dropNulls(original));
  moveKeys(draft);
  takeFeishu(draft);
  takeCapabilities(draft);
  takeLossless(draft);
  takeCluster(draft);
  takeProxy(draft);
  dropKeys(draft);
  nameMailSecurity(draft);
  spellIds(draft);
  spellNumbers(draft);
  return draft;
}

function moveKeys(draft: Draft): void {
  for (const [from, to] of MOVED) {
    const value = draft.take(from);
    if (value === undefined || value === '') continue;
    draft.set(to, value);
    draft.notes.push(t`${from} is now ${to}`);
  }
}

/** There the channel could only send, so its list of people had no effect. */
function takeFeishu(draft: Draft): void {
  const feishu = draft.take('channels.feishu');
  if (feishu === undefined) return;
  const isEnabled = valueAt(feishu, 'enabled') === true;
  const credentials = ['appId', 'appSecret'].flatMap((key) => {
    const value = valueAt(feishu, key);
    return typeof value === 'string' && value !== '' ? [[key, value] as const] : [];
  });
  if (!isEnabled && credentials.length === 0) return;
  for (const [key, value] of credentials) draft.set(`channels.lark.${key}`, value);
  draft.set('channels.lark.enabled', isEnabled);
  draft.notes.push(t`channels.feishu is now channels.lark, without its list of people`);
}

/** There any text was accepted. */
function takeProxy(draft: Draft): void {
  const path = 'channels.telegram.proxy';
  const proxy = draft.at(path);
  const isMeant = typeof proxy !== 'string' || proxy === '' || proxy === NO_PROXY_AT_ALL;
  if (isMeant || /\$\{/.test(proxy) || readProxy(proxy) !== undefined) return;
  draft.take(path);
  draft.notes.push(t`removed ${path}: it is not the address of a proxy with its port`);
}

/** Keys without effect here, and defaults written into every file that mean something else here. */
function dropKeys(draft: Draft): void {
  for (const path of DROPPED) {
    if (draft.take(path) === undefined) continue;
    draft.notes.push(t`removed ${path}: it has no effect`);
  }
  for (const { path, value, note, unless } of OLD_DEFAULTS) {
    const isMeant = unless !== undefined && draft.at(unless) !== undefined;
    if (isMeant || draft.at(path) !== value) continue;
    draft.take(path);
    draft.notes.push(t`removed ${path} ${value}: ${note}`);
  }
}

/** The original chose the encryption by the port; its default SMTP port was 587. */
function nameMailSecurity(draft: Draft): void {
  const path = 'channels.email';
  const email = draft.at(path);
  if (!isJsonObject(email) || 'imapSecurity' in email || 'smtpSecurity' in email) return;
  const { smtpPort = 587, imapPort } = email;
  draft.set(`${path}.smtpPort`, smtpPort);
  draft.set(`${path}.smtpSecurity`, smtpPort === 465 ? 'tls' : 'starttls');
  draft.set(`${path}.imapSecurity`, imapPort === 143 ? 'starttls' : 'tls');
  draft.notes.push(t`added imapSecurity and smtpSecurity to ${path}`);
}

/** Ids may be numbers in the original. An empty list let everybody in there and nobody here. */
function spellIds(draft: Draft): void {
  for (const channel of ['telegram', 'email', 'whatsapp', 'lark']) {
    const path = `channels.${channel}.allowFrom`;
    const ids = draft.at(path);
    if (Array.isArray(ids)) {
      const spelled = ids.map((id) => (typeof id === 'number' ? String(id) : id));
      draft.set(path, spelled);
    }
    const isEnabled = draft.at(`channels.${channel}.enabled`) === true;
    if (isEnabled && (ids === undefined || (Array.isArray(ids) && ids.length === 0))) {
      draft.notes.push(t`${path} is empty: nobody may write now`);
    }
  }
}

/** The original identified people by digits or by WhatsApp's own addresses, including groups. */
function spellNumbers(draft: Draft): void {
  const path = 'channels.whatsapp.allowFrom';
  const entries = draft.at(path);
  if (Array.isArray(entries)) {
    const written = entries.map((entry) => (typeof entry === 'string' ? numberOf(entry) : entry));
    const isKept = (entry: JsonValue) => typeof entry !== 'string' || isAllowEntry(entry);
    for (const entry of written.filter((one) => !isKept(one))) {
      const shown = JSON.stringify(entry);
      draft.notes.push(t`removed ${shown} from ${path}: it is not a phone number`);
    }
    draft.set(path, written.filter(isKept));
  }
  if (draft.at('channels.whatsapp.enabled') === true) {
    draft.notes.push(t`link WhatsApp again: nanobot channels login whatsapp`);
  }
}

const numberOf = (entry: string) =>
  /^[1-9]\d{7,14}$/.test(entry) ? `+${entry}` : normaliseAllowed(entry);

function dropNulls(object: JsonObject): JsonObject {
  const kept = Object.entries(object)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => [key, isJsonObject(value) ? dropNulls(value) : value]);
  return Object.fromEntries(kept);
}

function named(prefix: string, lists: readonly string[]): readonly string[] {
  return lists.flatMap((list) => list.split(' ')).map((name) => `${prefix}${name}`);
}

/** There any host that answered was used, so what it discovered is only listed here. */
function takeCluster(draft: Draft): void {
  const said = draft.at(CLUSTER);
  // A current file that only lacks its version.
  if (isJsonObject(said) && ('peers' in said || 'discovery' in said)) return;
  if (draft.take(CLUSTER) === undefined) return;
  if (!isJsonObject(said) || said['enabled'] !== true) {
    draft.notes.push(t`removed ${CLUSTER}: it was off`);
    return;
  }
  const { autoDiscover, endpoints, preferCluster, scanPorts } = said;
  const ports = Array.isArray(scanPorts) && scanPorts.length > 0 ? { ports: scanPorts } : {};
  draft.set(CLUSTER, {
    enabled: true,
    peers: Object.fromEntries(addressesIn(endpoints).map(peerOf)),
    ...(preferCluster === false ? { prefer: 'local' } : {}),
    discovery:
      autoDiscover === false
        ? { enabled: false, ...ports }
        : { enabled: true, mdns: ['_exo._tcp'], ...ports },
  });
  draft.notes.push(
    t`${CLUSTER}.endpoints is now ${CLUSTER}.peers; confirm discovered hosts, and list networks to search in ${CLUSTER}.discovery.addresses`,
  );
}

const addressesIn = (endpoints: JsonValue | undefined): readonly string[] =>
  Array.isArray(endpoints)
    ? endpoints.filter((each) => typeof each === 'string').filter((each) => URL.canParse(each))
    : [];

function peerOf(address: string, index: number): readonly [string, JsonObject] {
  const base = address.replace(/\/+$/, '');
  return [`peer-${index + 1}`, { apiBase: base.endsWith('/v1') ? base : `${base}/v1` }];
}

const COMPACTION = 'agents.defaults.compaction';
const SHARES = [
  ['tauSoft', 'softPercent'],
  ['tauHard', 'hardPercent'],
] as const;

/** Shares of lossless compaction are percentages here. */
function takeLossless(draft: Draft): void {
  if (draft.at('lcm.enabled') === true) {
    draft.take('lcm.enabled');
    draft.set(`${COMPACTION}.engine`, 'lossless');
    draft.notes.push(t`lcm.enabled is now ${COMPACTION}.engine`);
  }
  for (const [from, to] of SHARES) {
    const share = draft.at(`lcm.${from}`);
    if (typeof share !== 'number') continue;
    draft.take(`lcm.${from}`);
    const percent = Math.min(95, Math.max(10, Math.round(share * 100)));
    draft.set(`${COMPACTION}.lossless.${to}`, percent);
    draft.notes.push(t`lcm.${from} is now ${COMPACTION}.lossless.${to}, in percent`);
  }
}

const CAPABILITIES = 'modelCapabilities';
const word = z.string().toLowerCase();
/** The original's data about a model, as far as it has a meaning here. */
const capabilities = z.object({
  sizeClass: word
    .pipe(z.enum(['small', 'medium', 'large']))
    .optional()
    .catch(undefined),
  toolCalling: z
    .union([
      z.boolean().transform((callsTools) => (callsTools ? 'native' : 'text')),
      word.pipe(z.enum(['native', 'text', 'none'])),
    ])
    .optional()
    .catch(undefined),
  thinking: z.boolean().optional().catch(undefined),
  strictAlternation: z.boolean().optional().catch(undefined),
  maxReliableOutput: z.int().min(1).optional().catch(undefined),
});

/** There an object by part of the model's name, here a list. */
function takeCapabilities(draft: Draft): void {
  const table = draft.at(CAPABILITIES);
  if (!isJsonObject(table)) return;
  const entries = Object.entries(table).flatMap(([models, said]): JsonObject[] => {
    const fields = Object.entries(capabilities.safeParse(said).data ?? {}).flatMap(
      ([key, value]) => (value === undefined ? [] : [[key, value] as const]),
    );
    return models === '' || fields.length === 0 ? [] : [{ models, ...Object.fromEntries(fields) }];
  });
  draft.take(CAPABILITIES);
  if (entries.length === 0) return;
  draft.set(CAPABILITIES, entries);
  draft.notes.push(t`${CAPABILITIES} is now a list`);
}
