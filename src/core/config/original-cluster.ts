// The original's cluster as ours: there any host that answered was asked, so that what it found by itself
// is only listed here.

import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

const KEY = 'cluster';

export function takeCluster(original: JsonObject): {
  readonly raw: JsonObject;
  readonly notes: readonly string[];
} {
  const { [KEY]: said, ...rest } = original;
  // A file of ours that only lacks its version.
  const isOurs =
    isJsonObject(said ?? '') &&
    ('peers' in (said as JsonObject) || 'discovery' in (said as JsonObject));
  if (isOurs) return { raw: original, notes: [] };
  if (!isJsonObject(said ?? '') || (said as JsonObject)['enabled'] !== true) {
    const notes = said === undefined ? [] : [`${KEY} was off and was dropped`];
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
    raw: { ...rest, [KEY]: cluster },
    notes: [
      `${KEY}.endpoints are peers now; hosts that are found have to be confirmed, and nets to look in stand in ${KEY}.discovery.addresses`,
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
