// How a model on a peer is called: `peer:<name>/<model>`.

import { type LocalVendor, prefixOf } from './model-names.ts';

const PREFIX = 'peer:';

export type PeerModel = { readonly peer: string; readonly model: string };

export const peerModelName = ({ peer, model }: PeerModel) => `${PREFIX}${peer}/${model}`;

export const namesPeer = (name: string) => name.startsWith(PREFIX);

/** Undefined for any other name. */
export function splitPeerName(name: string): PeerModel | undefined {
  const slash = name.indexOf('/');
  if (!namesPeer(name) || slash <= PREFIX.length || slash === name.length - 1) return undefined;
  return { peer: name.slice(PREFIX.length, slash), model: name.slice(slash + 1) };
}

/** As a model of a server is called, which may be that of a peer. */
export function localModelName(
  { vendor, peer }: { readonly vendor: LocalVendor; readonly peer?: string },
  model: string,
): string {
  return peer === undefined ? `${prefixOf(vendor)}/${model}` : peerModelName({ peer, model });
}

export const serverLabel = (label: string, peer: string | undefined) =>
  peer === undefined ? label : `the peer ${peer}`;
