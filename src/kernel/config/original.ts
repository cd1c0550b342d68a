// Version 0: the original program's config.json, whose keys we keep where they mean something here.
// Keys that meant nothing, or mean nothing any more, go, each with a note.

import { isAllowEntry, normaliseAllowed } from '../../channels/whatsapp/rules/jid.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { valueAt, withoutValue, withValue } from './json-paths.ts';

type Upgrade = { readonly raw: JsonObject; readonly notes: readonly string[] };

const sameNames = (from: string, to: string, keys: string) =>
  keys.split(' ').map((key) => [`${from}.${key}`, `${to}.${key}`] as const);
/** That they were switched on there says nothing: it was the default. */
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
const MEMORY = [
  'model provider workingMemoryBudget reflectionThreshold sessionCompleteAfterSecs',
  'staleMemoryTurnThreshold',
  'maxMessageAgeTurns maxHistoryTurns lazySkills skillDisclosure compactionModelContextSize',
  'compaction session hygiene',
];
const SECTIONS = [
  'toolDelegation provenance proprioception trio worker lcm',
  'reasoning monitoring perplexityGate',
];

const DROPPED: readonly string[] = [
  ...named('', SECTIONS),
  ...named('voice.', ['language ttsEngine ttsVoice']),
  ...named('agents.', ['defaultLane']),
  ...named('agents.defaults.', AGENT_DEFAULTS),
  ...named('memory.', MEMORY),
  ...named('tools.', ['web.search.provider web.search.autoStart web.jinaReader toolsets']),
  ...named('tools.', ['codeExecution exec.restrictToWorkspace']),
  ...named('channels.', ['telegram.proxy telegram.toolset']),
  ...named('channels.whatsapp.', ['bridgeUrl bridgePort toolset']),
  ...named('timeouts.', ['lmsNativeProbeSecs lmsLoadSecs lmsUnloadSecs']),
  ...named('retry.', ['jitMinSecs jitMaxSecs']),
];

const OLD_DEFAULTS = [
  {
    path: 'gateway.host',
    value: '0.0.0.0',
    note: 'the web page is served on this machine only',
    /** Only here has the gateway a token: whoever wrote one means the address. */
    unless: 'gateway.token',
  },
  {
    path: 'agents.defaults.workspace',
    value: '~/.nanobot/workspace',
    note: 'it is workspace/ in the home',
    unless: undefined,
  },
];

export function upgradeOriginalConfig(original: JsonObject): Upgrade {
  const withoutNulls = dropNulls(original);
  const steps = [
    moveKeys,
    takeFeishu,
    takeCapabilities,
    takeLossless,
    takeCluster,
    dropKeys,
    dropOldDefaults,
    nameMailSecurity,
    spellIds,
    spellNumbers,
  ];
  const notes: string[] = [];
  let raw = withoutNulls;
  for (const step of steps) {
    const result = step(raw);
    raw = result.raw;
    notes.push(...result.notes);
  }
  return { raw, notes };
}

function moveKeys(original: JsonObject): Upgrade {
  const notes: string[] = [];
  let raw = original;
  for (const [from, to] of MOVED) {
    const value = valueAt(raw, from);
    if (value === undefined) continue;
    raw = withoutValue(raw, from);
    if (value === '') continue;
    raw = withValue(raw, to, value);
    notes.push(`${from} is now ${to}`);
  }
  return { raw, notes };
}

/** There it could only send, so that its list of people had no effect. */
function takeFeishu(original: JsonObject): Upgrade {
  const feishu = valueAt(original, 'channels.feishu');
  if (feishu === undefined) return { raw: original, notes: [] };
  const rest = withoutValue(original, 'channels.feishu');
  const enabled = valueAt(original, 'channels.feishu.enabled') === true;
  const credentials = ['appId', 'appSecret'].flatMap((key) => {
    const value = valueAt(original, `channels.feishu.${key}`);
    return typeof value === 'string' && value !== '' ? [[key, value] as const] : [];
  });
  if (!enabled && credentials.length === 0) return { raw: rest, notes: [] };
  const raw = [...credentials, ['enabled', enabled] as const].reduce(
    (changed, [key, value]) => withValue(changed, `channels.lark.${key}`, value),
    rest,
  );
  return { raw, notes: ['channels.feishu is now channels.lark, without its list of people'] };
}

function dropKeys(original: JsonObject): Upgrade {
  const present = DROPPED.filter((path) => valueAt(original, path) !== undefined);
  return {
    raw: present.reduce(withoutValue, original),
    notes: present.map((path) => `${path} was dropped: it has no effect here`),
  };
}

/** Defaults that the original wrote into every file and that mean something else here. */
function dropOldDefaults(original: JsonObject): Upgrade {
  const present = OLD_DEFAULTS.filter(({ path, value, unless }) => {
    const isMeant = unless !== undefined && valueAt(original, unless) !== undefined;
    return valueAt(original, path) === value && !isMeant;
  });
  return {
    raw: present.map(({ path }) => path).reduce(withoutValue, original),
    notes: present.map(({ path, value, note }) => `${path} ${value} was dropped: ${note}`),
  };
}

/** The original chose the encryption by the port; its SMTP port was 587 unless written. */
function nameMailSecurity(original: JsonObject): Upgrade {
  const email = valueAt(original, 'channels.email');
  const isNamed = isJsonObject(email) && ('imapSecurity' in email || 'smtpSecurity' in email);
  if (!isJsonObject(email) || isNamed) return { raw: original, notes: [] };
  const smtpPort = valueAt(original, 'channels.email.smtpPort') ?? 587;
  const settings: readonly (readonly [key: string, value: JsonValue])[] = [
    ['smtpPort', smtpPort],
    ['smtpSecurity', smtpPort === 465 ? 'tls' : 'starttls'],
    ['imapSecurity', valueAt(original, 'channels.email.imapPort') === 143 ? 'starttls' : 'tls'],
  ];
  const raw = settings.reduce(
    (changed, [key, value]) => withValue(changed, `channels.email.${key}`, value),
    original,
  );
  return { raw, notes: ['channels.email now names the encryption: imapSecurity, smtpSecurity'] };
}

/** Ids may be numbers in the original. An empty list let everybody in there and nobody here. */
function spellIds(original: JsonObject): Upgrade {
  const notes: string[] = [];
  let raw = original;
  for (const channel of ['telegram', 'email', 'whatsapp', 'lark']) {
    const path = `channels.${channel}.allowFrom`;
    const ids = valueAt(raw, path);
    if (Array.isArray(ids)) {
      raw = withValue(
        raw,
        path,
        ids.map((id) => (typeof id === 'number' ? String(id) : id)),
      );
    }
    const enabled = valueAt(raw, `channels.${channel}.enabled`) === true;
    if (enabled && (ids === undefined || (Array.isArray(ids) && ids.length === 0))) {
      notes.push(`${path} is empty: that lets nobody in now`);
    }
  }
  return { raw, notes };
}

/** The original knew people by digits or by WhatsApp's own addresses, groups among them. */
function spellNumbers(original: JsonObject): Upgrade {
  const notes: string[] = [];
  const path = 'channels.whatsapp.allowFrom';
  const entries = valueAt(original, path);
  let raw = original;
  if (Array.isArray(entries)) {
    const written = entries.map((entry) => (typeof entry === 'string' ? numberOf(entry) : entry));
    const kept = written.filter((entry) => typeof entry !== 'string' || isAllowEntry(entry));
    for (const entry of written.filter((one) => !kept.includes(one))) {
      notes.push(`${path} no longer has ${JSON.stringify(entry)}: it is nobody’s number here`);
    }
    raw = withValue(original, path, kept);
  }
  if (valueAt(raw, 'channels.whatsapp.enabled') === true) {
    notes.push('WhatsApp has to be linked anew: nanobot channels login whatsapp');
  }
  return { raw, notes };
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

// The original's cluster as ours: there any host that answered was asked, so that what it found by itself
// is only listed here.

const CLUSTER_KEY = 'cluster';

export function takeCluster(original: JsonObject): {
  readonly raw: JsonObject;
  readonly notes: readonly string[];
} {
  const { [CLUSTER_KEY]: said, ...rest } = original;
  // A file of ours that only lacks its version.
  const isOurs =
    isJsonObject(said ?? '') &&
    ('peers' in (said as JsonObject) || 'discovery' in (said as JsonObject));
  if (isOurs) return { raw: original, notes: [] };
  if (!isJsonObject(said ?? '') || (said as JsonObject)['enabled'] !== true) {
    const notes = said === undefined ? [] : [`${CLUSTER_KEY} was off and was dropped`];
    return { raw: rest, notes };
  }
  const { autoDiscover, endpoints, preferCluster, scanPorts } = said as JsonObject;
  const peers = Object.fromEntries(addressesIn(endpoints).map(peerOf));
  const ports = Array.isArray(scanPorts) && scanPorts.length > 0 ? { ports: scanPorts } : {};
  const cluster: JsonObject = {
    enabled: true,
    peers,
    ...(preferCluster === false ? { prefer: 'local' } : {}),
    discovery:
      autoDiscover === false
        ? { enabled: false, ...ports }
        : { enabled: true, mdns: ['_exo._tcp'], ...ports },
  };
  return {
    raw: { ...rest, [CLUSTER_KEY]: cluster },
    notes: [
      `${CLUSTER_KEY}.endpoints are peers now; hosts that are found have to be confirmed, and nets to look in stand in ${CLUSTER_KEY}.discovery.addresses`,
    ],
  };
}

const addressesIn = (endpoints: JsonValue | undefined): readonly string[] =>
  Array.isArray(endpoints)
    ? endpoints.filter((each) => typeof each === 'string').filter((each) => URL.canParse(each))
    : [];

function peerOf(address: string, index: number): readonly [string, JsonObject] {
  const base = address.replace(/\/+$/, '');
  return [`peer-${index + 1}`, { apiBase: base.endsWith('/v1') ? base : `${base}/v1` }];
}

// Takes over from the original's config.json what it said of lossless compaction: shares are percents here.

const COMPACTION = 'agents.defaults.compaction';
const SHARES = [
  ['tauSoft', 'softPercent'],
  ['tauHard', 'hardPercent'],
] as const;

export function takeLossless(original: JsonObject): {
  readonly raw: JsonObject;
  readonly notes: readonly string[];
} {
  const notes: string[] = [];
  let raw = original;
  if (valueAt(raw, 'lcm.enabled') === true) {
    raw = withValue(withoutValue(raw, 'lcm.enabled'), `${COMPACTION}.engine`, 'lossless');
    notes.push(`lcm.enabled is now ${COMPACTION}.engine`);
  }
  for (const [from, to] of SHARES) {
    const share = valueAt(raw, `lcm.${from}`);
    if (typeof share !== 'number') continue;
    const percent = Math.min(95, Math.max(10, Math.round(share * 100)));
    raw = withValue(withoutValue(raw, `lcm.${from}`), `${COMPACTION}.lossless.${to}`, percent);
    notes.push(`lcm.${from} is now ${COMPACTION}.lossless.${to}, in percent`);
  }
  return { raw, notes };
}

// The original's table of what models can do, as ours: there an object by part of the name, with some
// fields that mean nothing here.

const MODELS_KEY = 'modelCapabilities';
const SIZES: readonly unknown[] = ['small', 'medium', 'large'];
const WAYS: readonly unknown[] = ['native', 'text', 'none'];

export function takeCapabilities(original: JsonObject): {
  readonly raw: JsonObject;
  readonly notes: readonly string[];
} {
  const { [MODELS_KEY]: table, ...rest } = original;
  if (!isJsonObject(table ?? [])) return { raw: original, notes: [] };
  const entries = Object.entries(table as JsonObject).flatMap(([models, said]) => {
    const fields = isJsonObject(said ?? '') ? fieldsOf(said as JsonObject) : {};
    return models === '' || Object.keys(fields).length === 0 ? [] : [{ models, ...fields }];
  });
  if (entries.length === 0) return { raw: rest, notes: [] };
  return { raw: { ...rest, [MODELS_KEY]: entries }, notes: [`${MODELS_KEY} is a list now`] };
}

function fieldsOf(said: JsonObject): JsonObject {
  const { sizeClass, toolCalling, thinking, strictAlternation, maxReliableOutput } = said;
  const size = lower(sizeClass);
  const way = typeof toolCalling === 'boolean' ? wayOf(toolCalling) : lower(toolCalling);
  return {
    ...(SIZES.includes(size) ? { sizeClass: size as string } : {}),
    ...(WAYS.includes(way) ? { toolCalling: way as string } : {}),
    ...(typeof thinking === 'boolean' ? { thinking } : {}),
    ...(typeof strictAlternation === 'boolean' ? { strictAlternation } : {}),
    ...(Number.isInteger(maxReliableOutput) && Number(maxReliableOutput) > 0
      ? { maxReliableOutput: Number(maxReliableOutput) }
      : {}),
  };
}

const wayOf = (callsTools: boolean) => (callsTools ? 'native' : 'text');
const lower = (value: JsonValue | undefined) =>
  typeof value === 'string' ? value.toLowerCase() : undefined;
