// The original's cluster as ours: there any host that answered was asked, so that what it found by itself
// is only listed here.

import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';
import { valueAt, withoutValue, withValue } from './json-paths.ts';

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
